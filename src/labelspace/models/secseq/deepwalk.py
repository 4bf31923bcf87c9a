"""DeepWalk without its training: random walks over labels that share documents, and what their pairs say.

Perozzi, Al-Rfou and Skiena, "DeepWalk: Online Learning of Social Representations" (2014).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from labelspace.kernels.random_walks import walk
from labelspace.kernels.threads import run_blocks
from labelspace.types import Csr, Ints, Longs

WALKS = 20  # walks from each label, or as many as make ``PAIRS``
LENGTH = 20  # labels a walk
WINDOW = 5  # labels of a walk so near are a pair
PAIRS = 50_000_000  # about 20 bytes each, if all are different
BLOCK = 50_000  # walks whose pairs are counted at once


def walked_pairs(Y: Csr, seed: int) -> Csr:
    """How often every two labels stand near each other on random walks: (n_labels, n_labels), symmetric.

    DeepWalk's walks, on the graph in which labels are joined by the documents that carry both, the more of them the
    likelier. The graph is never made: a step goes by way of a document, so memory is that of Y and of the pairs seen,
    however many labels a document has. Where labels are many, there are fewer walks from each.
    """
    Y = Y.sorted_indices()
    by_label = Y.T.tocsr()  # (n_labels, n_documents)
    others = np.diff(Y.indptr) - 1
    ends: Longs = np.append(0, np.cumsum(others[by_label.indices], dtype=np.int64))
    joined = np.flatnonzero(np.diff(ends[by_label.indptr])).astype(np.int32)
    pairs = sum(LENGTH - apart for apart in range(1, WINDOW + 1))
    times = max(1, min(WALKS, PAIRS // max(1, pairs * len(joined))))
    begin: Ints = np.tile(joined, times)
    counts = [sp.csr_matrix((Y.shape[1], Y.shape[1]), dtype=np.float32)] * -(-len(begin) // BLOCK)

    def count(start: int, stop: int) -> None:
        walks = np.empty((stop - start, LENGTH), np.int32)
        first = seed * 1_000_003 + start
        graph = (Y.indices, Y.indptr, by_label.indices, by_label.indptr, ends)
        walk(*graph, begin[start:stop], first, walks)
        one = np.concatenate([walks[:, :-apart].ravel() for apart in range(1, WINDOW + 1)])
        other = np.concatenate([walks[:, apart:].ravel() for apart in range(1, WINDOW + 1)])
        counts[start // BLOCK] = sp.csr_matrix((np.ones(len(one), np.float32), (one, other)), shape=Y.shape[1:] * 2)

    run_blocks(count, len(begin), BLOCK)
    total = sum(counts, sp.csr_matrix((Y.shape[1], Y.shape[1]), dtype=np.float32))
    return sp.csr_matrix(total + total.T)


def positive_information(counts: Csr) -> Csr:
    """The pointwise mutual information of the two of each pair, where it is positive: log n(i, j) n / (n(i) n(j)).

    Skip-gram with negative sampling, which DeepWalk trains on its pairs, factorizes this matrix (Levy and Goldberg,
    2014, with one negative a pair and what is negative left out); taking it apart directly needs no training.

    >>> positive_information(sp.csr_matrix(np.array([[0, 2], [2, 0]], np.float32))).toarray().round(3).tolist()
    [[0.0, 0.6930000185966492], [0.6930000185966492, 0.0]]
    """
    each = np.asarray(counts.sum(axis=1, dtype=np.float64)).ravel()
    shares = np.log(np.maximum(each, 1.0))
    found = counts.copy()
    found.data = np.log(found.data) + np.float32(np.log(max(each.sum(), 1.0)))
    found.data -= (np.repeat(shares, np.diff(counts.indptr)) + shares[counts.indices]).astype(np.float32)
    found.data = np.maximum(found.data, np.float32(0.0))
    found.eliminate_zeros()
    return found
