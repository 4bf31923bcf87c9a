import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from labelspace import Tagger, create
from labelspace.errors import DataError, ParameterError
from labelspace.metrics import micro_f1
from labelspace.models.base import Model
from labelspace.sklearn import TaggerClassifier
from labelspace.sklearn.classifier import RANKED

TRAIN, TEST = slice(0, 240), slice(240, 300)
QUICK = create("blend", members="one_vs_rest,neighbors", boosting_rounds=5)


@pytest.fixture(scope="module")
def calibrated(documents):
    return TaggerClassifier(QUICK).fit(documents.texts[TRAIN], documents.Y[TRAIN])


def test_it_predicts_what_the_tagger_does(documents, names):
    tagger = Tagger("one_vs_rest").fit(documents.texts[TRAIN], names[TRAIN])
    classifier = TaggerClassifier("one_vs_rest", k=3).fit(documents.texts[TRAIN], names[TRAIN])
    expected = [[name for name, _ in tags] for tags in tagger.tag_batch(documents.texts[TEST], k=3)]
    assert classifier.predict(documents.texts[TEST]).tolist() == expected
    assert classifier.threshold_ is None
    assert classifier.classes_.tolist() == list(tagger.labels_.names)


@pytest.mark.parametrize("column", [tuple, np.array, lambda texts: np.array(texts, object)])
def test_texts_come_in_any_sequence(documents, column):
    texts, Y = documents.texts, documents.Y
    classifier = TaggerClassifier("one_vs_rest", k=1).fit(column(texts), Y)
    assert not hasattr(classifier, "n_features_in_")
    one = TaggerClassifier("one_vs_rest", k=1).fit(list(texts), Y)
    assert (classifier.predict(column(texts[TEST])) != one.predict(list(texts[TEST]))).nnz == 0


@pytest.mark.parametrize("table", [sp.csr_matrix, sp.csc_array, lambda X: X.toarray()])
def test_numbers_come_sparse_or_dense(documents, table):
    X, Y = documents.X, documents.Y
    classifier = TaggerClassifier("one_vs_rest", k=1).fit(table(X), Y)
    assert classifier.n_features_in_ == X.shape[1]
    expected = create("one_vs_rest").fit(X, Y).predict(X[TEST], k=1)
    assert (classifier.predict(table(X[TEST])) != expected).nnz == 0


def test_labels_come_as_matrices_and_as_names_and_go_out_so(documents, names):
    X, Y = documents.X, documents.Y
    forms = {"csr": Y, "csc": Y.tocsc(), "dense": Y.toarray(), "names": names}
    fitted = {form: TaggerClassifier("one_vs_rest").fit(X, y) for form, y in forms.items()}
    found = {form: classifier.predict(X) for form, classifier in fitted.items()}
    for form in ("csr", "csc"):
        assert sp.issparse(found[form])
        assert (found[form] != found["csr"]).nnz == 0
        assert fitted[form].score(X, Y) == fitted["dense"].score(X, Y.toarray()) > 0.8
    assert found["dense"].dtype == np.int64
    assert np.array_equal(found["dense"], found["csr"].toarray())
    order = np.argsort(fitted["names"].classes_)
    by_name = np.array([[name in row for name in fitted["names"].classes_[order]] for row in found["names"]])
    columns = np.argsort(documents.labels.names)
    assert np.array_equal(by_name, found["dense"][:, columns])
    assert fitted["names"].score(X, names) == fitted["dense"].score(X, Y.toarray())
    assert fitted["names"].score(X, names, sample_weight=np.arange(len(names)) == 0) in (0, 1)


def test_one_class_per_document(documents, names):
    first = np.array([row[0] for row in names])
    classifier = TaggerClassifier(QUICK).fit(documents.texts[TRAIN], first[TRAIN])
    assert classifier.classes_.tolist() == sorted(set(first[TRAIN]))
    found = classifier.predict(documents.texts[TEST])
    probabilities = classifier.predict_proba(documents.texts[TEST])
    assert np.allclose(probabilities.sum(axis=1), 1)
    assert np.array_equal(classifier.classes_[probabilities.argmax(axis=1)], found)
    assert classifier.score(documents.texts[TEST], first[TEST]) == np.mean(found == first[TEST]) > 0.3
    assert classifier.threshold_ is None, "no document is held out"


def test_a_document_that_nothing_is_known_of_has_the_most_frequent_class():
    texts, classes = ["red apple", "green apple", "fast car"] * 2, ["fruit", "fruit", "a car"] * 2
    classifier = TaggerClassifier("neighbors").fit(texts, classes)
    assert classifier.predict(["unheard of", "car"]).tolist() == ["fruit", "a car"]
    assert classifier.decision_function(["unheard of"])[0] == pytest.approx(2 / 3 - 1 / 3)


def test_the_threshold_has_the_best_f1_on_held_out_documents(documents):
    X, Y = documents.X, documents.Y
    learned = TaggerClassifier("one_vs_rest").fit(X[TRAIN], Y[TRAIN])
    assert 0.1 < learned.threshold_ < 0.9
    best = micro_f1(Y[TEST], learned.predict(X[TEST]))
    for threshold in (0.05, 0.95):
        given = TaggerClassifier("one_vs_rest", threshold=threshold).fit(X[TRAIN], Y[TRAIN])
        assert given.threshold_ == threshold
        assert micro_f1(Y[TEST], given.predict(X[TEST])) < best
    again = TaggerClassifier("one_vs_rest", random_state=1, validation_fraction=0.3).fit(X[TRAIN], Y[TRAIN])
    assert again.threshold_ != learned.threshold_, "other documents were held out"


def test_the_threshold_is_learned_without_the_documents_it_is_learned_on(documents, monkeypatch):
    sizes, fit = [], Model.fit
    monkeypatch.setattr(
        Model, "fit", lambda self, X, *args, **kwargs: sizes.append(X.shape[0]) or fit(self, X, *args, **kwargs)
    )
    TaggerClassifier("one_vs_rest", validation_fraction=0.25).fit(documents.X, documents.Y)
    TaggerClassifier("one_vs_rest", k=2).fit(documents.X, documents.Y)
    assert sizes == [225, 300, 300], "the last training is on all, and k needs no other"


def test_k_and_threshold_together_are_an_upper_limit(documents):
    X, Y = documents.X, documents.Y
    both = TaggerClassifier("one_vs_rest", k=2, threshold="f1").fit(X, Y).predict(X)
    n_labels = np.diff(both.indptr)
    assert set(n_labels) <= {0, 1, 2}
    assert len(set(n_labels)) > 1
    exact = TaggerClassifier("one_vs_rest", k=2).fit(X, Y).predict(X)
    assert set(np.diff(exact.indptr)) == {2}


def test_decisions_from_zero_on_are_predicted(documents, calibrated):
    X, Y = documents.X, documents.Y
    for classifier, inputs in ((TaggerClassifier("one_vs_rest").fit(X, Y.toarray()), X), (calibrated, documents.texts)):
        dense = clone(classifier).set_params(sparse_output=False).fit(inputs, Y)
        assert np.array_equal(dense.decision_function(inputs) >= 0, dense.predict(inputs) == 1)


def test_probabilities_are_those_of_the_tagger(documents, calibrated):
    texts = documents.texts[TEST]
    found = calibrated.predict_proba(texts)
    expected = calibrated.tagger_.predict_proba(texts, k=12)
    assert sp.issparse(found)
    assert (found != expected).nnz == 0
    dense = copy.deepcopy(calibrated).set_params(sparse_output=False).predict_proba(texts)
    assert np.array_equal(dense, found.toarray())
    assert np.allclose(dense - calibrated.threshold_, calibrated.decision_function(texts).toarray(), atol=1e-6)


def test_labels_beyond_those_that_are_ranked_have_no_score():
    Y = sp.identity(RANKED + 50, format="csr")
    classifier = TaggerClassifier("one_vs_rest", k=1).fit(Y, Y)
    assert set(np.diff(classifier.decision_function(Y).indptr)) == {RANKED}
    classifier.set_params(k=RANKED + 20)
    assert set(np.diff(classifier.decision_function(Y).indptr)) == {RANKED + 20}
    assert classifier.set_params(sparse_output=False).decision_function(Y).shape == Y.shape


def test_a_dense_answer_of_very_many_labels_is_refused(documents, monkeypatch):
    monkeypatch.setattr("labelspace.sklearn.classifier.MAX_DENSE", 12 * 100)
    classifier = TaggerClassifier("one_vs_rest", k=1).fit(documents.X, documents.Y.toarray())
    assert classifier.predict(documents.X[:100]).shape == (100, 12)
    for ask in (classifier.predict, classifier.decision_function):
        with pytest.raises(
            DataError, match="at most 1200 numbers, but has 101 documents x 12 labels; set sparse_output=True"
        ):
            ask(documents.X[:101])
    assert classifier.set_params(sparse_output=True).predict(documents.X).shape == (300, 12)


def test_a_classifier_is_copied_with_what_it_learned(documents, calibrated):
    expected = calibrated.predict(documents.texts)
    for copied in (pickle.loads(pickle.dumps(calibrated)), copy.deepcopy(calibrated)):
        assert (copied.predict(documents.texts) != expected).nnz == 0
    with pytest.raises(NotFittedError):
        clone(calibrated).predict(documents.texts)


def test_the_model_that_is_given_stays_as_it_is(documents):
    model = create("one_vs_rest", C=2.0)
    classifier = TaggerClassifier(model, k=1, random_state=5).fit(documents.X, documents.Y)
    assert not model.is_fitted
    assert model.random_state == 0
    assert classifier.tagger_.model.get_params() == {**model.get_params(), "random_state": 5}


def test_random_states_are_seeds_or_draw_one(documents):
    def fit(random_state):
        classifier = TaggerClassifier("random", k=1, random_state=random_state)
        return classifier.fit(documents.X, documents.Y).predict(documents.X)

    assert (fit(3) != fit(np.int64(3))).nnz == 0
    assert (fit(3) != fit(4)).nnz > 0
    state = np.random.RandomState(0)
    assert (fit(state) != fit(state)).nnz > 0, "each training draws another seed"
    assert (fit(np.random.RandomState(0)) != fit(np.random.RandomState(0))).nnz == 0
    assert (fit(None) != fit(None)).nnz == 0


def test_features_replace_those_of_the_method(documents):
    classifier = TaggerClassifier("one_vs_rest", features="hashing", k=1).set_params(features__bits=9)
    classifier.fit(documents.texts, documents.Y)
    assert classifier.tagger_.model.n_features_ == 2**9
    with pytest.raises(ParameterError, match="features are made of texts, but X holds something else"):
        classifier.fit(documents.X, documents.Y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"method": 3}, "method of TaggerClassifier must be the name of a method, or a model, but is 3"),
        ({"method": "nonsense"}, "there is no method 'nonsense'"),
        ({"k": 0}, "k of TaggerClassifier must be"),
        ({"threshold": None}, "threshold of TaggerClassifier must be 'auto', 'f1' or a number, but is None"),
        ({"threshold": "best"}, "threshold of TaggerClassifier must be 'auto', 'f1' or a number, but is 'best'"),
        ({"validation_fraction": 1}, "validation_fraction of TaggerClassifier must be"),
        ({"sparse_output": "yes"}, "sparse_output of TaggerClassifier must be True, False or 'auto', but is 'yes'"),
        ({"n_jobs": 0}, "n_jobs of TaggerClassifier must be none, or an integer other than 0, but is 0"),
        ({"features": "nonsense"}, "features must be one of"),
    ],
)
def test_invalid_parameters_are_said_at_fit(documents, params, message):
    with pytest.raises(ParameterError, match=message):
        TaggerClassifier(**{"method": "one_vs_rest", **params}).fit(documents.texts, documents.Y)


@pytest.mark.parametrize("params", [{"k": 2}, {"threshold": 0.5}, {"threshold": "f1"}, {"sparse_output": True}])
def test_what_has_no_effect_on_one_class_is_refused(documents, params):
    with pytest.raises(ParameterError, match=f"{next(iter(params))} has an effect only with a multilabel y"):
        TaggerClassifier("one_vs_rest", **params).fit(documents.X, np.arange(300) % 3)


def test_wrong_documents_are_said(documents, names):
    by_texts = TaggerClassifier("one_vs_rest", k=1).fit(documents.texts, names)
    by_numbers = TaggerClassifier("one_vs_rest", k=1).fit(documents.X, names)
    with pytest.raises(DataError, match="was fitted on texts, but X holds something else; give a list of texts"):
        by_texts.predict(documents.X)
    with pytest.raises(DataError, match="trained on 300 ready-made features, but was given texts"):
        by_numbers.predict(documents.texts)
    with pytest.raises(DataError, match="X must be texts or numbers, but is a table with texts; give one column"):
        by_texts.fit(np.array([documents.texts, documents.texts], object).T, names)
    with pytest.raises(DataError, match="a text must be a str, but the one of row 1 is of type NoneType"):
        by_texts.fit(["a", None], [["a"], ["b"]])
    with pytest.raises(DataError, match="y must be as in training"):
        by_texts.score(documents.texts, documents.Y)


def test_too_few_labels_for_a_threshold_are_said():
    with pytest.raises(DataError, match="of 10 documents too few have labels; give more, or set k"):
        TaggerClassifier("one_vs_rest").fit(np.eye(10), [["a"]] + [[]] * 9)
    assert TaggerClassifier("one_vs_rest", threshold=0.5).fit(np.eye(10), [["a"]] + [[]] * 9).threshold_ == 0.5


def test_predict_proba_names_the_methods_that_have_it(documents):
    classifier = TaggerClassifier("one_vs_rest", k=1).fit(documents.X, documents.Y)
    with pytest.raises(AttributeError) as error:
        classifier.predict_proba(documents.X)
    assert "needs a method that is calibrated, but 'one_vs_rest' is not; use decision_function" in str(
        error.value.__cause__
    )
