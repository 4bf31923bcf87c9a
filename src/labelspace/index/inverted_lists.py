"""Inverted lists: vectors in groups, so that a search reads only some of the groups (IVF).

For vectors v with mean c and queries q with second moments C = E[q q']:

1. Map x = C^3/8 (v - c), so that directions count by what queries make of them. With C^1/2, as in ``Quantized``, a few
   groups become very large. With v itself, queries read five times as much for the best five of 100,000 labels.
2. Spherical k-means of x, on a sample, finds the centers; each vector is in the list of its nearest one.
3. A query reads the lists of largest q'm, where m is the mean of the vectors v of a list, until it has read a number
   of vectors.
"""

from typing import Annotated, NamedTuple, Self

import numpy as np
from threadpoolctl import threadpool_limits

from labelspace.estimator.state_constraints import array, offsets
from labelspace.kernels.bit_planes import choose_lists
from labelspace.kernels.normalize import row_norms
from labelspace.kernels.sparse_layers import dense_forward
from labelspace.kernels.threads import fill_in_blocks, run_blocks
from labelspace.types import Doubles, Floats, Ints, Longs, TopK

POWER = 3 / 8  # of the queries' second moments (step 1): the module's docstring says what other powers do
LISTS = 4  # times the square root of the number of vectors; with more, lists are finer, and to choose them takes longer
TRAINED_ON = 32  # vectors per list that k-means sees; more take longer to build, and place the centers better
LIST_BLOCK = 64  # lists per task


class InvertedLists(NamedTuple):
    """Inverted lists of n vectors; the vectors of a list are consecutive rows of a table."""

    means: Annotated[Floats, array("float32", "dimension", "n_lists")]
    starts: Annotated[Longs, offsets("n_lists", into="n")]  # list i has the rows starts[i] to starts[i + 1]

    @classmethod
    def build(cls, vectors: Floats, queries: Floats, seed: int, power: float = POWER) -> tuple[Self, Ints]:
        """Build lists, and return the list of each vector; ``power`` is applied to the queries' second moments."""
        n_lists = min(len(vectors), round(LISTS * len(vectors) ** 0.5))
        sample = np.sort(np.random.default_rng(seed).permutation(len(vectors))[: TRAINED_ON * n_lists])
        center = vectors[sample].mean(axis=0, dtype=np.float32)
        with threadpool_limits(1, user_api="blas"):  # sums in one order
            values, basis = moment_basis(queries)
            mapping = np.asarray(basis * values**power, np.float32)  # E[q q']^power, up to a rotation

            def mapped(rows: Floats) -> Floats:
                x: Floats = np.subtract(rows, center) @ mapping
                x /= row_norms(x)[:, None]
                return x

            shuffled = np.random.default_rng([seed, 1]).permutation(sample)  # k-means begins with the first ones
            centers, list_of = spherical_kmeans(mapped(vectors[shuffled]), n_lists), np.empty(len(vectors), np.int32)
            fill_in_blocks(list_of, lambda rows: (mapped(vectors[rows]) @ centers.T).argmax(axis=1), ROW_BLOCK)
        order, starts = grouped(list_of, n_lists)
        return cls(list_means(vectors, order, starts), starts), list_of

    def nearest(self, vectors: Floats) -> Ints:
        """Return the list that each new vector goes to: the list with the nearest mean."""
        list_of, squares = np.empty(len(vectors), np.int32), np.square(self.means).sum(axis=0)
        return fill_in_blocks(
            list_of, lambda rows: (2 * self.scores(vectors[rows]) - squares).argmax(axis=1), ROW_BLOCK
        )

    def list_of(self) -> Ints:
        """Return the list of each row. Shape (n,)."""
        return np.repeat(np.arange(len(self.starts) - 1, dtype=np.int32), np.diff(self.starts))

    def regrouped(self, list_of: Ints) -> Self:
        """Return these lists with other rows, given the list of each."""
        sizes = np.bincount(list_of, minlength=self.means.shape[1])
        return self._replace(starts=np.concatenate([[0], np.cumsum(sizes)]))

    def scores(self, queries: Floats) -> Floats:
        """Return q'm of each query q and list, each row computed by itself. Shape (m, n_lists)."""
        n_lists = self.means.shape[1]
        out = np.empty((len(queries), n_lists), np.float32)
        dense_forward(queries, self.means, np.zeros(n_lists, np.float32), out)
        return out

    def to_read(self, queries: Floats, n_rows: int) -> Ints:
        """Return the lists that each query reads, ascending, until they have ``n_rows`` rows; -1 after the last."""
        scores = self.scores(queries)
        out = np.empty(scores.shape, np.int32)
        choose_lists(scores, self.starts, n_rows, out)
        return out

    def rows_needed(self, queries: Floats, ids: Ints, truth: TopK) -> Longs:
        """Return how many rows a query must read to have read each of its true ids, one number for each of them.

        ``ids`` are those of the rows.
        """
        by_id = np.argsort(ids)
        rows = by_id[np.searchsorted(ids[by_id], np.maximum(truth.labels, ids[by_id[0]]))]
        order = np.argsort(-self.scores(queries), axis=1, kind="stable")
        read = np.cumsum(np.diff(self.starts)[order], axis=1)
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.broadcast_to(np.arange(order.shape[1]), order.shape), axis=1)
        lists = np.searchsorted(self.starts, rows, side="right") - 1
        needed = np.take_along_axis(read, np.take_along_axis(rank, lists, axis=1), axis=1)
        return np.asarray(needed[truth.labels >= 0])


def list_means(vectors: Floats, order: Longs, starts: Longs) -> Floats:
    """Return the mean of the vectors of each list, 0 for an empty list. Shape (dimension, n_lists)."""
    means = np.zeros((vectors.shape[1], len(starts) - 1), np.float32)

    def add(first: int, last: int) -> None:
        for at in range(first, last):
            if starts[at] < starts[at + 1]:
                means[:, at] = vectors[order[starts[at] : starts[at + 1]]].mean(axis=0)

    run_blocks(add, means.shape[1], LIST_BLOCK)
    return means


ROW_BLOCK = 4096  # rows per task
ITERATIONS = 4


def spherical_kmeans(rows: Floats, n_centers: int) -> Floats:
    """Find centers of length 1, starting at the first rows; a center without rows stays where it is.

    The products of matrices use BLAS, within its own limit of threads: set that to 1 for sums in one order.
    """
    centers = rows[:n_centers] / row_norms(rows[:n_centers])[:, None]
    everything = np.arange(len(rows), dtype=np.int32)
    for _ in range(ITERATIONS):
        members, starts = grouped(nearest_centers(rows, everything, centers, 1)[:, 0], n_centers)
        filled = np.flatnonzero(np.diff(starts))
        centers[filled] = np.add.reduceat(rows[members], starts[filled])
        centers /= row_norms(centers)[:, None]
    return centers


def nearest_centers(table: Floats, rows: Ints, centers: Floats, n_nearest: int) -> Ints:
    """Return the centers of largest inner product with each of these rows. Shape (len(rows), n_nearest)."""
    nearest = np.empty((len(rows), n_nearest), np.int32)
    return fill_in_blocks(nearest, lambda part: largest(table[rows[part]] @ centers.T, n_nearest), ROW_BLOCK)


def largest(scores: Floats, k: int) -> Longs:
    """Return the columns of the k largest scores of each row, in no order; all columns if they are fewer."""
    n = scores.shape[1]
    if k == 1:
        return np.asarray(scores.argmax(axis=1)[:, None])
    return np.asarray(np.argpartition(scores, n - k, axis=1)[:, n - k :] if k < n else np.indices(scores.shape)[1])


def grouped(group_of: Ints, n_groups: int) -> tuple[Longs, Longs]:
    """Sort positions 0, 1, ... by their groups, and return where each group starts (and the last ends).

    >>> [part.tolist() for part in grouped(np.array([1, 0, 1], np.int32), 3)]
    [[1, 0, 2], [0, 1, 3, 3]]
    """
    order = np.argsort(group_of, kind="stable")
    return order, np.searchsorted(group_of[order], np.arange(n_groups + 1))


RIDGE = 0.1  # added to the second moments of queries, relative to their mean; more trusts the sample of queries less


def second_moments(rows: Floats) -> Doubles:
    """Return E[v v'] of rows v."""
    return np.asarray((rows.T @ rows).astype(np.float64) / len(rows))


def moment_basis(queries: Floats) -> tuple[Doubles, Doubles]:
    """Return eigenvalues and eigenvectors of E[q q'], with a ridge: directions without queries must not become 0."""
    values, basis = np.linalg.eigh(second_moments(queries))
    return np.maximum(values, 0) + max(RIDGE * float(values.mean()), 1e-12), basis
