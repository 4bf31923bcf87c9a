"""Propensity-scored metrics: hits on rare labels weigh more, as rare labels are more often missing from Y.

Jain, Prabhu, Varma: Extreme Multi-label Loss Functions for Recommendation, Tagging, Ranking & Other Missing Label
Applications (KDD 2016). ``labelspace.types.propensity`` has the weights 1/p_l. Both metrics are a ratio of sums over
the test set, gain over ideal gain::

    PSP@k    = sum of the weights 1/p_l of the hits    / sum of each document's k largest weights of true labels
    PSnDCG@k = the same with each weight at rank j discounted by 1 / log2(j + 1), in both sums

Compared with pyxclib (xclib.evaluation.xc_metrics): weights and PSP@k are equal. Its PSnDCG@k divides gain and ideal
gain of each document by the discounts of min(k, labels of the document) before summing; ours divides both by those of
k, which cancel, as in the paper's definition. The two are equal where every document has at least k labels (so always
at k=1). Documents without labels add nothing to either sum in both libraries.
"""

import math

import numpy as np
import numpy.typing as npt

from labelspace.errors import DataError, ParameterError
from labelspace.metrics.hits import RankedHits, checked_counts
from labelspace.metrics.ranking import discounts
from labelspace.types import Csr, Doubles, TopK
from labelspace.types.propensity import DEFAULT_A, DEFAULT_B, propensity_weights

PRESETS = {"default": (DEFAULT_A, DEFAULT_B), "wikipedia": (0.5, 0.4), "amazon": (0.6, 2.6)}
"""A and B by kind of data set, as in the Extreme Classification Repository."""


def inverse_propensity(
    counts: npt.ArrayLike, n_documents: int, A: float = DEFAULT_A, B: float = DEFAULT_B, n_labels: int | None = None
) -> Doubles:
    """Return the weight 1/p_l of each label, at least 1: the rarer the label, the larger. Shape (n_labels,).

    GLaS (Appendix D) uses counts and number of documents of the test set: pass those to get its weights. Labels beyond
    the counts, up to ``n_labels``, are unseen.

    >>> inverse_propensity([100, 10, 1], n_documents=1000).round(2).tolist()
    [1.77, 3.55, 6.91]
    """
    # A negative exponent would favor frequent labels, and an offset of 0 divides by 0 for unseen labels.
    if not (0 <= A < math.inf and 0 < B < math.inf):
        raise ParameterError(f"A must be at least 0 and B above 0, but they are {A} and {B}; use one of {PRESETS}")
    padded = checked_counts(counts, np.size(counts) if n_labels is None else n_labels)
    max_count = int(padded.max(initial=0))
    if n_documents < max(max_count, 1):
        rule = "n_documents must be at least 1 and at least every label count"
        remedy = "pass the number of documents that the labels were counted in"
        raise DataError(f"{rule}, but is {n_documents} with a count of {max_count}; {remedy}")
    return propensity_weights(padded, n_documents, A, B)


def psp_at_k(Y: Csr, topk: TopK, weights: npt.ArrayLike, k: int = 5) -> float:
    """Compute PSP@k: sum of the weights (``inverse_propensity``) of the hits in the top k, over the largest possible.

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.9, 0.1, 0.5], [0.2, 0.1, 0.7]], k=2)
    >>> psp_at_k(sp.csr_matrix([[1, 1, 0], [0, 0, 1]]), topk, weights=[1.0, 3.0, 2.0], k=2)
    0.5
    """
    hits, checked = RankedHits.from_topk(Y, topk, k), checked_weights(weights, Y.shape[1])
    return float(gains(hits, checked)[:, :k].sum() / ideal_gains(hits, checked)[:, :k].sum())


def psndcg_at_k(Y: Csr, topk: TopK, weights: npt.ArrayLike, k: int = 5) -> float:
    """Compute PSnDCG@k: PSP@k with each weight at rank j discounted by 1 / log2(j + 1).

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.9, 0.1, 0.5], [0.2, 0.1, 0.7]], k=2)
    >>> round(psndcg_at_k(sp.csr_matrix([[1, 1, 0], [0, 0, 1]]), topk, weights=[1.0, 3.0, 2.0], k=2), 4)
    0.5328
    """
    hits, checked = RankedHits.from_topk(Y, topk, k), checked_weights(weights, Y.shape[1])
    gain, ideal = (values[:, :k].sum(axis=0) for values in (gains(hits, checked), ideal_gains(hits, checked)))
    return float(gain @ discounts(k) / (ideal @ discounts(k)))


def checked_weights(weights: npt.ArrayLike, n_labels: int) -> Doubles:
    """Check that each of ``n_labels`` labels has a positive weight, and return these; further weights are dropped."""
    given = np.ravel(np.asarray(weights, np.float64))
    if given.size < n_labels:
        rule = f"there must be a weight for each column of Y, but there are {given.size} for {n_labels} columns"
        raise DataError(f"{rule}; call inverse_propensity with n_labels={n_labels}, which counts unseen labels as 0")
    wrong = given[~((given > 0) & (given < np.inf))]
    if wrong.size:
        raise DataError(f"a label's weight must be above 0 and finite, but one is {wrong[0]}; use inverse_propensity")
    return given[:n_labels]


def gains(hits: RankedHits, weights: Doubles) -> Doubles:
    """Return the weight of each hit, 0 for a miss. Shape (n, k)."""
    # Padding reads the weight at -1, which is then multiplied by 0.
    return np.asarray(hits.relevant * weights[hits.labels], np.float64)


def ideal_gains(hits: RankedHits, weights: Doubles) -> Doubles:
    """Return the largest weights of each document's true labels, largest first, padded with 0. Shape (n, k)."""
    true, n_labels = hits.true, weights.size
    order = np.argsort(-weights, kind="stable")
    weight_rank = np.empty(n_labels, np.int64)
    weight_rank[order] = np.arange(n_labels)
    rows = np.repeat(np.arange(len(hits)), hits.n_true)
    # One sort of (row, weight rank) as a single number keeps the rows in order and sorts each row by weight.
    keys = rows * n_labels + weight_rank[true.indices]
    keys.sort()
    rank = np.arange(true.nnz) - true.indptr[rows]
    ideal = np.zeros(hits.labels.shape, order="F")
    in_top_k = rank < hits.labels.shape[1]
    ideal[rows[in_top_k], rank[in_top_k]] = weights[order[keys[in_top_k] - rows[in_top_k] * n_labels]]
    return ideal
