"""DeepWalk without its training: random walks among labels that share documents, and the PMI of their pairs.

Perozzi, Al-Rfou and Skiena, "DeepWalk: Online Learning of Social Representations" (2014).
"""

import numpy as np
import scipy.sparse as sp

from labelspace.kernels.random_walks import sample_walks
from labelspace.kernels.threads import run_blocks
from labelspace.types import Csr, Ints, Longs

WALKS_PER_LABEL = 20  # or as many as make ``MAX_PAIRS``
WALK_LENGTH = 20  # labels per walk
WINDOW = 5  # maximum distance of a pair in a walk
MAX_PAIRS = 50_000_000  # about 20 bytes each, if all differ
WALK_BLOCK = 50_000  # walks whose pairs are counted at once


def walk_cooccurrence(Y: Csr, seed: int) -> Csr:
    """How often each pair of labels occurs within the window of random walks: (n_labels, n_labels), symmetric.

    The walks of DeepWalk on the graph where the weight of an edge is the number of documents with both labels. The
    graph is never built: a step goes through a document, so memory is that of Y and of the pairs, however many labels
    a document has. With many labels there are fewer walks from each.
    """
    Y = Y.sorted_indices()
    by_label = Y.T.tocsr()  # (n_labels, n_documents)
    n_others = np.diff(Y.indptr) - 1
    cumulative: Longs = np.append(0, np.cumsum(n_others[by_label.indices], dtype=np.int64))
    connected = np.flatnonzero(np.diff(cumulative[by_label.indptr])).astype(np.int32)
    pairs_per_walk = sum(WALK_LENGTH - distance for distance in range(1, WINDOW + 1))
    walks_per_label = max(1, min(WALKS_PER_LABEL, MAX_PAIRS // max(1, pairs_per_walk * len(connected))))
    starts: Ints = np.tile(connected, walks_per_label)
    shape = (Y.shape[1], Y.shape[1])
    counts = [sp.csr_matrix(shape, dtype=np.float32)] * -(-len(starts) // WALK_BLOCK)

    def count_block(start: int, stop: int) -> None:
        walks = np.empty((stop - start, WALK_LENGTH), np.int32)
        graph = (Y.indices, Y.indptr, by_label.indices, by_label.indptr, cumulative)
        sample_walks(*graph, starts[start:stop], seed * 1_000_003 + start, walks)
        rows = np.concatenate([walks[:, :-distance].ravel() for distance in range(1, WINDOW + 1)])
        columns = np.concatenate([walks[:, distance:].ravel() for distance in range(1, WINDOW + 1)])
        counts[start // WALK_BLOCK] = sp.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)

    run_blocks(count_block, len(starts), WALK_BLOCK)
    total = sum(counts, sp.csr_matrix(shape, dtype=np.float32))
    return sp.csr_matrix(total + total.T)


def positive_pmi(counts: Csr) -> Csr:
    """The positive pointwise mutual information of pairs: max(0, log n(i, j) n / (n(i) n(j))).

    Skip-gram with negative sampling, which DeepWalk trains on its pairs, factorizes this matrix (Levy and Goldberg,
    2014, with one negative per pair and without the negative part); factorizing it directly needs no training.

    >>> positive_pmi(sp.csr_matrix(np.array([[0, 2], [2, 0]], np.float32))).toarray().round(3).tolist()
    [[0.0, 0.6930000185966492], [0.6930000185966492, 0.0]]
    """
    totals = np.asarray(counts.sum(axis=1, dtype=np.float64)).ravel()
    log_totals = np.log(np.maximum(totals, 1.0))
    pmi = counts.copy()
    pmi.data = np.log(pmi.data) + np.float32(np.log(max(totals.sum(), 1.0)))
    pmi.data -= (np.repeat(log_totals, np.diff(counts.indptr)) + log_totals[counts.indices]).astype(np.float32)
    pmi.data = np.maximum(pmi.data, np.float32(0.0))
    pmi.eliminate_zeros()
    return pmi
