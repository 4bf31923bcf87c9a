"""Figures of each label, on a case worked by hand and against scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import average_precision_score, f1_score, precision_recall_fscore_support

from labelspace.metrics import ScoredPairs, confusions, label_figures
from labelspace.types import TopK

Y = sp.csr_matrix([[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0]], dtype=np.float32)
# Label 3 never occurs; label 2 is only answered; document 3 has no answer.
TOP = TopK(
    np.array([[0, 2], [2, 0], [1, 0], [-1, -1]]), np.array([[0.75, 0.5], [0.75, 0.25], [0.5, 0.25], [-np.inf, -np.inf]])
)


def test_by_hand():
    found = label_figures(ScoredPairs.from_topk(Y, TOP), 0.5)
    assert found.counts.true.tolist() == [3, 2, 0, 0]
    assert found.counts.predicted.tolist() == [1, 1, 2, 0]
    assert found.counts.hits.tolist() == [1, 1, 0, 0]
    np.testing.assert_array_equal(found.precision, [1, 1, 0, np.nan])
    np.testing.assert_array_equal(found.recall, [1 / 3, 1 / 2, np.nan, np.nan])
    np.testing.assert_array_equal(found.f1, [1 / 2, 2 / 3, 0, np.nan])
    # Label 0: a hit at 0.75, then a hit and a miss at 0.25, which are kept together; the third is never found.
    np.testing.assert_allclose(found.average_precision, [(1 + 2 / 3) / 3, 1 / 2, np.nan, np.nan])
    np.testing.assert_allclose(found.best_f1, [4 / 6, 2 / 3, 0, 0])
    np.testing.assert_array_equal(found.best_threshold, [0.25, 0.5, np.nan, np.nan])


def test_confusions_by_hand():
    instead, beside = confusions(Y, TOP.at_least(0.5))
    assert instead.labels.tolist() == [[2, -1, -1], [2, -1, -1], [-1] * 3, [-1] * 3]
    assert instead.scores[0, 0] == 1  # of document 1; document 3 has no answer
    assert beside.labels.tolist() == [[-1] * 3, [-1] * 3, [0, 1, -1], [-1] * 3]


def test_no_answers():
    nothing = TopK.empty(4, 2)
    found = label_figures(ScoredPairs.from_topk(Y, nothing), None)
    assert found.recall[:2].tolist() == found.average_precision[:2].tolist() == found.best_f1[:2].tolist() == [0, 0]
    assert np.isnan(found.best_threshold).all()
    assert (confusions(Y, nothing).given_instead.labels == -1).all()


@pytest.mark.parametrize("seed", range(3))
def test_like_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    true = rng.random((50, 8)) < 0.3
    true[~true.any(axis=1), 0] = True
    scores = np.round(4 * rng.random((50, 8)) + true) / 4  # with many equal scores, exact in 32 bits
    pairs = ScoredPairs.from_topk(sp.csr_matrix(true.astype(np.float32)), TopK.from_scores(scores, 8))
    found = label_figures(pairs, 0.5)
    precision, recall, f1, n = precision_recall_fscore_support(true, scores >= 0.5)
    for ours, theirs in ((found.precision, precision), (found.recall, recall), (found.f1, f1), (found.counts.true, n)):
        np.testing.assert_allclose(ours, theirs)
    for label in range(8):
        assert found.average_precision[label] == pytest.approx(
            average_precision_score(true[:, label], scores[:, label])
        )
        best = max(np.unique(scores), key=lambda at: (f1_score(true[:, label], scores[:, label] >= at), at))
        assert found.best_threshold[label] == best
        assert found.best_f1[label] == pytest.approx(f1_score(true[:, label], scores[:, label] >= best))
