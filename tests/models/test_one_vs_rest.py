import numpy as np
import pytest
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from labelspace.features.normalize import normalize_rows
from labelspace.models.one_vs_rest import OneVsRest


def test_it_ranks_as_scikit_learn_at_the_same_optimum(data):
    train, test = data
    ours = OneVsRest(C=1.0, threshold=0.0, tol=1e-6, max_iter=2000).fit(train.X, train.Y)
    theirs = OneVsRestClassifier(LinearSVC(C=1.0, tol=1e-8, max_iter=20000, dual=True, random_state=0))
    margins = theirs.fit(normalize_rows(train.X), train.Y).decision_function(normalize_rows(test.X))
    top = ours.predict_topk(test.X, k=3)
    probabilities = 1 / (1 + np.exp(-2 * np.take_along_axis(margins, top.labels.astype(int), axis=1)))
    assert np.allclose(top.scores, probabilities, atol=5e-3)
    assert (top.labels[:, 0] == margins.argmax(axis=1)).mean() > 0.99


def test_pruning_drops_weights_below_the_threshold_and_nothing_else(data):
    train, _ = data
    whole = OneVsRest(threshold=0.0).fit(train.X, train.Y).weights_.toarray()
    pruned = OneVsRest(threshold=0.2).fit(train.X, train.Y).weights_.toarray()
    rounding = np.abs(whole).max(axis=1, keepdims=True) / 127
    clear = np.abs(np.abs(whole) - 0.2) > rounding
    expected = np.where(np.abs(whole) >= 0.2, whole, 0)
    assert 0 < np.count_nonzero(pruned) < np.count_nonzero(whole)
    assert (np.abs(pruned - expected) <= rounding)[clear].all()


def test_scores_lie_between_0_and_1(data):
    train, test = data
    scores = OneVsRest().fit(train.X, train.Y).predict_topk(test.X, k=40).scores
    assert ((scores > 0) & (scores < 1)).all()


def test_progress_reaches_the_number_of_labels(data):
    train, _ = data
    seen = []
    OneVsRest().fit(train.X, train.Y, progress=lambda *step: seen.append(step))
    assert seen[-1] == ("labels", 40, 40)


@pytest.mark.parametrize("normalize", [True, False])
def test_without_normalizing_the_length_counts(data, normalize):
    train, test = data
    model = OneVsRest(normalize=normalize).fit(train.X, train.Y)
    scaled = test.X * 5
    same = np.allclose(model.predict_topk(test.X, 3).scores, model.predict_topk(scaled, 3).scores, atol=1e-6)
    assert same == normalize
