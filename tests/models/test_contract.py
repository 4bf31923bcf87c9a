"""What every registered model keeps; found by discovery, so a new method is tested the day it is registered."""

import hashlib
from copy import deepcopy

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline

import labelspace
from labelspace.errors import DataError, NotFittedError, ParameterError
from labelspace.models.base import Model
from labelspace.models.registry import METHODS, create, method
from labelspace.types import LabelSpace, TopK

LONG_TRAINED = ("glas", "poincare", "neuralxc", "hierarchicalxc", "secseq", "mlc2seq", "text2text", "blend")


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.slow] * (name in LONG_TRAINED)) for name in METHODS])
def name(request) -> str:
    if request.param in ("secseq", "mlc2seq"):
        pytest.importorskip("torch")
    if request.param == "text2text":
        pytest.importorskip("transformers")
    return request.param


# What is trained for every test, smaller: with defaults that would take minutes.
QUICKER = {
    "blend": {"folds": 2, "rounds": 50},
    "neuralxc": {"input_layers": 64, "output_layers": 64},
    "hierarchicalxc": {"input_layers": 64},
    "secseq": {"width": 8, "hidden": 64, "memory": 32},
    "mlc2seq": {"hidden": 64, "memory": 32, "beam": 4},
    "treespace": {"hidden": 64, "learners": 2},
    "text2text": {"dimension": 64, "hidden": 64, "epochs": 2},
}
LEARNED = {"text2text": {"epochs": 15}}  # where it matters what was learned


def made(name, **params) -> Model:
    return create(name, **{**QUICKER.get(name, {}), **params})


def inputs(name, documents):
    if method(name).needs_names:  # planted texts show signatures: show the names too
        names, pairs = documents.labels.names, zip(documents.texts, documents.Y, strict=True)
        return [" ".join([text, *(names[i] for i in row.indices)]) for text, row in pairs]
    return documents.texts if method(name).reads_text else documents.X


def named(name, labels):
    """What ``fit`` must be told of the labels."""
    return {"labels": labels} if method(name).needs_names else {}


@pytest.fixture(scope="module")
def trained() -> dict[str, Model]:
    return {}


@pytest.fixture
def fitted(name, data, trained) -> Model:
    if name not in trained:
        train, _ = data
        trained[name] = made(name, **LEARNED.get(name, {})).fit(inputs(name, train), train.Y, labels=train.labels)
    return deepcopy(trained[name])  # trained once, and each test has its own


def same(one, other):
    return np.array_equal(one.labels, other.labels) and np.array_equal(one.scores, other.scores)


def test_it_finds_planted_labels(name, fitted, data):
    train, test = data
    first = fitted.predict_topk(inputs(name, test), k=1).labels[:, 0]
    precision = test.Y[np.arange(len(test)), first].mean()
    share = np.sort(train.Y.sum(axis=0).A1)[-1] / len(train)
    assert precision > {"popular": 0.7 * share, "random": 0.01}.get(name, 0.85)


def test_the_answer_has_the_declared_shape(name, fitted, data):
    top = fitted.predict_topk(inputs(name, data[1]), k=4)
    assert top.labels.shape == top.scores.shape == (200, 4)
    assert top.labels.dtype == np.int32
    assert top.scores.dtype == np.float32
    assert (top.scores[:, 1:] <= top.scores[:, :-1]).all(), "best first"
    assert all(len(set(row[row >= 0])) == (row >= 0).sum() for row in top.labels), "no label twice"
    assert ((top.labels == -1) == np.isneginf(top.scores)).all(), "padding is -1 and -inf together"


def test_a_batch_equals_single_rows(name, fitted, data):
    X = inputs(name, data[1])
    batch = fitted.predict_topk(X, k=5)
    for row in range(0, 200, 23):
        single = fitted.predict_topk(X[row : row + 1], k=5)
        assert same(single, TopK(batch.labels[[row]], batch.scores[[row]]))


def test_sparse_equals_dense(name, fitted, data):
    if method(name).reads_text:
        pytest.skip("reads text")
    X = data[1].X
    assert same(fitted.predict_topk(X, k=5), fitted.predict_topk(X.toarray(), k=5))
    assert same(fitted.predict_topk(X, k=5), fitted.predict_topk(sp.coo_array(X).astype(np.float64), k=5))


def test_k_over_the_number_of_labels_is_padded(name, fitted, data):
    top = fitted.predict_topk(inputs(name, data[1])[:3], k=100)
    assert top.labels.shape == (3, 100)
    assert (top.labels[:, 40:] == -1).all()


def test_k_only_cuts_the_list(name, fitted, data):
    X = inputs(name, data[1])
    assert same(fitted.predict_topk(X, k=10).padded(3), fitted.predict_topk(X, k=3))


def test_empty_rows_and_rows_without_labels_are_allowed(name, data):
    train, _ = data
    X, Y = train.X[:60].tolil(), train.Y[:60].tolil()
    X[3], Y[5], Y[:, 7] = 0, 0, 0
    X, Y = X.tocsr(), Y.tocsr()
    given = ["", *train.texts[:59]] if method(name).reads_text else X
    model = made(name).fit(given, Y, **named(name, train.labels))
    top = model.predict_topk([""] if method(name).reads_text else sp.csr_matrix((1, X.shape[1])), k=3)
    assert top.labels.shape == (1, 3)
    assert not np.isnan(top.scores).any()


def test_a_label_never_seen_is_never_suggested_before_a_seen_one(name, data):
    if method(name).needs_names:
        pytest.skip("suggests new labels by their names")
    train, test = data
    hidden = 11
    Y = train.Y.tolil()
    Y[:, hidden] = 0
    model = made(name).fit(inputs(name, train), Y.tocsr())
    top = model.predict_topk(inputs(name, test), k=40)
    for row in top.labels:
        assert hidden not in row[: (row >= 0).sum() - 1]


def test_a_label_with_one_document_is_learned_without_fuss(name, data):
    train, _ = data
    extra = sp.csr_matrix(([1.0], ([0], [0])), shape=(len(train), 1))
    known = named(name, train.labels.extended(["one more"]))
    model = made(name).fit(inputs(name, train), sp.hstack([train.Y, extra]).tocsr(), **known)
    assert model.predict_topk(inputs(name, train)[:1], k=5).labels.shape == (1, 5)


def test_a_single_label_and_a_single_document_suffice(name):
    given = ["a word or two"] if method(name).reads_text else sp.csr_matrix(np.array([[1.0, 0.0]]))
    model = made(name).fit(given, np.array([[1]]), **named(name, LabelSpace(["word"])))
    top = model.predict_topk(given, k=2)
    assert top.labels.tolist() == [[0, -1]]


def test_documents_without_any_feature_get_an_answer(name):
    if method(name).reads_text and not method(name).reads_features:
        pytest.skip("reads text")
    nothing = sp.csr_matrix((4, 0), dtype=np.float32)
    model = made(name).fit(nothing, np.eye(4, 2), labels=LabelSpace(["a", "b"]))
    top = model.predict_topk(nothing[:1], k=2)
    assert not np.isnan(top.scores).any()


def test_inputs_are_left_as_they_are(name, data):
    train, test = data
    X, Y = train.X.copy(), train.Y.copy()
    given = train.texts if method(name).reads_text else X
    made(name).fit(given, Y, labels=train.labels).predict_topk(given[:10], k=3)
    assert (X != train.X).nnz == 0
    assert (Y != train.Y).nnz == 0
    unsorted = sp.csr_matrix(([1.0, 2.0], [5, 2], [0, 2]), shape=(1, 600), dtype=np.float32)
    if not method(name).reads_text:
        made(name).fit(unsorted, np.array([[1]]))
        assert unsorted.indices.tolist() == [5, 2]


def digest(folder):
    files = sorted(path for path in folder.iterdir() if path.suffix != ".json")
    return [(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in files]


def test_same_seed_same_bytes_whatever_the_number_of_threads(name, data, tmp_path, monkeypatch):
    train, _ = data
    for threads in ("1", "2"):
        monkeypatch.setenv("LABELSPACE_THREADS", threads)
        made(name).fit(inputs(name, train), train.Y, labels=train.labels).save(tmp_path / threads)
    assert digest(tmp_path / "1") == digest(tmp_path / "2")


def test_save_and_load_round_trip(name, fitted, data, tmp_path):
    X = inputs(name, data[1])
    fitted.save(tmp_path / "model")
    loaded = labelspace.load(tmp_path / "model")
    assert type(loaded) is type(fitted)
    assert loaded.get_params() == fitted.get_params()
    assert list(loaded.labels_.names) == list(data[0].labels.names)
    assert same(loaded.predict_topk(X, k=5), fitted.predict_topk(X, k=5))
    loaded.save(tmp_path / "again")
    assert digest(tmp_path / "again") == digest(tmp_path / "model")


def test_refit_forgets(name, data):
    train, test = data
    half = train.rows(range(300))
    known = named(name, train.labels)
    model = made(name).fit(inputs(name, train), train.Y, **known)
    model.fit(inputs(name, half), half.Y, **known)
    fresh = made(name).fit(inputs(name, half), half.Y, **known)
    assert same(model.predict_topk(inputs(name, test), 5), fresh.predict_topk(inputs(name, test), 5))


def test_an_interrupted_refit_leaves_no_half_model(name, fitted, data, monkeypatch):
    train, test = data

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(fitted), "_fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(inputs(name, train), train.Y, labels=train.labels)
    with pytest.raises(NotFittedError):
        fitted.predict_topk(inputs(name, test))


def test_explicit_zeros_in_y_stay_where_they_are(name, data):
    train, test = data
    Y = train.Y.copy()
    Y.data[::7] = 0
    before = Y.nnz
    model = made(name).fit(inputs(name, train), Y, **named(name, train.labels))
    assert Y.nnz == before
    top = model.predict_topk(inputs(name, test), 3)
    Y.data[:] = 1
    Y.indices[:] = 0
    assert same(model.predict_topk(inputs(name, test), 3), top), "nothing of the caller's is kept"


def test_scikit_learn_clones_it(name, fitted):
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not copy.is_fitted


def test_it_stands_at_the_end_of_a_pipeline(name, data):
    train, test = data
    steps = [("model", made(name))]
    if not method(name).reads_text:
        steps.insert(0, ("tfidf", TfidfVectorizer(dtype=np.float32)))
    known = {f"model__{key}": value for key, value in named(name, train.labels).items()}
    given, asked = (inputs(name, part) if known else part.texts for part in (train, test))
    pipeline = Pipeline(steps).fit(given, train.Y, **known)
    marked = pipeline.predict(asked, k=3)
    assert marked.shape == test.Y.shape
    assert 0 < marked.sum() <= 3 * len(test)
    assert "model" in repr(clone(pipeline))


def test_every_parameter_has_a_default_and_init_only_stores(name):
    cls = method(name)
    model = cls(**{key: f"marker {key}" for key in cls.defaults()})
    assert model.get_params() == {key: f"marker {key}" for key in cls.defaults()}


def test_every_rule_belongs_to_a_parameter_and_holds_for_the_default(name):
    cls = method(name)
    assert set(cls.rules) == set(cls.defaults()), "each parameter is checked"
    made(name).check_params()


def test_unknown_parameters_are_refused(name):
    with pytest.raises(ParameterError, match="has no parameter 'color'"):
        made(name, color=1)
    with pytest.raises(ParameterError, match="has no parameter 'color'"):
        made(name).set_params(color=1)


def test_bad_input_is_one_clear_line(name, fitted, data):
    train, _ = data
    X, Y = inputs(name, train), train.Y
    with pytest.raises(NotFittedError, match="must be fitted first"):
        made(name).predict_topk(X)
    with pytest.raises(ParameterError, match="k must be a whole number of at least 1, but is 0"):
        fitted.predict_topk(X, k=0)
    with pytest.raises(ParameterError, match="k must be a whole number of at least 1, but is True"):
        fitted.predict_topk(X, k=True)
    if not fitted.gives_probabilities:
        with pytest.raises(ParameterError, match="calibrated=True needs a fitted calibration"):
            fitted.predict_topk(X, calibrated=True)
    with pytest.raises(DataError, match="one row a document"):
        made(name).fit(X, Y[:-1])
    with pytest.raises(DataError, match="only 0 and 1, but holds 2"):
        made(name).fit(X, Y * 2)
    with pytest.raises(DataError, match="at least one document"):
        made(name).fit(X[:0], Y[:0])
    with pytest.raises(DataError, match="at least one label on a document"):
        made(name).fit(X, Y * 0)
    with pytest.raises(DataError, match="3 names for 40 columns"):
        made(name).fit(X, Y, labels=LabelSpace.numbered(3))
    if method(name).needs_names:
        with pytest.raises(DataError, match="must know the names of the labels"):
            made(name).fit(X, Y)
    else:
        with pytest.raises(DataError, match="must be trained on documents"):
            made(name).fit_labels(train.labels)


def test_bad_features_are_refused(name, fitted, data):
    if method(name).reads_text:
        with pytest.raises(DataError, match="row 1 is of type float"):
            fitted.predict_topk(["a", float("nan")])
        return
    X = data[0].X.copy()
    with pytest.raises(DataError, match="600 features the model was trained on, but has 599"):
        fitted.predict_topk(X[:, :-1])
    X.data[3] = np.nan
    with pytest.raises(DataError, match="NaN or infinity"):
        made(name).fit(X, data[0].Y)
    with pytest.raises(DataError, match="holds texts"):
        fitted.predict_topk(["a text"])


def test_what_is_no_table_of_numbers_is_refused(name, data):
    train, _ = data
    X = inputs(name, train)
    with pytest.raises(DataError, match="rows differ in length; Tagger takes lists of names"):
        made(name).fit(X, [["a"], ["a", "b"]])
    with pytest.raises(DataError, match="Y must be a table .* of numbers, but holds"):
        made(name).fit(X, np.array([["a", "b"]] * len(train)))
    with pytest.raises(DataError, match="labels must be a LabelSpace, but are list"):
        made(name).fit(X, train.Y, labels=list(train.labels.names))
    if not method(name).reads_text:
        broken = train.X.copy()
        broken.indices[4] = 10**6
        with pytest.raises(DataError, match="indices of a matrix must lie below its width 600, but one is 1000000"):
            made(name).fit(broken, train.Y)


def test_the_method_describes_itself(name):
    cls = method(name)
    assert cls.name == name
    assert cls.title
    assert cls.choose_when
    assert ">>>" in (cls.__doc__ or ""), "a doctest shows how it is used"
