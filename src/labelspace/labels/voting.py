"""Documents vote for the labels they carry."""

from __future__ import annotations

import numpy as np

from labelspace.kernels.knn import vote
from labelspace.kernels.threads import run_blocks
from labelspace.types import Csr, Floats, Ints, TopK

BLOCK = 64  # documents a task


def gain(top: TopK, truth: Csr) -> float:
    """How well rankings serve documents: the sum of their right labels, each over the logarithm of its place."""
    hits = np.asarray(truth[np.arange(len(top.labels))[:, None], np.maximum(top.labels, 0)].todense())
    return float((hits * (top.labels >= 0) @ (1 / np.log2(np.arange(2, top.k + 2)))).sum())


def tally(near: Ints, weights: Floats, Y: Csr, k: int, listed: TopK | None = None) -> TopK:
    """The k labels with most votes: of the documents ``near`` (n, m), rows of Y, by their weights, 0 or more.

    Labels in ``listed`` get its scores as votes besides. An id of -1 does not vote.

    >>> import scipy.sparse as sp
    >>> Y = sp.csr_matrix(np.array([[1, 1, 0], [0, 1, 1]], np.float32))
    >>> tally(np.array([[0, 1]], np.int32), np.array([[0.75, 0.25]], np.float32), Y, k=3).labels.tolist()
    [[1, 0, 2]]
    """
    out = TopK.empty(len(near), k)
    listed = TopK.empty(len(near), 0) if listed is None else listed

    def count(start: int, stop: int) -> None:
        rows = slice(start, stop)
        vote(
            near[rows], weights[rows], Y.indices, Y.indptr, listed.labels[rows], listed.scores[rows], Y.shape[1],
            out.labels[rows], out.scores[rows],
        )  # fmt: skip

    run_blocks(count, len(near), BLOCK)
    return out
