import numpy as np
import pytest
import scipy.sparse as sp

import labelspace
from labelspace import Tagger
from labelspace.errors import DataError, ModelError, NotFittedError, ParameterError
from labelspace.features.tfidf import Tfidf
from labelspace.models.registry import METHODS, create

TEXTS = ["red apple pie", "green apple tart", "fast red car", "slow old car", "apple and car"]
NAMES = [["fruit"], ["fruit", "baking"], ["vehicle"], ["vehicle"], ["fruit", "vehicle"]]


LONG_TRAINED = ("glas", "poincare", "neuralxc", "hierarchicalxc", "secseq", "mlc2seq", "text2text", "blend")


@pytest.mark.parametrize(
    "method", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG_TRAINED)) for name in METHODS]
)
def test_texts_to_names_and_back_from_disk(method, data, tmp_path):
    if method in ("secseq", "mlc2seq"):
        pytest.importorskip("torch")
    if method == "text2text":
        pytest.importorskip("transformers")
    train, test = data
    names = [[train.labels.names[i] for i in row.indices] for row in train.Y]
    tagger = Tagger(method=method).fit(train.texts, names)
    before = tagger.tag_batch(test.texts, k=3)
    tagger.save(tmp_path / "model")
    assert Tagger.load(tmp_path / "model").tag_batch(test.texts, k=3) == before
    assert isinstance(labelspace.load(tmp_path / "model"), Tagger)
    assert all(isinstance(name, str) and isinstance(score, float) for name, score in before[0])


def test_tag_is_tag_batch_of_one():
    tagger = Tagger(features=Tfidf(min_df=1)).fit(TEXTS, NAMES)
    assert tagger.tag("an apple", k=2) == tagger.tag_batch(["an apple"], k=2)[0]
    assert tagger.tag("an apple", k=2)[0][0] == "fruit"


def test_an_empty_or_unknown_text_gets_no_label_from_neighbours():
    tagger = Tagger("neighbours", features=Tfidf(min_df=1)).fit(TEXTS, NAMES)
    assert tagger.tag_batch(["", "zzz qqq"], k=3) == [[], []]


def test_parameters_reach_the_method_and_unknown_ones_are_refused():
    assert Tagger(method="neighbours", power=2.0).model.power == 2.0
    assert Tagger(method=create("one_vs_rest"), C=3.0).model.C == 3.0
    with pytest.raises(ParameterError, match="no parameter 'colour'"):
        Tagger(method="neighbours", colour=1)
    with pytest.raises(ParameterError, match="no method 'magic'"):
        Tagger(method="magic")
    with pytest.raises(ParameterError, match="nonsense"):
        Tagger(features="nonsense")


def test_ready_made_features_need_no_texts(data, tmp_path):
    train, test = data
    ready = labelspace.Dataset(train.Y, train.labels, X=train.X)
    tagger = Tagger("one_vs_rest").fit_dataset(ready)
    tagger.save(tmp_path / "model")
    loaded = Tagger.load(tmp_path / "model")
    assert loaded.features is None
    assert np.array_equal(loaded.predict_topk(test.X, 3).labels, tagger.predict_topk(test.X, 3).labels)
    with pytest.raises(DataError, match="trained on 600 ready-made features, but was given texts"):
        loaded.tag("w1 w2")


def test_validation_documents_go_through_the_same_features():
    seen = {}

    class Watching(type(create("popular"))):
        uses_validation = True

        def _fit(self, X, Y, aids):
            seen["validation"] = aids.validation
            super()._fit(X, Y, aids)

    from labelspace.tagger import _as_dataset

    whole = _as_dataset(TEXTS, NAMES)
    tagger = Tagger(Watching(), Tfidf(min_df=1)).fit_dataset(whole, validation=whole.rows([0, 2]))
    X, Y = seen["validation"]
    assert (X != tagger.features.transform([TEXTS[0], TEXTS[2]])).nnz == 0
    assert (Y != whole.Y[[0, 2]]).nnz == 0


def test_iterators_arrays_and_sets_will_do():
    rows = [(part.strip() for part in ",".join(names).split(",")) for names in NAMES]
    tagger = Tagger(features=Tfidf(min_df=1)).fit(np.array(TEXTS), rows)
    plain = Tagger(features=Tfidf(min_df=1)).fit(TEXTS, [set(names) for names in NAMES])
    assert tagger.labels_.counts.tolist() == plain.labels_.counts.tolist() == [1, 3, 3]
    assert tagger.tag_batch(np.array(TEXTS), 2) == plain.tag_batch(TEXTS, 2)
    with pytest.raises(DataError, match="row 1 has None"):
        Tagger().fit(["a b", "c d"], [["x"], None])


def test_bad_input_is_one_clear_line(tmp_path):
    with pytest.raises(NotFittedError, match="call fit"):
        Tagger().tag("x")
    with pytest.raises(NotFittedError, match="call fit"):
        Tagger().save(tmp_path / "m")
    with pytest.raises(DataError, match="1 for 2 texts"):
        Tagger().fit(["a b", "c d"], [["x"]])
    with pytest.raises(DataError, match=r"row 1 has 'fruit'; write \['name'\]"):
        Tagger().fit(["a b", "c d"], [["x"], "fruit"])
    with pytest.raises(DataError, match="row 1 is of type NoneType"):
        Tagger().fit(["a b", None], [["x"], ["y"]])
    with pytest.raises(DataError, match="are one str; give a list of texts"):
        Tagger(features=Tfidf(min_df=1)).fit(TEXTS, NAMES).tag_batch("one text")


def test_a_bare_model_is_no_tagger(tmp_path):
    create("popular").fit(sp.eye(2).tocsr(), sp.eye(2).tocsr()).save(tmp_path / "m")
    with pytest.raises(ModelError, match="holds a bare model; read it with labelspace.load"):
        Tagger.load(tmp_path / "m")
