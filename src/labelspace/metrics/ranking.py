"""Ranking metrics that weigh all labels alike: precision, nDCG, recall, R-precision, coverage.

Each is a fraction from 0 to 1. Places that hold -1 are misses. Documents without labels are left out of the averages
(pyxclib keeps them, as zeros, in its P@k and nDCG@k; with labels on every document the two agree).

The functions whose names end in ``_at_k`` take (Y, TopK); those they call take a :class:`Judged`, so that a caller of
many metrics compares predictions with labels once.
"""

from __future__ import annotations

import numpy as np

from labelspace.metrics.hits import Doubles, RankedHits
from labelspace.types import Csr, TopK


def precision_at_k(Y: Csr, topk: TopK, k: int = 5) -> float:
    """P@k: the share of the first k places that are right, averaged over the documents.

    Args:
        Y: True labels, 0/1 of shape (n, n_labels).
        topk: Predictions for the same documents, best first, of k places or more.
        k: Places that count.

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.9, 0.1, 0.5], [0.2, 0.1, 0.7]], k=2)
    >>> precision_at_k(sp.csr_matrix([[1, 1, 0], [0, 0, 1]]), topk, k=2)
    0.5
    """
    return precision(RankedHits.of(Y, topk, k), k)


def ndcg_at_k(Y: Csr, topk: TopK, k: int = 5) -> float:
    """nDCG@k: hits worth 1/log2(place + 1), over the most that min(k, labels of the document) hits can be worth.

    Args:
        Y: True labels, 0/1 of shape (n, n_labels).
        topk: Predictions for the same documents, best first, of k places or more.
        k: Places that count.

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.9, 0.1, 0.5], [0.2, 0.1, 0.7]], k=2)
    >>> round(ndcg_at_k(sp.csr_matrix([[1, 1, 0], [0, 0, 1]]), topk, k=2), 4)
    0.8066
    """
    return ndcg(RankedHits.of(Y, topk, k), k)


def recall_at_k(Y: Csr, topk: TopK, k: int = 5) -> float:
    """R@k: the share of a document's labels found in the first k places, averaged over the documents.

    Args:
        Y: True labels, 0/1 of shape (n, n_labels).
        topk: Predictions for the same documents, best first, of k places or more.
        k: Places that count.

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.9, 0.1, 0.5], [0.2, 0.1, 0.7]], k=2)
    >>> recall_at_k(sp.csr_matrix([[1, 1, 0], [0, 0, 1]]), topk, k=2)
    0.75
    """
    return recall(RankedHits.of(Y, topk, k), k)


def r_precision_at_k(Y: Csr, topk: TopK, k: int = 5) -> float:
    """RP@k: hits in the first k places over min(k, labels of the document), averaged over the documents.

    Args:
        Y: True labels, 0/1 of shape (n, n_labels).
        topk: Predictions for the same documents, best first, of k places or more.
        k: Places that count.

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.9, 0.1, 0.5], [0.2, 0.1, 0.7]], k=2)
    >>> r_precision_at_k(sp.csr_matrix([[1, 1, 0], [0, 0, 1]]), topk, k=1)
    1.0
    """
    return r_precision(RankedHits.of(Y, topk, k), k)


def coverage_at_k(Y: Csr, topk: TopK, k: int = 5) -> float:
    """coverage@k: of the labels that occur in Y, the share right at least once in the first k places of a document.

    Args:
        Y: True labels, 0/1 of shape (n, n_labels).
        topk: Predictions for the same documents, best first, of k places or more.
        k: Places that count.

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.9, 0.1, 0.5], [0.2, 0.1, 0.7]], k=2)
    >>> round(coverage_at_k(sp.csr_matrix([[1, 1, 0], [0, 0, 1]]), topk, k=2), 4)
    0.6667
    """
    return coverage(RankedHits.of(Y, topk, k), k)


def precision(judged: RankedHits, k: int) -> float:
    """P@k of a judged ranking."""
    return float(judged.cut(k).sum() / (k * len(judged)))


def ndcg(judged: RankedHits, k: int) -> float:
    """nDCG@k of a judged ranking."""
    ideal = np.cumsum(discounts(k))
    gains = judged.cut(k) @ discounts(k)  # (n,)
    return float((gains / ideal[np.minimum(judged.n_true, k) - 1]).mean())


def recall(judged: RankedHits, k: int) -> float:
    """R@k of a judged ranking."""
    return float((judged.cut(k).sum(axis=1) / judged.n_true).mean())


def r_precision(judged: RankedHits, k: int) -> float:
    """RP@k of a judged ranking."""
    return float((judged.cut(k).sum(axis=1) / np.minimum(judged.n_true, k)).mean())


def coverage(judged: RankedHits, k: int) -> float:
    """coverage@k of a judged ranking."""
    found = np.bincount(judged.labels[:, :k][judged.cut(k) > 0])
    return float(np.count_nonzero(found) / np.count_nonzero(np.bincount(judged.true.indices)))


def discounts(k: int) -> Doubles:
    """What a hit is worth at the places 1..k: 1/log2(place + 1).

    >>> discounts(3).round(4).tolist()
    [1.0, 0.6309, 0.5]
    """
    return np.asarray(1.0 / np.log2(np.arange(2, k + 2)), np.float64)
