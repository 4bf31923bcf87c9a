"""Documents vote for the labels they have."""

import numpy as np

from labelspace.kernels.knn import vote
from labelspace.kernels.threads import run_blocks
from labelspace.types import Csr, Floats, Ints, TopK

ROW_BLOCK = 64  # documents per task


def total_dcg(top: TopK, Y: Csr) -> float:
    """The discounted cumulative gain of rankings, summed over the documents."""
    hits = np.asarray(Y[np.arange(len(top.labels))[:, None], np.maximum(top.labels, 0)].todense())
    return float((hits * (top.labels >= 0) @ (1 / np.log2(np.arange(2, top.k + 2)))).sum())


def count_votes(neighbors: Ints, weights: Floats, Y: Csr, k: int, extra: TopK | None = None) -> TopK:
    """The k labels with most votes of the ``neighbors`` (n, m), rows of Y, by their weights, 0 or more.

    Labels in ``extra`` get its scores as additional votes. A neighbor of -1 does not vote.

    >>> import scipy.sparse as sp
    >>> Y = sp.csr_matrix(np.array([[1, 1, 0], [0, 1, 1]], np.float32))
    >>> count_votes(np.array([[0, 1]], np.int32), np.array([[0.75, 0.25]], np.float32), Y, k=3).labels.tolist()
    [[1, 0, 2]]
    """
    out = TopK.empty(len(neighbors), k)
    extra = TopK.empty(len(neighbors), 0) if extra is None else extra

    def count(start: int, stop: int) -> None:
        rows = slice(start, stop)
        vote(
            neighbors[rows], weights[rows], Y.indices, Y.indptr, extra.labels[rows], extra.scores[rows], Y.shape[1],
            out.labels[rows], out.scores[rows],
        )  # fmt: skip

    run_blocks(count, len(neighbors), ROW_BLOCK)
    return out
