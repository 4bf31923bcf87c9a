"""Propensity-scored metrics: a hit on a rare label weighs more, for the truth misses rare labels more often.

Jain, Prabhu, Varma: Extreme Multi-label Loss Functions for Recommendation, Tagging, Ranking & Other Missing Label
Applications (KDD 2016). With n_l the training documents of label l and N all of them::

    1/p_l = 1 + C (n_l + B)^-A        C = (ln N - 1) (B + 1)^A

Both metrics are a ratio of sums over the test set, what the ranking earns over the most it could earn::

    PSP@k    = sum of the weights 1/p_l of the hits    / sum of each document's k largest weights of true labels
    PSnDCG@k = the same sum, a weight at place j being worth weight / log2(j + 1), above and below the line

Against pyxclib (xclib.evaluation.xc_metrics): the weights and PSP@k are equal. Its PSnDCG@k divides each document's
gain, above and below the line, by the discounts of min(k, labels of the document) before summing; ours divides both by
those of k, which cancel, as the paper's definition has it. The two are equal where every document has k labels or more
(so always at k=1). Documents without labels add nothing to either sum in both libraries.

At N of 2 documents or fewer ln N - 1 is negative; C is then held at 0, so that no weight falls below 1.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from labelspace.errors import DataError, ParameterError
from labelspace.metrics.hits import Doubles, RankedHits
from labelspace.metrics.inputs import checked_counts
from labelspace.metrics.ranking import discounts
from labelspace.types import Csr, TopK

PRESETS: dict[str, tuple[float, float]] = {"default": (0.55, 1.5), "wikipedia": (0.5, 0.4), "amazon": (0.6, 2.6)}
"""A and B by kind of data set, as the Extreme Classification Repository fixes them."""

DEFAULT_A, DEFAULT_B = PRESETS["default"]


def inverse_propensity(
    counts: npt.ArrayLike,
    n_documents: int,
    A: float = DEFAULT_A,
    B: float = DEFAULT_B,
    n_labels: int | None = None,
) -> Doubles:
    """The weight 1/p_l of each label, 1 or more: the rarer the label, the larger.

    Args:
        counts: Training documents of each label. The field counts training labels; GLaS (its Appendix D) counts those
            of the test set: give these counts and the number of test documents to get its weights.
        n_documents: Training documents in all, N.
        A: Exponent; see ``PRESETS`` for the repository's choices.
        B: Offset added to the counts.
        n_labels: Length of the answer; labels beyond the counts are unseen ones, of count 0. None: as many as counts.

    >>> inverse_propensity([100, 10, 1], n_documents=1000).round(2).tolist()
    [1.77, 3.55, 6.91]
    """
    # A negative exponent would weigh frequent labels up, and an offset of 0 divides by the count 0.
    if not (0 <= A < math.inf and 0 < B < math.inf):
        raise ParameterError(
            f"A must be 0 or more and B above 0, but they are {A} and {B}; take a pair of PRESETS: {PRESETS}"
        )
    padded = checked_counts(counts, np.size(counts) if n_labels is None else n_labels)
    most = int(padded.max(initial=0))
    if n_documents < max(most, 1):
        raise DataError(
            f"n_documents must be at least 1 and no less than a label's count, but is {n_documents} with a count of "
            f"{most}; give the number of documents that the labels were counted in"
        )
    C = max(math.log(n_documents) - 1, 0.0) * (B + 1) ** A
    return np.asarray(1.0 + C * (padded + B) ** -A, np.float64)


def psp_at_k(Y: Csr, topk: TopK, weights: npt.ArrayLike, k: int = 5) -> float:
    """PSP@k: weights of the hits in the first k places over the largest weights that k places could have hit.

    Args:
        Y: True labels, 0/1 of shape (n, n_labels).
        topk: Predictions for the same documents, best first, of k places or more.
        weights: Of each label, from :func:`inverse_propensity`. Shape (n_labels,).
        k: Places that count.

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.9, 0.1, 0.5], [0.2, 0.1, 0.7]], k=2)
    >>> psp_at_k(sp.csr_matrix([[1, 1, 0], [0, 0, 1]]), topk, weights=[1.0, 3.0, 2.0], k=2)
    0.5
    """
    judged = RankedHits.of(Y, topk, k)
    checked = checked_weights(weights, Y.shape[1])
    return psp(earned_weights(judged, checked), ideal_weights(judged, checked), k)


def psndcg_at_k(Y: Csr, topk: TopK, weights: npt.ArrayLike, k: int = 5) -> float:
    """PSnDCG@k: as PSP@k, a weight at place j being worth weight / log2(j + 1).

    Args:
        Y: True labels, 0/1 of shape (n, n_labels).
        topk: Predictions for the same documents, best first, of k places or more.
        weights: Of each label, from :func:`inverse_propensity`. Shape (n_labels,).
        k: Places that count.

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.9, 0.1, 0.5], [0.2, 0.1, 0.7]], k=2)
    >>> round(psndcg_at_k(sp.csr_matrix([[1, 1, 0], [0, 0, 1]]), topk, weights=[1.0, 3.0, 2.0], k=2), 4)
    0.5328
    """
    judged = RankedHits.of(Y, topk, k)
    checked = checked_weights(weights, Y.shape[1])
    return psndcg(earned_weights(judged, checked), ideal_weights(judged, checked), k)


def psp(earned: Doubles, ideal: Doubles, k: int) -> float:
    """PSP@k from the weights earned and the most that could be, both (n, k or more)."""
    return float(earned[:, :k].sum() / ideal[:, :k].sum())


def psndcg(earned: Doubles, ideal: Doubles, k: int) -> float:
    """PSnDCG@k from the weights earned and the most that could be, both (n, k or more)."""
    return float(earned[:, :k].sum(axis=0) @ discounts(k) / (ideal[:, :k].sum(axis=0) @ discounts(k)))


def checked_weights(weights: npt.ArrayLike, n_labels: int) -> Doubles:
    """One positive weight for each of ``n_labels`` labels; further ones are cut off."""
    given = np.ravel(np.asarray(weights, np.float64))
    if given.size < n_labels:
        raise DataError(
            f"there must be a weight for each column of Y, but there are {given.size} for {n_labels} columns; "
            f"call inverse_propensity with n_labels={n_labels}, which counts unseen labels as 0"
        )
    wrong = given[~((given > 0) & (given < np.inf))]
    if wrong.size:
        raise DataError(f"a label's weight must be above 0 and finite, but one is {wrong[0]}; use inverse_propensity")
    return given[:n_labels]


def earned_weights(judged: RankedHits, weights: Doubles) -> Doubles:
    """The weight of each hit, 0 at a miss. Shape (n, k)."""
    # A place without a label reads the weight at -1, which its hit of 0 takes away again.
    return np.asarray(judged.hits * weights[judged.labels], np.float64)


def ideal_weights(judged: RankedHits, weights: Doubles) -> Doubles:
    """Each document's largest weights of true labels, largest first, 0 where labels run out. Shape (n, k)."""
    true, n_labels = judged.true, weights.size
    order = np.argsort(-weights, kind="stable")
    rank = np.empty(n_labels, np.int64)
    rank[order] = np.arange(n_labels)
    rows = np.repeat(np.arange(len(judged)), judged.n_true)
    # One sort of (row, rank) as a single number leaves the rows in place and each row's labels by weight.
    keys = rows * n_labels + rank[true.indices]
    keys.sort()
    place = np.arange(true.nnz) - true.indptr[rows]
    ideal = np.zeros(judged.labels.shape, order="F")
    near = place < judged.labels.shape[1]
    ideal[rows[near], place[near]] = weights[order[keys[near] - rows[near] * n_labels]]
    return ideal
