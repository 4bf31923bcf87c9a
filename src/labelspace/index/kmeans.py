"""Spherical k-means of many dense vectors, and the center that each of them is nearest to.

The products of matrices are those of BLAS, within its own limit of threads: set it to 1 for sums in one order.
"""

import numpy as np

from labelspace.kernels.normalize import row_norms
from labelspace.kernels.threads import run_blocks
from labelspace.types import Floats, Ints, Longs

ROW_BLOCK = 4096  # rows per task
ITERATIONS = 4


def kmeans(rows: Floats, n_centers: int) -> Floats:
    """Centers of length 1, from the first rows on; a center without rows stays where it is."""
    centers = rows[:n_centers] / row_norms(rows[:n_centers])[:, None]
    everything = np.arange(len(rows), dtype=np.int32)
    for _ in range(ITERATIONS):
        members, starts = grouped(nearest_centers(rows, everything, centers, 1)[:, 0], n_centers)
        filled = np.flatnonzero(np.diff(starts))
        centers[filled] = np.add.reduceat(rows[members], starts[filled])
        centers /= row_norms(centers)[:, None]
    return centers


def nearest_centers(table: Floats, rows: Ints, centers: Floats, n_nearest: int) -> Ints:
    """The centers of largest inner product with each of these rows. Shape (len(rows), n_nearest)."""
    nearest = np.empty((len(rows), n_nearest), np.int32)

    def find(start: int, stop: int) -> None:
        nearest[start:stop] = largest(table[rows[start:stop]] @ centers.T, n_nearest)

    run_blocks(find, len(rows), ROW_BLOCK)
    return nearest


def largest(scores: Floats, k: int) -> Longs:
    """The columns of the k largest scores of each row, in no order; all columns where they are fewer."""
    n = scores.shape[1]
    columns: Longs
    if k == 1:
        columns = scores.argmax(axis=1)[:, None]
    else:
        columns = np.argpartition(scores, n - k, axis=1)[:, n - k :] if k < n else np.indices(scores.shape)[1]
    return columns


def grouped(group_of: Ints, n_groups: int) -> tuple[Longs, Longs]:
    """Positions 0, 1, ... by their groups, and where each group starts (and the last ends).

    >>> [part.tolist() for part in grouped(np.array([1, 0, 1], np.int32), 3)]
    [[1, 0, 2], [0, 1, 3, 3]]
    """
    order = np.argsort(group_of, kind="stable")
    return order, np.searchsorted(group_of[order], np.arange(n_groups + 1))
