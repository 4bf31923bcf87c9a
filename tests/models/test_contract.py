"""What every registered model keeps; found by discovery, so a new method is tested the day it is registered."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline

import labelspace
from labelspace.data.synthetic import planted
from labelspace.errors import DataError, NotFittedError, ParameterError
from labelspace.features.views import TEXT, ViewTransformer
from labelspace.models.base import Model
from labelspace.models.capabilities import Calibrated, Checkpoints, ZeroShot, require
from labelspace.models.registry import METHODS, create, method
from labelspace.types import LabelSpace
from tests.checks import digest, precision_at_1, same_topk
from tests.models.text2text.t5_folder import write_t5_folder
from tests.models.variants import CONVERGED, OTHERS, PRESETS, PRETRAINED, SMALL

SLOW = (
    "glas",
    "poincare",
    "neuralxc",
    "hierarchicalxc",
    "secseq",
    "mlc2seq",
    "text2text",
    "treespace",
    "xmlcnn",
    "blend",
)
NAMED = ("lexical",)  # must know the names of labels
EXTRAS = {"secseq": "torch", "mlc2seq": "torch", "text2text": "transformers"}


def marked(name, number=None):
    value = name if number is None else (name, number)
    ident = name if number is None else f"{name}-{number}"
    return pytest.param(value, marks=[pytest.mark.slow] * (name in SLOW), id=ident)


@pytest.fixture(params=[marked(name) for name in METHODS])
def name(request) -> str:
    pytest.importorskip(EXTRAS.get(request.param, "numpy"))
    return request.param


@pytest.fixture(params=[marked(name, i) for name, others in OTHERS.items() for i in range(len(others))])
def variant(request) -> Model:
    name, number = request.param
    pytest.importorskip(EXTRAS.get(name, "numpy"))
    return create(name, **OTHERS[name][number])


@pytest.fixture(scope="session")
def few():
    """Fewer documents, for what is trained several times."""
    whole = planted(n=360, d=300, l=20, texts=True, seed=7)
    return whole.rows(range(300)), whole.rows(range(300, 360))


def made(name, **params) -> Model:
    return create(name, **{**SMALL.get(name, {}), **params})


class Inputs:
    """Documents as a model reads them: their features, or the views that it needs of their texts."""

    def __init__(self, model: Model, train):
        texts = replace(train, X=None, texts=self.texts(model, train))
        views = model.views(texts)
        self.model, self.train = model, train
        self.transformer = None
        if model.name == "blend" or not all(view.is_matrix for view in views):
            self.transformer = ViewTransformer(views)
            self.train_views = self.transformer.fit_transform(texts.texts)

    @staticmethod
    def texts(model, documents):
        if model.name not in NAMED:
            return documents.texts
        names, pairs = documents.labels.names, zip(documents.texts, documents.Y, strict=True)
        return [" ".join([text, *(names[i] for i in row.indices)]) for text, row in pairs]  # signatures, and names too

    def __call__(self, documents):
        if self.transformer is None:
            return documents.X
        if documents is self.train:
            return self.train_views  # some may be needed in training alone
        return self.transformer.transform(self.texts(self.model, documents))


def reads_text(name) -> bool:
    return method(name).view == TEXT


def rows(X, index):
    return X.rows(index) if hasattr(X, "tables") else X[index]


def known(name, labels):
    """What ``fit`` must know of the labels."""
    return {"labels": labels} if name in NAMED else {}


@pytest.fixture(scope="module")
def trained() -> dict:
    return {}


@pytest.fixture
def fitted(name, data, trained):
    """A fitted model and its inputs; trained once, and each test has its own."""
    if name not in trained:
        train, _ = data
        model = made(name, **CONVERGED.get(name, {}))
        inputs = Inputs(model, train)
        trained[name] = model.fit(inputs(train), train.Y, labels=train.labels), inputs
    model, inputs = trained[name]
    return deepcopy(model), inputs


def fit(model, few, **params):
    train, _ = few
    inputs = Inputs(model, train)
    return model.fit(inputs(train), train.Y, labels=train.labels, **params), inputs


def test_it_finds_planted_labels(name, fitted, data):
    model, inputs = fitted
    train, test = data
    share = np.sort(train.Y.sum(axis=0).A1)[-1] / len(train)
    least = {"popular": 0.7 * share, "random": 0.01}.get(name, 0.85)
    assert precision_at_1(model, test, inputs(test)) > least


def test_the_answer_has_the_declared_shape(name, fitted, data):
    model, inputs = fitted
    top = model.predict_topk(inputs(data[1]), k=4)
    assert top.labels.shape == top.scores.shape == (200, 4)
    assert top.labels.dtype == np.int32
    assert top.scores.dtype == np.float32
    assert (top.scores[:, 1:] <= top.scores[:, :-1]).all(), "best first"
    assert all(len(set(row[row >= 0])) == (row >= 0).sum() for row in top.labels), "no label twice"
    assert ((top.labels == -1) == np.isneginf(top.scores)).all(), "padding is -1 and -inf together"


def check_batch_equals_single_rows(model, X, n, step):
    batch = model.predict_topk(X, k=5)
    # torch sums the words of a sequence in an order that depends on the batch.
    tolerance = 1e-5 if getattr(model, "encoder", "bag") != "bag" else 0.0
    for row in range(0, n, step):
        single = model.predict_topk(rows(X, slice(row, row + 1)), k=5)
        assert np.array_equal(single.labels[0], batch.labels[row])
        np.testing.assert_allclose(single.scores[0], batch.scores[row], rtol=tolerance)


def test_a_batch_equals_single_rows(name, fitted, data):
    model, inputs = fitted
    check_batch_equals_single_rows(model, inputs(data[1]), 200, 23)


def test_sparse_equals_dense(name, fitted, data):
    model, inputs = fitted
    if inputs.transformer is not None:
        pytest.skip("reads texts or views")
    X = data[1].X
    assert same_topk(model.predict_topk(X, k=5), model.predict_topk(X.toarray(), k=5))
    assert same_topk(model.predict_topk(X, k=5), model.predict_topk(sp.coo_array(X).astype(np.float64), k=5))


def test_k_over_the_number_of_labels_is_padded(name, fitted, data):
    model, inputs = fitted
    top = model.predict_topk(rows(inputs(data[1]), slice(3)), k=100)
    assert top.labels.shape == (3, 100)
    assert (top.labels[:, 40:] == -1).all()


def test_k_only_cuts_the_list(name, fitted, data):
    model, inputs = fitted
    X = inputs(data[1])
    assert same_topk(model.predict_topk(X, k=10).padded(3), model.predict_topk(X, k=3))


EXACT = {"label_tree": {"beam_size": 100}, "hierarchicalxc": {"beam_size": 100}}
"""Where a beam would keep labels from the list of all."""


def check_filter_equals_the_full_list(model, X):
    """Among some labels, the answer is the list of all labels without the others: the same order, the same scores."""
    n_labels = model.n_labels_
    full = model.predict_topk(X, k=n_labels)
    few = np.random.default_rng(3).permutation(n_labels) < 7
    for allowed in (few, ~few, np.arange(n_labels) == max(full.labels[0, 0], 0)):
        for k in (1, 5, n_labels):
            found, expected = model.predict_topk(X, k, allowed=allowed), full.among(allowed, k)
            np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-5)
            tied = np.isclose(expected.scores[:, 1:], expected.scores[:, :-1], rtol=1e-5).any(axis=1)
            assert np.array_equal(found.labels[~tied], expected.labels[~tied])
            assert allowed[found.labels[found.labels >= 0]].all()
    assert same_topk(model.predict_topk(X, 5, allowed=np.ones(n_labels, bool)), model.predict_topk(X, 5))


def test_a_filter_equals_the_full_list_without_the_others(name, fitted, data):
    model, inputs = fitted
    check_filter_equals_the_full_list(model.set_params(**EXACT.get(name, {})), rows(inputs(data[1]), slice(40)))


def test_a_filter_that_is_no_mask_is_refused(name, fitted, data):
    model, inputs = fitted
    X = rows(inputs(data[1]), slice(2))
    for wrong, what in (([True] * 40, "is of type list"), (np.ones(39, bool), "shape"), (np.ones(40), "float64")):
        with pytest.raises(ParameterError, match=f"one for each of 40 labels, but .*{what}.*; give such a mask"):
            model.predict_topk(X, allowed=wrong)
    with pytest.raises(ParameterError, match="at least one label must be allowed"):
        model.predict_topk(X, allowed=np.zeros(40, bool))


def test_empty_rows_and_rows_without_labels_are_allowed(name, few):
    train, _ = few
    X, Y = train.X[:60].tolil(), train.Y[:60].tolil()
    X[3], Y[5], Y[:, 7] = 0, 0, 0
    part = replace(train.rows(range(60)), X=X.tocsr(), Y=Y.tocsr(), texts=["", *train.texts[:59]])
    model = made(name)
    inputs = Inputs(model, part)
    model.fit(inputs(part), part.Y, **known(name, train.labels))
    empty = sp.csr_matrix((1, X.shape[1])) if inputs.transformer is None else inputs.transformer.transform([""])
    top = model.predict_topk(empty, k=3)
    assert top.labels.shape == (1, 3)
    assert not np.isnan(top.scores).any()


def test_a_label_never_seen_is_never_suggested_before_a_seen_one(name, few):
    if name in NAMED:
        pytest.skip("suggests new labels by their names")
    train, test = few
    hidden = 11
    Y = train.Y.tolil()
    Y[:, hidden] = 0
    model = made(name)
    inputs = Inputs(model, train)
    top = model.fit(inputs(train), Y.tocsr()).predict_topk(inputs(test), k=20)
    for row in top.labels:
        assert hidden not in row[: (row >= 0).sum() - 1]


def test_a_label_with_one_document_is_learned_without_fuss(name, few):
    train, _ = few
    extra = sp.csr_matrix(([1.0], ([0], [0])), shape=(len(train), 1))
    model = made(name)
    inputs = Inputs(model, train)
    Y = sp.hstack([train.Y, extra]).tocsr()
    model.fit(inputs(train), Y, **known(name, train.labels.extended(["one more"])))
    assert model.predict_topk(rows(inputs(train), slice(1)), k=5).labels.shape == (1, 5)


def test_a_single_label_and_a_single_document_suffice(name):
    given = ["a word or two"] if reads_text(name) else sp.csr_matrix(np.array([[1.0, 0.0]]))
    model = made(name).fit(given, np.array([[1]]), **known(name, LabelSpace(["word"])))
    assert model.predict_topk(given, k=2).labels.tolist() == [[0, -1]]


def test_documents_without_any_feature_get_an_answer(name):
    if reads_text(name):
        pytest.skip("reads text")
    nothing = sp.csr_matrix((4, 0), dtype=np.float32)
    model = made(name).fit(nothing, np.eye(4, 2), labels=LabelSpace(["a", "b"]))
    assert not np.isnan(model.predict_topk(nothing[:1], k=2).scores).any()


def test_inputs_are_left_as_they_are(name, few):
    train, _ = few
    X, Y = train.X.copy(), train.Y.copy()
    given = train.texts if reads_text(name) else X
    made(name).fit(given, Y, labels=train.labels).predict_topk(given[:10], k=3)
    assert (X != train.X).nnz == 0
    assert (Y != train.Y).nnz == 0
    if not reads_text(name):
        unsorted = sp.csr_matrix(([1.0, 2.0], [5, 2], [0, 2]), shape=(1, 600), dtype=np.float32)
        made(name).fit(unsorted, np.array([[1]]))
        assert unsorted.indices.tolist() == [5, 2]


def check_same_bytes_on_threads(make, few, tmp_path, monkeypatch):
    for threads in ("1", "2"):
        monkeypatch.setenv("LABELSPACE_THREADS", threads)
        fit(make(), few)[0].save(tmp_path / threads)
    assert digest(tmp_path / "1") == digest(tmp_path / "2")


def test_same_seed_same_bytes_whatever_the_number_of_threads(name, few, tmp_path, monkeypatch):
    check_same_bytes_on_threads(lambda: made(name), few, tmp_path, monkeypatch)


def check_round_trip(model, X, labels, folder):
    model.save(folder / "model")
    loaded = type(model).load(folder / "model")
    assert loaded.get_params() == model.get_params()
    assert list(loaded.labels_.names) == list(labels.names)
    assert same_topk(loaded.predict_topk(X, k=5), model.predict_topk(X, k=5))
    tagger = labelspace.load(folder / "model")
    assert type(tagger.model) is type(model)
    tagger.save(folder / "again")
    assert dict(digest(folder / "again")).items() >= dict(digest(folder / "model")).items()


def test_save_and_load_round_trip(name, fitted, data, tmp_path):
    model, inputs = fitted
    check_round_trip(model, inputs(data[1]), data[0].labels, tmp_path)


def test_refit_forgets(name, fitted, few):
    half, test = few[0].rows(range(150)), few[1]  # with fewer features and labels than what it was trained on
    model, inputs = fit(fitted[0].set_params(**made(name).get_params()), (half, test))
    fresh, _ = fit(made(name), (half, test))
    assert same_topk(model.predict_topk(inputs(test), 5), fresh.predict_topk(inputs(test), 5))


def test_an_interrupted_refit_leaves_no_half_model(name, fitted, data, monkeypatch):
    model, inputs = fitted
    train, test = data

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(model), "_fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(inputs(train), train.Y, labels=train.labels)
    with pytest.raises(NotFittedError):
        model.predict_topk(inputs(test))


def test_explicit_zeros_in_y_stay_where_they_are(name, few):
    train, test = few
    Y = train.Y.copy()
    Y.data[::7] = 0
    before = Y.nnz
    model = made(name)
    inputs = Inputs(model, train)
    model.fit(inputs(train), Y, **known(name, train.labels))
    assert Y.nnz == before
    top = model.predict_topk(inputs(test), 3)
    Y.data[:] = 1
    Y.indices[:] = 0
    assert same_topk(model.predict_topk(inputs(test), 3), top), "nothing of the caller's is kept"


def test_scikit_learn_clones_it(name, fitted):
    model, _ = fitted
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not copy.is_fitted


def test_it_stands_at_the_end_of_a_pipeline(name, few):
    train, test = few
    model = made(name)
    first = TfidfVectorizer(dtype=np.float32)
    if reads_text(name) or name == "blend":
        first = ViewTransformer(model.views(replace(train, X=None)))
    params = {f"model__{key}": value for key, value in known(name, train.labels).items()}
    given, asked = (Inputs.texts(model, part) for part in (train, test))
    marked_labels = Pipeline([("views", first), ("model", model)]).fit(given, train.Y, **params).predict(asked, k=3)
    assert marked_labels.shape == test.Y.shape
    assert 0 < marked_labels.sum() <= 3 * len(test)


def test_every_parameter_is_declared_with_what_people_need(name):
    cls = method(name)
    assert all(p.meaning.endswith(".") and p.type for p in cls.params.values())
    made(name).check_params()
    model = cls(**{key: f"marker {key}" for key in cls.params})
    assert model.get_params() == {key: f"marker {key}" for key in cls.params}, "__init__ only stores"


def test_unknown_parameters_are_refused(name):
    with pytest.raises(ParameterError, match="has no parameter 'color'"):
        made(name, color=1)
    with pytest.raises(ParameterError, match="has no parameter 'color'"):
        made(name).set_params(color=1)


def test_bad_input_is_one_clear_line(name, fitted, data):
    model, inputs = fitted
    train, _ = data
    X, Y = inputs(train), train.Y
    with pytest.raises(NotFittedError, match="must be fitted first"):
        made(name).predict_topk(X)
    with pytest.raises(ParameterError, match="k must be an integer of at least 1, but is 0"):
        model.predict_topk(X, k=0)
    with pytest.raises(ParameterError, match="k must be an integer of at least 1, but is True"):
        model.predict_topk(X, k=True)
    if not isinstance(model, Calibrated):
        with pytest.raises(ParameterError, match="a probability needs a method that is calibrated"):
            model.predict_topk(X, calibrated=True)
    if not isinstance(model, Checkpoints):
        with pytest.raises(ParameterError, match="can resume its training, .* train with --method glas, "):
            made(name).fit(X, Y, checkpoint="folder")
    with pytest.raises(DataError, match="one row per document"):
        made(name).fit(X, Y[:-1])
    with pytest.raises(DataError, match="only 0 and 1, but holds 2"):
        made(name).fit(X, Y * 2)
    with pytest.raises(DataError, match="at least one document"):
        made(name).fit(rows(X, slice(0)), Y[:0])
    with pytest.raises(DataError, match="at least one label on a document"):
        made(name).fit(X, Y * 0)
    with pytest.raises(DataError, match="3 names for 40 columns"):
        made(name).fit(X, Y, labels=LabelSpace.numbered(3))
    if name in NAMED:
        with pytest.raises(DataError, match="must know the names of the labels"):
            made(name).fit(X, Y)
    if not isinstance(model, ZeroShot):
        with pytest.raises(
            ParameterError, match="without documents needs .* train with --method lexical, semantic or blend"
        ):
            require(made(name), ZeroShot)


def test_bad_features_are_refused(name, fitted, data):
    model, inputs = fitted
    X = data[0].X.copy()
    if reads_text(name):
        with pytest.raises(DataError, match="row 1 is of type float"):
            model.predict_topk(["a", float("nan")])
        with pytest.raises(DataError, match="reads texts, but X holds features"):
            model.predict_topk(X)
        return
    with pytest.raises(DataError, match="use labelspace.Tagger"):
        model.predict_topk(["a text"])
    if inputs.transformer is not None:
        return
    with pytest.raises(DataError, match="600 features the model was trained on, but has 599"):
        model.predict_topk(X[:, :-1])
    X.data[3] = np.nan
    with pytest.raises(DataError, match="NaN or infinity"):
        made(name).fit(X, data[0].Y)


def test_what_is_no_table_of_numbers_is_refused(name, few):
    train, _ = few
    X = train.texts if reads_text(name) else train.X
    with pytest.raises(DataError, match="rows differ in length; Tagger takes lists of names"):
        made(name).fit(X, [["a"], ["a", "b"]])
    with pytest.raises(DataError, match="Y must be a table .* of numbers, but holds"):
        made(name).fit(X, np.array([["a", "b"]] * len(train)))
    with pytest.raises(DataError, match="labels must be a LabelSpace, but are list"):
        made(name).fit(X, train.Y, labels=list(train.labels.names))
    if not reads_text(name):
        broken = train.X.copy()
        broken.indices[4] = 10**6
        with pytest.raises(DataError, match="indices of a matrix must be below its width 300, but one is 1000000"):
            made(name).fit(broken, train.Y)


def test_the_method_describes_itself(name):
    cls = method(name)
    assert cls.name == name
    assert cls.title
    assert cls.choose_when
    assert ">>>" in (cls.__doc__ or ""), "a doctest shows how it is used"


# The other settings of each method: what may depend on the path taken.


def test_variants_keep_the_contract(variant, few, tmp_path, monkeypatch):
    model, inputs = check_contract(variant, few, tmp_path, monkeypatch)
    accuracy = precision_at_1(model, few[1], inputs(few[1]))
    assert accuracy > {"text2text": 0.25, "secseq": 0.25, "glas": 0.4}.get(model.name, 0.6)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "number"), [(name, i) for name, rows in PRESETS.items() for i in range(len(rows))])
def test_presets_keep_the_contract(name, number, few, tmp_path, monkeypatch):
    pytest.importorskip(EXTRAS.get(name, "numpy"))
    check_contract(create(name, **PRESETS[name][number]), few, tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def t5(few, tmp_path_factory):
    """A folder with a T5 of random weights."""
    pytest.importorskip("transformers")
    train, _ = few
    return str(write_t5_folder(tmp_path_factory.mktemp("t5"), [*train.texts, *train.labels.names]))


@pytest.mark.slow
@pytest.mark.parametrize("setting", PRETRAINED)
def test_a_pretrained_t5_keeps_the_contract(setting, t5, few, tmp_path, monkeypatch):
    model = create("text2text", **{**PRETRAINED[setting], "pretrained": t5})
    check_contract(model, few, tmp_path, monkeypatch)


def check_contract(variant, few, tmp_path, monkeypatch):
    """Batches, filters, saving, refitting and threads; returns the fitted model and what it reads."""
    train, test = few
    model, inputs = fit(variant, few)
    X = inputs(test)
    check_batch_equals_single_rows(model, X, len(test), 17)
    check_filter_equals_the_full_list(model, rows(X, slice(20)))
    check_round_trip(model, X, train.labels, tmp_path)
    monkeypatch.setenv("LABELSPACE_THREADS", "1")
    model.fit(inputs(train), train.Y, labels=train.labels)  # nothing of before is left, and threads change nothing
    model.save(tmp_path / "refit")
    assert digest(tmp_path / "refit") == digest(tmp_path / "model")
    return model, inputs


RESUMING = [name for name in METHODS if isinstance(create(name), Checkpoints) and name != "blend"]  # with epochs
NEVER_STOPPED = ("glas", "secseq")  # without patience what is kept is as in all; text2text: with a pretrained T5 below


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "patience"), [(name, 2) for name in RESUMING] + [(name, None) for name in NEVER_STOPPED]
)
def test_an_interrupted_training_resumes_to_the_same_result(name, patience, few, tmp_path):
    pytest.importorskip(EXTRAS.get(name, "numpy"))
    settings = {"patience": patience, "epochs": 4}
    check_resuming(lambda: made(name, **settings), few, tmp_path)


@pytest.mark.slow
def test_an_interrupted_training_of_a_pretrained_t5_resumes_to_the_same_result(t5, few, tmp_path):
    settings = {**PRETRAINED["transformers"], "pretrained": t5, "patience": None, "epochs": 4}
    check_resuming(lambda: create("text2text", **settings), few, tmp_path)


def check_resuming(make, few, tmp_path):
    fit(make(), few)[0].save(tmp_path / "straight")

    def interrupt(step, done, total):
        if step in ("batches", "tokens") and done > 0.6 * total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(make(), few, checkpoint=tmp_path / "kept", progress=interrupt)
    assert list((tmp_path / "kept").glob("*.safetensors")), "a checkpoint was written"
    fit(make(), few, checkpoint=tmp_path / "kept")[0].save(tmp_path / "resumed")
    assert digest(tmp_path / "resumed") == digest(tmp_path / "straight")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in METHODS if "patience" in method(name).params])
def test_validation_documents_that_are_given_stop_the_training(name, few):
    pytest.importorskip(EXTRAS.get(name, "numpy"))
    train, test = few
    settings = {"patience": 1, "epochs" if "epochs" in method(name).params else "max_iter": 3}
    model = made(name, **settings)
    inputs = Inputs(model, train)
    model.fit(inputs(train), train.Y, labels=train.labels, validation=(inputs(test), test.Y))
    lazy = made(name, **settings)
    lazy.fit(inputs(train), train.Y, labels=train.labels, validation=lambda: (inputs(test), test.Y))
    assert same_topk(model.predict_topk(inputs(test)), lazy.predict_topk(inputs(test)))
    with pytest.raises(DataError, match="validation must have one row per document"):
        model.fit(inputs(train), train.Y, labels=train.labels, validation=(inputs(test), test.Y[:-1]))
