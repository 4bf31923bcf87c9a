import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.errors import DataError, ParameterError
from labelspace.metrics import ReliabilityBins, expected_calibration_error
from labelspace.types import TopK


def test_by_hand():
    # Bins of width 0.5. Low: scores 0.1 and 0.3, one of two right: |0.2 - 0.5|. High: 0.9 and 0.7, both right: 0.2.
    Y = sp.csr_matrix([[1, 0, 1], [1, 1, 0]])
    topk = TopK(np.array([[0, 1], [1, 0]], np.int32), np.array([[0.9, 0.1], [0.7, 0.3]], np.float32))
    assert expected_calibration_error(Y, topk, k=2, n_bins=2) == pytest.approx((2 * 0.3 + 2 * 0.2) / 4)


def test_documents_without_labels_count_and_padding_does_not():
    Y = sp.csr_matrix([[0, 0], [1, 0]])
    topk = TopK(np.array([[0, -1], [0, -1]], np.int32), np.array([[0.5, -np.inf], [0.5, -np.inf]], np.float32))
    assert expected_calibration_error(Y, topk, k=2) == pytest.approx(0.0)
    assert expected_calibration_error(Y, TopK.empty(2, 2), k=2) == 0.0


def test_drawn_from_their_own_probabilities_scores_are_calibrated_and_shifted_ones_are_not():
    rng = np.random.default_rng(0)
    p = rng.random((4000, 1)).astype(np.float32)
    Y = sp.csr_matrix(rng.random((4000, 1)) < p, dtype=np.float32)
    labels = np.zeros((4000, 1), np.int32)
    assert expected_calibration_error(Y, TopK(labels, p), k=1) < 0.04
    assert expected_calibration_error(Y, TopK(labels, np.sqrt(p)), k=1) > 0.1


def test_what_is_no_probability_is_refused():
    topk = TopK(np.array([[0]], np.int32), np.array([[1.5]], np.float32))
    with pytest.raises(DataError, match="between 0 and 1, but one is 1.5"):
        expected_calibration_error(sp.csr_matrix([[1]]), topk, k=1)
    with pytest.raises(ParameterError, match="n_bins must be at least 1, but is 0"):
        expected_calibration_error(sp.csr_matrix([[1]]), TopK.empty(1, 1), k=1, n_bins=0)


def test_bins_by_hand():
    Y = sp.csr_matrix([[1, 0, 1], [1, 1, 0]])
    topk = TopK(np.array([[0, 1], [1, 0]], np.int32), np.array([[0.9, 0.1], [0.7, 1.0]], np.float32))
    bins = ReliabilityBins.from_topk(Y, topk, k=2, n_bins=3)
    assert bins.n.tolist() == [1, 0, 3]
    assert bins.probability.tolist() == pytest.approx([0.1, np.nan, 2.6 / 3], nan_ok=True)
    assert bins.accuracy.tolist() == pytest.approx([0, np.nan, 1], nan_ok=True)
    assert bins.expected_calibration_error() == pytest.approx((0.1 + 0.4) / 4)
