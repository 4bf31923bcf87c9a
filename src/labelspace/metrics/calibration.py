"""Whether scores can be read as probabilities."""

import numpy as np

from labelspace.errors import DataError, ParameterError
from labelspace.metrics.checks import checked_k
from labelspace.metrics.hits import RankedHits
from labelspace.types import Csr, TopK

N_BINS = 15


def expected_calibration_error(Y: Csr, topk: TopK, k: int, n_bins: int = N_BINS) -> float:
    """ECE@k: mean gap between the scores of the top k labels and how often they are correct, from 0 (good) to 1.

    Predicted labels are grouped by score into ``n_bins`` bins of equal width. The error is |mean score - accuracy| of
    each bin, weighted by its size. Documents without labels are included: all of their predictions are wrong.

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.8, 0.1], [0.8, 0.1]], k=1)
    >>> round(expected_calibration_error(sp.csr_matrix([[1, 0], [0, 1]]), topk, k=1), 6)
    0.3
    """
    if n_bins < 1:
        raise ParameterError(f"n_bins must be at least 1, but is {n_bins}; set n_bins=1 or more")
    k = checked_k(k)
    relevant = np.zeros((len(topk), k))
    relevant[np.diff(Y.indptr) > 0] = RankedHits.from_topk(Y, topk, k).relevant
    predicted = topk.labels[:, :k] >= 0
    scores, correct = topk.scores[:, :k][predicted].astype(np.float64), relevant[predicted]
    if not scores.size:
        return 0.0
    if scores.min() < 0 or scores.max() > 1:
        worst = scores.min() if scores.min() < 0 else scores.max()
        raise DataError(f"probabilities must lie between 0 and 1, but one is {worst}; pass calibrated scores")
    bin_of = np.minimum((scores * n_bins).astype(np.int64), n_bins - 1)
    return float(np.abs(np.bincount(bin_of, scores - correct, minlength=n_bins)).sum() / scores.size)
