"""Whether scores can be read as probabilities."""

from __future__ import annotations

import numpy as np

from labelspace.errors import DataError, ParameterError
from labelspace.metrics.hits import RankedHits
from labelspace.metrics.inputs import checked_k
from labelspace.types import Csr, TopK

BINS = 15


def expected_calibration_error(Y: Csr, topk: TopK, k: int, bins: int = BINS) -> float:
    """How far the scores of the first k places lie from how often they are right, on average. From 0 (good) to 1.

    The listed labels are parted into ``bins`` of equal width by their score; each bin counts by its size with the
    distance of its mean score from its share of right labels. Documents without labels count: all of theirs are wrong.

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.8, 0.1], [0.8, 0.1]], k=1)
    >>> round(expected_calibration_error(sp.csr_matrix([[1, 0], [0, 1]]), topk, k=1), 6)
    0.3
    """
    if bins < 1:
        raise ParameterError(f"bins must be at least 1, but is {bins}; give more")
    k = checked_k(k)
    judged = RankedHits.of(Y, topk, k)
    labeled = np.diff(Y.indptr) > 0
    hits = np.zeros((len(topk), k))
    hits[labeled] = judged.hits
    listed = topk.labels[:, :k] >= 0
    scores, right = topk.scores[:, :k][listed].astype(np.float64), hits[listed]
    if not scores.size:
        return 0.0
    if scores.min() < 0 or scores.max() > 1:
        worst = scores.min() if scores.min() < 0 else scores.max()
        raise DataError(f"probabilities must lie between 0 and 1, but one is {worst}; give calibrated scores")
    at = np.minimum((scores * bins).astype(np.int64), bins - 1)
    return float(np.abs(np.bincount(at, scores - right, minlength=bins)).sum() / scores.size)
