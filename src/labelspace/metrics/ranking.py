"""Ranking metrics without label weights: precision, nDCG, recall, R-precision, coverage.

Each is a fraction from 0 to 1. Padding (-1) counts as a miss. Documents without labels are left out of the averages
(pyxclib counts them as 0 in P@k and nDCG@k; where every document has labels, the two agree).

The functions whose names end in ``_at_k`` take (Y, TopK); the functions they call take :class:`RankedHits`, so that
a caller of several metrics compares predictions with labels once.
"""

import numpy as np

from labelspace.metrics.hits import RankedHits
from labelspace.types import Csr, Doubles, TopK


def precision_at_k(Y: Csr, topk: TopK, k: int = 5) -> float:
    """Compute P@k: the share of the top k labels that are relevant, averaged over the documents.

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.9, 0.1, 0.5], [0.2, 0.1, 0.7]], k=2)
    >>> precision_at_k(sp.csr_matrix([[1, 1, 0], [0, 0, 1]]), topk, k=2)
    0.5
    """
    return float(precisions(RankedHits.from_topk(Y, topk, k), k).mean())


def ndcg_at_k(Y: Csr, topk: TopK, k: int = 5) -> float:
    """Compute nDCG@k: sum of the discounts 1/log2(rank + 1) of the hits, over that of min(k, true labels) hits.

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.9, 0.1, 0.5], [0.2, 0.1, 0.7]], k=2)
    >>> round(ndcg_at_k(sp.csr_matrix([[1, 1, 0], [0, 0, 1]]), topk, k=2), 4)
    0.8066
    """
    return float(ndcgs(RankedHits.from_topk(Y, topk, k), k).mean())


def recall_at_k(Y: Csr, topk: TopK, k: int = 5) -> float:
    """Compute R@k: the share of a document's labels that are in the top k, averaged over the documents.

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.9, 0.1, 0.5], [0.2, 0.1, 0.7]], k=2)
    >>> recall_at_k(sp.csr_matrix([[1, 1, 0], [0, 0, 1]]), topk, k=2)
    0.75
    """
    return float(recalls(RankedHits.from_topk(Y, topk, k), k).mean())


def r_precision_at_k(Y: Csr, topk: TopK, k: int = 5) -> float:
    """Compute RP@k: hits in the top k over min(k, labels of the document), averaged over the documents.

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.9, 0.1, 0.5], [0.2, 0.1, 0.7]], k=2)
    >>> r_precision_at_k(sp.csr_matrix([[1, 1, 0], [0, 0, 1]]), topk, k=1)
    1.0
    """
    return float(r_precisions(RankedHits.from_topk(Y, topk, k), k).mean())


def coverage_at_k(Y: Csr, topk: TopK, k: int = 5) -> float:
    """Compute coverage@k: the share of the labels in Y that are a hit in the top k of at least one document.

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.9, 0.1, 0.5], [0.2, 0.1, 0.7]], k=2)
    >>> round(coverage_at_k(sp.csr_matrix([[1, 1, 0], [0, 0, 1]]), topk, k=2), 4)
    0.6667
    """
    return coverage(RankedHits.from_topk(Y, topk, k), k)


def precisions(hits: RankedHits, k: int) -> Doubles:
    """Return P@k of each document. Shape (n,)."""
    return np.asarray(hits.at_k(k).sum(axis=1) / k)


def ndcgs(hits: RankedHits, k: int) -> Doubles:
    """Return nDCG@k of each document. Shape (n,)."""
    ideal = np.cumsum(discounts(k))
    return np.asarray(hits.at_k(k) @ discounts(k) / ideal[np.minimum(hits.n_true, k) - 1])


def recalls(hits: RankedHits, k: int) -> Doubles:
    """Return R@k of each document. Shape (n,)."""
    return np.asarray(hits.at_k(k).sum(axis=1) / hits.n_true)


def r_precisions(hits: RankedHits, k: int) -> Doubles:
    """Return RP@k of each document. Shape (n,)."""
    return np.asarray(hits.at_k(k).sum(axis=1) / np.minimum(hits.n_true, k))


def coverage(hits: RankedHits, k: int) -> float:
    """Return coverage@k, from the hits."""
    covered = np.bincount(hits.labels[:, :k][hits.at_k(k) > 0])
    return float(np.count_nonzero(covered) / np.count_nonzero(np.bincount(hits.true.indices)))


def discounts(k: int) -> Doubles:
    """Return the discounts of the ranks 1..k: 1/log2(rank + 1).

    >>> discounts(3).round(4).tolist()
    [1.0, 0.6309, 0.5]
    """
    return np.asarray(1.0 / np.log2(np.arange(2, k + 2)), np.float64)
