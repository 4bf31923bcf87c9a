import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from labelspace import metrics
from labelspace.errors import DataError, ParameterError
from labelspace.sklearn import TaggerClassifier, scorers
from labelspace.types import TopK

WEIGHTED = {"psp_at": metrics.psp_at_k, "psndcg_at": metrics.psndcg_at_k}
PLAIN = {
    "precision_at": metrics.precision_at_k,
    "ndcg_at": metrics.ndcg_at_k,
    "recall_at": metrics.recall_at_k,
    "r_precision_at": metrics.r_precision_at_k,
    "coverage_at": metrics.coverage_at_k,
}


@pytest.fixture(scope="module")
def fitted(documents):
    return TaggerClassifier("one_vs_rest", k=5).fit(documents.X[:200], documents.Y[:200])


def expected(name, Y, topk, k, train):
    if name in PLAIN:
        return PLAIN[name](Y, topk, k)
    counts, n = np.bincount(train.indices, minlength=train.shape[1]), train.shape[0]
    return WEIGHTED[name](Y, topk, metrics.inverse_propensity(counts, n), k)


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("name", [*PLAIN, *WEIGHTED])
def test_values_are_those_of_the_metrics(documents, fitted, name, k):
    train, X, Y = documents.Y[:200], documents.X[200:], documents.Y[200:]
    scorer = getattr(scorers, name)(k, **({"y_train": train} if name in WEIGHTED else {}))
    value = expected(name, Y, fitted.predict_topk(X, k), k, train)
    assert scorer(fitted, X, Y) == value
    assert scorer(fitted, X, Y.toarray()) == value
    assert pickle.loads(pickle.dumps(scorer))(fitted, X, Y) == value
    pipeline = make_pipeline(MaxAbsScaler(), TaggerClassifier("one_vs_rest", k=5)).fit(documents.X[:200], train)
    topk = pipeline[-1].predict_topk(pipeline[:-1].transform(X), k)
    assert scorer(pipeline, X, Y) == expected(name, Y, topk, k, train), "a pipeline has no predict_topk"


def test_scores_may_be_sparse_or_dense(documents, fitted):
    Y, scores = documents.Y[200:], fitted.decision_function(documents.X[200:])
    dense = np.full(scores.shape, -np.inf)
    dense[scores.nonzero()] = scores.data
    metric = scorers.ndcg_at(3).metric
    assert metric(Y, scores) == metric(Y, dense) == metric(Y.toarray(), dense) == metric(Y, scores.tocsc())


def test_stored_scores_rank_above_those_that_are_not(documents):
    Y = sp.csr_matrix([[0, 1, 0]])
    assert scorers.precision_at(1).metric(Y, sp.csr_matrix([[0.0, -0.5, 0.0]])) == 1


def test_metrics_work_with_make_scorer(documents, fitted):
    X, Y = documents.X[200:], documents.Y[200:].toarray()
    scorer = make_scorer(scorers.precision_at(2).metric, response_method=("predict_proba", "decision_function"))
    assert scorer(fitted, X, Y) == scorers.precision_at(2)(fitted, X, Y)


def test_other_classifiers_are_scored_too(documents):
    X, Y = documents.X, documents.Y.toarray()
    other = OneVsRestClassifier(LogisticRegression()).fit(X[:200], Y[:200])
    value = scorers.recall_at(3)(other, X[200:], Y[200:])
    assert value == metrics.recall_at_k(documents.Y[200:], TopK.from_scores(other.predict_proba(X[200:]), 3), 3)


def test_one_class_per_document_is_a_label_each(documents):
    classes = np.array(["a", "b", "c"])[np.arange(300) % 3]
    classifier = TaggerClassifier("one_vs_rest").fit(documents.X[:200], classes[:200])
    score = classifier.score(documents.X[200:], classes[200:])
    assert scorers.precision_at(1)(classifier, documents.X[200:], classes[200:]) == pytest.approx(score)
    assert scorers.recall_at(3)(classifier, documents.X[200:], classes[200:]) == 1


def test_names_that_were_not_learned_count_as_missed():
    classifier = TaggerClassifier("popular", k=1).fit(np.eye(4), [["a"], ["b"], ["a"], ["b"]])
    assert scorers.recall_at(2)(classifier, np.eye(4), [["a", "new"]] * 4) == 0.5
    assert scorers.psp_at(2, y_train=[["a"], ["b"], ["new"]] * 5)(classifier, np.eye(4), [["a"]] * 4) == 1


def test_propensities_of_other_labels_are_refused(documents, names):
    named = TaggerClassifier("one_vs_rest", k=1).fit(documents.X, names)
    with pytest.raises(DataError, match="y_train must name the labels as y does"):
        scorers.psp_at(3, y_train=documents.Y)(named, documents.X, names)
    with pytest.raises(DataError, match="y_train must name the labels as y does"):
        scorers.psp_at(3, y_train=names).metric(documents.Y, documents.Y)


def test_errors_and_names():
    with pytest.raises(ParameterError, match="k must be at least 1, but is 0"):
        scorers.precision_at(0)
    assert repr(scorers.psp_at(3, [["a"], ["b"]])) == "RankingScorer(name='PSP@3', k=3)"


def test_an_estimator_without_scores_is_refused(documents):
    class Silent:
        classes_ = np.arange(12)

    with pytest.raises(ParameterError, match="P@1 needs scores of labels, but Silent has neither predict_proba nor"):
        scorers.precision_at(1)(Silent(), documents.X, documents.Y)
