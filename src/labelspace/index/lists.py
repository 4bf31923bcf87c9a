"""Inverted lists: vectors in groups, so that a search reads some of the groups (IVF).

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
from labelspace.index.kmeans import ROW_BLOCK, grouped, kmeans
from labelspace.index.moments import moment_power
from labelspace.kernels.inverted_lists import choose_lists
from labelspace.kernels.normalize import row_norms
from labelspace.kernels.sparse_layers import dense_forward
from labelspace.kernels.threads import run_blocks
from labelspace.types import Floats, Ints, Longs

POWER = 3 / 8  # of the queries' second moments (step 1)
LISTS = 4  # times the square root of the number of vectors
TRAINED_ON = 32  # vectors per list that k-means sees
LIST_BLOCK = 64  # lists per task


class Lists(NamedTuple):
    """Lists of n vectors, which lie side by side in a table."""

    means: Annotated[Floats, array("float32", "dimension", "n_lists")]
    starts: Annotated[Longs, offsets("n_lists", into="n")]  # list i has the rows starts[i] to starts[i + 1]

    @classmethod
    def build(cls, vectors: Floats, queries: Floats, seed: int, power: float = POWER) -> tuple[Self, Ints]:
        """Lists, and the list of each vector; ``power`` is that of the queries' second moments."""
        n_lists = min(len(vectors), round(LISTS * len(vectors) ** 0.5))
        sample = np.sort(np.random.default_rng(seed).permutation(len(vectors))[: TRAINED_ON * n_lists])
        center = vectors[sample].mean(axis=0, dtype=np.float32)
        with threadpool_limits(1, user_api="blas"):  # sums in one order
            mapping = moment_power(queries, power)

            def mapped(rows: Floats) -> Floats:
                x: Floats = np.subtract(rows, center) @ mapping
                x /= row_norms(x)[:, None]
                return x

            shuffled = np.random.default_rng([seed, 1]).permutation(sample)  # k-means begins with the first ones
            centers, list_of = kmeans(mapped(vectors[shuffled]), n_lists), np.empty(len(vectors), np.int32)

            def assign(start: int, stop: int) -> None:
                list_of[start:stop] = (mapped(vectors[start:stop]) @ centers.T).argmax(axis=1)

            run_blocks(assign, len(vectors), ROW_BLOCK)
        order, starts = grouped(list_of, n_lists)
        return cls(list_means(vectors, order, starts), starts), list_of

    def nearest(self, vectors: Floats) -> Ints:
        """The list that each new vector goes to: that of the nearest mean."""
        list_of, squares = np.empty(len(vectors), np.int32), np.square(self.means).sum(axis=0)

        def assign(start: int, stop: int) -> None:
            list_of[start:stop] = (2 * self.scores(vectors[start:stop]) - squares).argmax(axis=1)

        run_blocks(assign, len(vectors), ROW_BLOCK)
        return list_of

    def list_of(self) -> Ints:
        """The list of each row. Shape (n,)."""
        return np.repeat(np.arange(len(self.starts) - 1, dtype=np.int32), np.diff(self.starts))

    def regrouped(self, list_of: Ints) -> Self:
        """These lists with other rows."""
        sizes = np.bincount(list_of, minlength=self.means.shape[1])
        return self._replace(starts=np.concatenate([[0], np.cumsum(sizes)]))

    def scores(self, queries: Floats) -> Floats:
        """Q'm of each query and list, each row by itself. Shape (m, n_lists)."""
        n_lists = self.means.shape[1]
        out = np.empty((len(queries), n_lists), np.float32)
        dense_forward(queries, self.means, np.zeros(n_lists, np.float32), out)
        return out

    def to_read(self, queries: Floats, n_rows: int) -> Ints:
        """The lists in which each query reads, so many that they have ``n_rows`` rows, ascending; the first -1 ends."""
        scores = self.scores(queries)
        out = np.empty(scores.shape, np.int32)
        choose_lists(scores, self.starts, n_rows, out)
        return out

    def rows_needed(self, queries: Floats, rows: Longs) -> Longs:
        """How many rows a query must read to have read each of the ``rows`` (m, k) that it is asked for."""
        order = np.argsort(-self.scores(queries), axis=1, kind="stable")
        read = np.cumsum(np.diff(self.starts)[order], axis=1)
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.broadcast_to(np.arange(order.shape[1]), order.shape), axis=1)
        lists = np.searchsorted(self.starts, rows, side="right") - 1
        return np.take_along_axis(read, np.take_along_axis(rank, lists, axis=1), axis=1)


def list_means(vectors: Floats, order: Longs, starts: Longs) -> Floats:
    """The mean of the vectors of each list, 0 where it has none. Shape (dimension, n_lists)."""
    means = np.zeros((vectors.shape[1], len(starts) - 1), np.float32)

    def add(first: int, last: int) -> None:
        for at in range(first, last):
            if starts[at] < starts[at + 1]:
                means[:, at] = vectors[order[starts[at] : starts[at + 1]]].mean(axis=0)

    run_blocks(add, means.shape[1], LIST_BLOCK)
    return means
