"""Changes from one answer to another, on a case worked by hand and against SciPy's binomial test."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import binomtest

from labelspace.metrics import changes, mcnemar_test
from labelspace.types import TopK


def test_by_hand():
    Y = sp.csr_matrix([[1, 1, 0, 0], [0, 0, 1, 0]], dtype=np.float32)
    old = TopK.from_scores([[0.9, -np.inf, 0.5, -np.inf], [-np.inf, -np.inf, 0.9, -np.inf]], 2)
    new = TopK.from_scores([[0.9, 0.5, -np.inf, -np.inf], [-np.inf, -np.inf, -np.inf, 0.9]], 2)
    found = changes(Y, old, new)
    # Document 0 gains the true label 1 and loses the wrong label 2; document 1 has the wrong label 3, not the true 2.
    assert found.better.toarray().tolist() == [[0, 1, 1, 0], [0, 0, 0, 0]]
    assert found.worse.toarray().tolist() == [[0, 0, 0, 0], [0, 0, 1, 1]]
    better, worse = found.by_label
    assert (better.tolist(), worse.tolist()) == ([0, 1, 1, 0], [0, 0, 1, 1])
    same = changes(Y, old, old)
    assert same.better.nnz == same.worse.nnz == 0


def test_like_scipy_and_corrected_for_the_labels_that_can_be_significant():
    better, worse = np.array([10, 6, 5, 0, 4, 20]), np.array([0, 0, 0, 0, 4, 7])
    found = mcnemar_test(better, worse)
    assert found.labels.tolist() == [0, 1, 4, 5]  # 5 of 5 has p = 0.0625
    p = [binomtest(int(better[label]), int(better[label] + worse[label])).pvalue for label in found.labels]
    np.testing.assert_allclose(found.p_holm, [4 * p[0], 2 * p[1], p[2], 3 * p[3]])


def test_equal_answers_are_rarely_called_different():
    rng = np.random.default_rng(0)
    n = rng.poisson(8, (400, 300))
    better = rng.binomial(n, 0.5)
    wrong = [(mcnemar_test(b, w).p_holm < 0.05).any() for b, w in zip(better, n - better, strict=True)]
    assert np.mean(wrong) < 0.05


@pytest.mark.parametrize("n", [0, 3])
def test_nothing_to_test(n):
    assert not mcnemar_test(np.zeros(n, np.int64), np.ones(n, np.int64)).labels.size
