from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import labelspace
from labelspace import Tagger
from labelspace.data.records import Record
from labelspace.data.texts import dataset_from_names
from labelspace.errors import DataError, ModelError, NotFittedError, ParameterError
from labelspace.features.tfidf import Tfidf
from labelspace.labels.hierarchy import include_ancestors
from labelspace.metrics import consistent_at_k
from labelspace.models.registry import METHODS, create, method
from labelspace.types import Columns, Dataset, Hierarchy, LabelSpace, TopK
from tests.checks import same_topk
from tests.data.frames import Column, Frame
from tests.models.variants import SMALL

TEXTS = ["red apple pie", "green apple tart", "fast red car", "slow old car", "apple and car"]
NAMES = [["fruit"], ["fruit", "baking"], ["vehicle"], ["vehicle"], ["fruit", "vehicle"]]


QUICKER = {"text2text": {"embedding_dim": 16, "n_heads": 2, "hidden_dim": 16, "epochs": 2}}
LONG_TRAINED = ("glas", "poincare", "neuralxc", "hierarchicalxc", "secseq", "mlc2seq", "xmlcnn", "blend")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG_TRAINED)) for name in METHODS]
)
def test_texts_to_names_and_back_from_disk(name, data, tmp_path):
    if name in ("secseq", "mlc2seq"):
        pytest.importorskip("torch")
    if name == "text2text":
        pytest.importorskip("transformers")
    train, test = data
    names = [[train.labels.names[i] for i in row.indices] for row in train.Y]
    tagger = Tagger(name, **{**SMALL.get(name, {}), **QUICKER.get(name, {})}).fit(train.texts, names)
    before = tagger.tag_batch(test.texts, k=3)
    tagger.save(tmp_path / "model")
    loaded = Tagger.load(tmp_path / "model")
    assert loaded.tag_batch(test.texts, k=3) == before
    tree = Hierarchy.from_edges([[label, label // 2] for label in range(1, 40)], n_labels=40)
    loaded.labels_ = replace(loaded.labels_, hierarchy=tree)
    assert consistent_at_k(loaded.predict_topk(test.texts, k=3, consistent=True), tree, k=3) == 1
    assert isinstance(labelspace.load(tmp_path / "model"), Tagger)
    assert all(isinstance(name, str) and isinstance(score, float) for name, score in before[0])


def test_tag_is_tag_batch_of_one():
    tagger = Tagger(features=Tfidf(min_df=1)).fit(TEXTS, NAMES)
    assert tagger.tag("an apple", k=2) == tagger.tag_batch(["an apple"], k=2)[0]
    assert tagger.tag("an apple", k=2)[0][0] == "fruit"


def test_an_empty_or_unknown_text_gets_no_label_from_neighbors():
    tagger = Tagger("neighbors", features=Tfidf(min_df=1)).fit(TEXTS, NAMES)
    assert tagger.tag_batch(["", "zzz qqq"], k=3) == [[], []]


def test_parameters_reach_the_method_and_unknown_ones_are_refused():
    assert Tagger(method="neighbors", power=2.0).model.power == 2.0
    assert Tagger(method=create("one_vs_rest"), C=3.0).model.C == 3.0
    with pytest.raises(ParameterError, match="no parameter 'color'"):
        Tagger(method="neighbors", color=1)
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
    assert loaded.ready_made
    assert np.array_equal(loaded.predict_topk(test.X, 3).labels, tagger.predict_topk(test.X, 3).labels)
    with pytest.raises(DataError, match="trained on 600 ready-made features, but was given texts"):
        loaded.tag("w1 w2")


def test_a_method_that_reads_texts_refuses_features(data):
    train, _ = data
    with pytest.raises(DataError, match="lexical reads texts, but the data holds ready-made features; give a file"):
        Tagger("lexical").fit_dataset(Dataset(train.Y, train.labels, X=train.X))


def test_validation_documents_go_through_the_same_features():
    seen = {}

    class Watching(type(create("popular"))):
        def _fit(self, X, Y, context):
            seen["validation"] = context.validation
            super()._fit(X, Y, context)

    from labelspace.data.texts import dataset_from_names

    whole = dataset_from_names(TEXTS, NAMES)
    tagger = Tagger(Watching(), Tfidf(min_df=1)).fit_dataset(whole, validation=whole.rows([0, 2]))
    X, Y = seen["validation"]
    assert (X != tagger.features_.transform([TEXTS[0], TEXTS[2]])["bigrams"]).nnz == 0
    assert (Y != whole.Y[[0, 2]]).nnz == 0


def test_a_refit_that_cannot_begin_leaves_the_tagger_as_it_was():
    tagger = Tagger("neighbors").fit(TEXTS, NAMES)
    before = tagger.tag("an apple")
    tagger.feature_params = {"color": 1}
    with pytest.raises(ParameterError, match="tfidf has no parameter 'color'"):
        tagger.fit(TEXTS, NAMES)
    assert tagger.tag("an apple") == before


def test_validation_features_without_the_last_columns_are_widened(data):
    train, test = data
    narrow = Dataset(test.Y, test.labels, X=test.X[:, :590])
    padding = sp.csr_matrix((len(test), 10), dtype=np.float32)
    wide = Dataset(test.Y, test.labels, X=sp.hstack([narrow.X, padding], format="csr"))
    ready = Dataset(train.Y, train.labels, X=train.X)
    tops = []
    for validation in (narrow, wide):
        tagger = Tagger("blend", members="neighbors,label_tree", boosting_rounds=5)
        tops.append(tagger.fit_dataset(ready, validation).predict_topk(test.X))
    assert same_topk(*tops)


def test_iterators_arrays_and_sets_will_do():
    rows = [(part.strip() for part in ",".join(names).split(",")) for names in NAMES]
    tagger = Tagger(features=Tfidf(min_df=1)).fit(np.array(TEXTS), rows)
    plain = Tagger(features=Tfidf(min_df=1)).fit(TEXTS, [set(names) for names in NAMES])
    assert tagger.labels_.counts.tolist() == plain.labels_.counts.tolist() == [1, 3, 3]
    assert tagger.tag_batch(np.array(TEXTS), 2) == plain.tag_batch(TEXTS, 2)
    with pytest.raises(DataError, match=r"row 1 has \[None\]"):
        Tagger().fit(["a b", "c d"], [["x"], [None]])


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
    with pytest.raises(DataError, match=r"is one str; use tag\(text\), or give"):
        Tagger(features=Tfidf(min_df=1)).fit(TEXTS, NAMES).tag_batch("one text")


def test_a_model_saved_alone_loads_as_a_tagger(tmp_path):
    create("popular").fit(sp.eye(2).tocsr(), sp.eye(2).tocsr()).save(tmp_path / "m")
    tagger = labelspace.load(tmp_path / "m")
    assert tagger.tag_batch(sp.eye(2).tocsr(), 1) == [[("0", 0.5)], [("0", 0.5)]]
    with pytest.raises(DataError, match="trained on 2 ready-made features, but was given texts"):
        tagger.tag("a text")
    create("lexical").fit_labels(LabelSpace(["fruit"])).save(tmp_path / "names")
    assert labelspace.load(tmp_path / "names").tag("a fruit")[0][0] == "fruit"
    with pytest.raises(ModelError, match="must hold a glas model, but holds popular"):
        method("glas").load(tmp_path / "m")


def test_features_replace_those_of_every_view(data):
    train, test = data
    texts = Dataset(train.Y, train.labels, texts=train.texts)
    tagger = Tagger(
        "blend",
        features="hashing",
        feature_params={"bits": 10, "ngrams": 1},
        members="neighbors,label_tree:chars,lexical",
    )
    tagger.fit_dataset(texts)
    assert tagger.features_.made_by_ == {"words": "words", "chars": "words", "text": "text"}, "equal features once"
    assert tagger.model.widths_ == {"words": 1024, "chars": 1024, "text": 0}
    assert tagger.tag(test.texts[0])
    with pytest.raises(ParameterError, match="tfidf has no parameter 'bits'"):
        Tagger("neighbors", feature_params={"bits": 10}).fit_dataset(texts)
    with pytest.raises(ParameterError, match="lexical reads texts itself, but features is set; leave it out"):
        Tagger("lexical", features="hashing").fit_dataset(texts)


def test_a_dense_matrix_of_ones_own_is_a_view(data, tmp_path):
    train, test = data
    dense = Dataset(train.Y, train.labels, X=train.X.toarray())
    tagger = Tagger("blend", n_folds=2, boosting_rounds=20).fit_dataset(dense)
    tagger.save(tmp_path / "model")
    top = labelspace.load(tmp_path / "model").predict_topk(test.X.toarray(), 3)
    assert np.array_equal(top.labels, tagger.predict_topk(test.X, 3).labels)


def test_a_stream_of_any_length_is_tagged_in_order(data, monkeypatch):
    monkeypatch.setattr("labelspace.tagger.inputs.MAX_DOCUMENTS", 7)
    train, test = data
    tagger = Tagger("neighbors").fit_dataset(Dataset(train.Y, train.labels, texts=train.texts))
    records = (Record(str(i), text) for i, text in enumerate(test.texts))
    next(tagger.tag_stream(records, k=2))
    assert next(records).id == "7", "a batch at a time"
    records = (Record(str(i), text) for i, text in enumerate(test.texts))
    tagged = list(tagger.tag_stream(records, k=2))
    assert [record.id for record, _ in tagged] == [str(i) for i in range(200)]
    assert [tags for _, tags in tagged] == tagger.tag_batch(test.texts, k=2)
    with pytest.raises(DataError, match="file.jsonl:3: expected 'text', which this model reads"):
        list(tagger.tag_stream([Record("7", None, "1:1", line=3)], source="file.jsonl"))


@pytest.mark.parametrize(("k", "read"), [(5, 4), (10**9, 1)])
def test_a_stream_with_many_tags_is_tagged_in_smaller_batches(data, monkeypatch, k, read):
    monkeypatch.setattr("labelspace.tagger.inputs.MAX_TAGS", 20)
    train, test = data
    tagger = Tagger("popular").fit_dataset(Dataset(train.Y, train.labels, texts=train.texts))
    records = (Record(str(i), text) for i, text in enumerate(test.texts))
    _, tags = next(tagger.tag_stream(records, k))
    assert len(tags) == min(k, int((tagger.labels_.counts > 0).sum()))
    assert next(records).id == str(read)


def test_consistent_tags_list_ancestors_first(data):
    train, test = data
    tagger = Tagger("one_vs_rest").fit_dataset(Dataset(train.Y, train.labels, texts=train.texts))
    tree, texts = train.labels.hierarchy, test.texts
    as_ranked, closed = tagger.predict_topk(texts, 7), tagger.predict_topk(texts, 7, consistent=True)
    assert consistent_at_k(as_ranked, tree, 7) < 1
    assert consistent_at_k(closed, tree, 7) == 1
    assert np.array_equal(closed.labels, include_ancestors(tagger.predict_topk(texts, 40), tree, 7).labels)
    assert np.array_equal(tagger.predict_topk(texts, 3, consistent=True).labels, closed.labels[:, :3])
    assert tagger.predict_topk(texts, 99, consistent=True).k == 99
    assert tagger.tag(texts[3], 7, consistent=True) == tagger.tag_batch(texts, 7, consistent=True)[3]
    assert tagger.tag(texts[3], 7, consistent=True) == tagger.named(closed)[3]
    with pytest.raises(ParameterError, match="k must be an integer of at least 1, but is 0"):
        tagger.predict_topk(texts, 0, consistent=True)


def test_path_names_are_a_hierarchy_and_others_are_none():
    texts = ["rye bread", "rye bread", "fresh fish", "fresh fish"]
    leaves = [["food > bread > rye"], ["food > bread > rye"], ["food > fish"], ["food > fish"]]
    tagger = Tagger("neighbors").fit(texts, leaves)
    assert [name for name, _ in tagger.tag("rye bread", 3, consistent=True)] == [
        "food",
        "food > bread",
        "food > bread > rye",
    ]
    flat = Tagger("neighbors").fit(texts, [["rye"], ["rye"], ["fish"], ["fish"]])
    with pytest.raises(ParameterError, match=r"need a hierarchy of the labels, but .* put a hierarchy.tsv into"):
        flat.tag("rye bread", consistent=True)


def test_sure_and_consistent_go_together(data):
    train, test = data
    tagger = Tagger("blend", members="neighbors,label_tree", n_folds=2)
    tagger.fit_dataset(Dataset(train.Y, train.labels, texts=train.texts))
    sure = tagger.predict_topk(test.texts, 8, min_probability=0.3, consistent=True)
    assert (sure.labels == -1).any()
    assert sure.scores[sure.labels >= 0].min() >= 0.3
    assert consistent_at_k(sure, train.labels.hierarchy, 8) == 1


def test_labels_that_come_and_go_keep_the_hierarchy(tmp_path):
    texts = ["rye bread", "white bread", "fresh fish", "smoked fish"] * 10
    paths = [["food > bread > rye"], ["food > bread > white"], ["food > fish"], ["food > fish"]] * 10
    tagger = Tagger("glas", embedding_dim=32).fit(texts, paths)
    tagger.add_label("food > fish > smoked", ["smoked fish", "smoked"])
    tagger.save(tmp_path / "model")
    loaded = Tagger.load(tmp_path / "model")
    top = loaded.predict_topk(["smoked"], 6, consistent=True)
    listed = [name for name, _ in loaded.named(top)[0]]
    assert listed.index("food") < listed.index("food > fish") < listed.index("food > fish > smoked")
    loaded.remove_label("food > fish")
    listed = [name for name, _ in loaded.tag("smoked", 6, consistent=True)]
    assert "food > fish" not in listed
    assert listed.index("food") < listed.index("food > fish > smoked")


def test_what_is_no_sequence_of_texts_is_refused_and_columns_are_understood(tmp_path):
    texts = ["bake bread", "grill fish"] * 3
    tagger = Tagger("neighbors").fit(Column(texts), Column([["baking"], ["fish"]] * 3))
    assert tagger.tag_batch(Column(["fish", "bread"]), k=1) == tagger.tag_batch(iter(["fish", "bread"]), k=1)
    tagger.save(tmp_path / "m")
    for one in (tagger, labelspace.load(tmp_path / "m")):
        for given, message in (
            ("text", r"but is one str; use tag\(text\), or give \[text\]"),
            (Frame(title=["fish"], price=[1]), r"is a Frame with columns; give one column: df\['title'\]"),
            ({"title": "fish"}, "is one dict"),
        ):
            with pytest.raises(DataError, match=message):
                one.tag_batch(given)
            with pytest.raises(DataError, match=message):
                one.predict_topk(given)
        with pytest.raises(DataError, match="text must be one text, but is of type list; use tag_batch"):
            one.tag(["fish"])
        with pytest.raises(DataError, match="records must be of class Record"):
            list(one.tag_stream(["fish"]))
    with pytest.raises(DataError, match=r"labels must be a LabelSpace, but are list; write LabelSpace\(names\)"):
        Tagger("lexical").fit_labels(["bread"])
    single = Tagger("neighbors").fit(texts, ["baking", "fish"] * 3)
    assert single.tag_batch(texts) == tagger.tag_batch(texts)


def test_frames_are_rows_for_a_tagger_of_tables_and_features_for_one_of_features(data):
    columns = Columns(("title",), (("kind",),))
    table = replace(
        dataset_from_names(["title: bread", "title: fish"] * 3, [["kind: a"], ["kind: b"]] * 3), columns=columns
    )
    tagger = Tagger("neighbors").fit_dataset(table)
    rows = Frame(title=["fish", "bread"], price=[1, 2])
    assert [tags[0][0] for tags in tagger.tag_batch(rows, k=1)] == ["kind: b", "kind: a"]
    with pytest.raises(DataError, match=r"is one str; use tag\(text\)"):
        tagger.tag_batch("fish")
    ready = Tagger("one_vs_rest").fit_dataset(data[0])
    dense = data[1].X[:3].toarray()
    frame = pytest.importorskip("pyarrow").table({str(n): dense[:, n] for n in range(dense.shape[1])})
    assert ready.tag_batch(frame) == ready.tag_batch(dense)


def test_models_take_columns_of_texts():
    Y, labels = np.eye(2), LabelSpace(["fish", "bread"])
    model = create("lexical").fit(Column(["a fish", "rye bread"]), Y, labels=labels)
    assert model.predict_topk(iter(["bread"]), 1).labels.tolist() == [[1]]
    with pytest.raises(DataError, match="is one str"):
        create("lexical").fit("text", Y, labels=labels)


@pytest.mark.parametrize("method", ["one_vs_rest", "neighbors", "blend"])
def test_features_of_another_width_are_refused_by_a_tagger_of_texts(method):
    options = {"members": "one_vs_rest,neighbors", "boosting_rounds": 2} if method == "blend" else {}
    tagger = Tagger(method, **options).fit(["red apple", "green pear"] * 6, [["a"], ["b"]] * 6)
    for width in (1, 10_000):
        with pytest.raises(DataError, match=f"must have the .* features the model was trained on, but has {width}"):
            tagger.predict_topk(sp.csr_matrix(np.ones((1, width), np.float32)), 1)


def test_an_unknown_option_is_refused():
    tagger = Tagger("neighbors").fit(["bake bread", "grill fish"] * 2, [["baking"], ["fish"]] * 2)
    with pytest.raises(ParameterError, match="min_probability.* but is 'min_probabilty'"):
        tagger.tag("fish", min_probabilty=0.5)


def test_probabilities_are_sparse_and_those_of_the_best_labels(data):
    train, test = data
    tagger = Tagger("blend", members="neighbors,label_tree", n_folds=2)
    tagger.fit_dataset(Dataset(train.Y, train.labels, texts=train.texts))
    probabilities = tagger.predict_proba(test.texts, k=4)
    assert probabilities.shape == test.Y.shape
    assert probabilities.dtype == np.float32
    assert probabilities.has_sorted_indices
    top = tagger.predict_topk(test.texts, 4, calibrated=True)
    assert np.array_equal(TopK.from_sparse(probabilities, 4).scores, top.scores)
    sure = tagger.predict_proba(test.texts, k=4, min_probability=0.5)
    assert sure.nnz == (probabilities.data >= 0.5).sum()
    with pytest.raises(ParameterError, match="a probability needs a method that is calibrated"):
        Tagger("neighbors").fit(["bread", "fish"] * 2, [["x"], ["y"]] * 2).predict_proba(["fish"])


def test_labels_that_are_left_out_come_with_reasons(data):
    train, test = data
    tagger = Tagger("blend", members="neighbors,label_tree", n_folds=2)
    tagger.fit_dataset(Dataset(train.Y, train.labels, texts=train.texts))
    every = tagger.tag_batch(test.texts, 5)
    for options in ({"precision": 0.7}, {"min_probability": 0.4}):
        for answer, tags, all_tags in zip(
            tagger.answer_batch(test.texts, 5, **options),
            tagger.tag_batch(test.texts, 5, **options),
            every,
            strict=True,
        ):
            assert answer.tags == tags
            assert [*tags, *((label, score) for label, score, _ in answer.left_out)] == all_tags
    records = [Record(str(at), text) for at, text in enumerate(test.texts[:3])]
    streamed = [answer for _, answer in tagger.answer_stream(records, 5, precision=0.7)]
    assert streamed == tagger.answer_batch(test.texts[:3], 5, precision=0.7)
    closed = tagger.answer_batch(test.texts, 5, min_probability=0.4, consistent=True)
    reasons = [left.reason for answer in closed for left in answer.left_out]
    assert any("replaced by its ancestor" in reason for reason in reasons)
    assert all(not answer.left_out for answer in tagger.answer_batch(test.texts, 5))


@pytest.mark.parametrize("precision", [0, 1, 1.5, -0.1, float("nan")])
def test_a_precision_lies_between_0_and_1(precision):
    tagger = Tagger("neighbors").fit(["bread", "fish"] * 2, [["x"], ["y"]] * 2)
    with pytest.raises(ParameterError, match="a precision must lie between 0 and 1, but is"):
        tagger.tag("a", precision=precision)
    with pytest.raises(ParameterError, match="either min_probability or precision decides .* both are given"):
        tagger.tag("a", precision=0.9, min_probability=0.5)
    with pytest.raises(ParameterError, match="a precision needs a method that learns thresholds .* --method blend"):
        tagger.tag("a", precision=0.9)


def paths_tagger():
    texts = ["rye bread", "white bread", "fresh fish", "green tea"] * 3
    leaves = [["food > bread > rye"], ["food > bread > white"], ["food > fish"], ["drink > tea"]] * 3
    return Tagger("one_vs_rest").fit(texts, leaves)


def tagged(tagger, text="rye bread", k=9, **options):
    return [name for name, _ in tagger.tag(text, k, **options)]


def test_labels_can_be_included_and_excluded(tmp_path):
    tagger = paths_tagger()
    everything = tagged(tagger)
    assert everything[0] == "food > bread > rye"
    bread = ["food > bread > rye", "food > bread > white"]
    assert tagged(tagger, under="food > bread") == [name for name in everything if name in bread]
    assert tagged(tagger, exclude=bread[:1]) == everything[1:]
    assert tagged(tagger, include=["drink > tea"], under=["bread"], exclude=["1"]) == [
        name for name in everything if name in ("food > bread > white", "drink > tea")
    ]
    file = tmp_path / "labels.txt"
    for name in bread:  # a file may change
        file.write_text(name + "\n")
        assert tagged(tagger, include=file) == [name]
    record = Record("1", "rye bread")
    assert [[name for name, _ in tags] for _, tags in tagger.tag_stream([record] * 3, 9, exclude=bread)] == (
        [[name for name in everything if name not in bread]] * 3
    )


def test_a_refit_chooses_labels_anew():
    tagger = paths_tagger()
    assert tagged(tagger, include=["1"]) == ["food > bread > rye"]
    tagger.fit(["rye bread", "green tea"] * 3, [["loaf"], ["tea"]] * 3)
    assert tagged(tagger, include=["1"]) == ["tea"]


def test_ancestors_that_are_not_allowed_are_not_included():
    tagger = paths_tagger()
    assert tagged(tagger, k=3, consistent=True) == ["food", "food > bread", "food > bread > rye"]
    without = tagged(tagger, k=2, consistent=True, exclude=["food > bread"])
    assert without == ["food", "food > bread > rye"]
    assert tagged(tagger, consistent=True, under="bread", exclude="food > bread > white") == [
        "food > bread",
        "food > bread > rye",
    ]
