"""Spherical k-means of label vectors, the step that builds a label tree: balanced 2-means, or plain k-means."""

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.kernels.inner_products import dot
from labelspace.kernels.quantize import Int8s
from labelspace.kernels.random_numbers import initial_state, next_state
from labelspace.kernels.tree_classifiers import compact_rows
from labelspace.types import Floats, Ints, Longs


@kernel()
def balanced_2means(
    data: Floats, indices: Ints, indptr: Ints, members: Ints, first_half: int, max_iter: int, seed: int, sums: Floats,
    most: int,
) -> None:  # fmt: skip
    """Reorder ``members`` (unit rows of a CSR matrix) so that the first ``first_half`` of them are one cluster.

    Each iteration ranks rows by how much closer they are to the first center than to the second, and splits the
    ranking. Of more than twice ``most`` rows, evenly spread ones are iterated over, and then all are ranked once.
    ``sums`` (2, n_columns), the sums of the rows of each side, is scratch: all zeros before and after.
    """
    n, step = len(members), max(1, len(members) // most)
    if step == 1:
        side = init_sides(n, seed)
        _iterate(data, indices, indptr, members, first_half, max_iter, side, sums)
    else:
        some = members[::step].copy()
        half = (first_half * len(some) + n // 2) // n
        of_some, side = init_sides(len(some), seed), np.full(n, -1, np.int8)
        _iterate(data, indices, indptr, some, half, max_iter, of_some, sums)
        for i in range(len(some)):
            side[i * step] = of_some[i]
        _iterate(data, indices, indptr, members, first_half, 1, side, sums)
    partition_by_side(members, side, first_half)


@kernel()
def _iterate(
    data: Floats, indices: Ints, indptr: Ints, members: Ints, first_half: int, max_iter: int, side: Int8s, sums: Floats
) -> None:
    """Iterations of ``balanced_2means``; rows of ``side`` -1 are on none of the two."""
    n = len(members)
    similarity = np.empty((2, n), np.float32)
    for _ in range(max_iter):
        for i in range(n):
            if side[i] >= 0:
                for j in range(indptr[members[i]], indptr[members[i] + 1]):
                    sums[side[i], indices[j]] += data[j]
        squares = np.zeros(2, np.float64)
        for i in range(n):
            first, second = np.float32(0.0), np.float32(0.0)
            for j in range(indptr[members[i]], indptr[members[i] + 1]):
                first += data[j] * sums[0, indices[j]]
                second += data[j] * sums[1, indices[j]]
            similarity[0, i], similarity[1, i] = first, second
            if side[i] >= 0:
                squares[side[i]] += similarity[side[i], i]  # |sum|^2 is the sum of the rows' products with it
        norms = np.sqrt(np.maximum(squares, 1e-12))
        order = np.argsort(similarity[1] / norms[1] - similarity[0] / norms[0], kind="mergesort")
        changed = False
        for rank in range(n):
            new = 0 if rank < first_half else 1
            changed |= side[order[rank]] != new
            side[order[rank]] = new
        for i in range(n):
            for j in range(indptr[members[i]], indptr[members[i] + 1]):
                sums[0, indices[j]] = 0.0
                sums[1, indices[j]] = 0.0
        if not changed:
            break


@kernel()
def balanced_2means_dense(vectors: Floats, members: Ints, first_half: int, max_iter: int, seed: int) -> None:
    """``balanced_2means`` for rows of a dense table, of unit length."""
    n = len(members)
    side = init_sides(n, seed)
    rows = np.empty((n, vectors.shape[1]), np.float32)  # contiguous: they are read in every iteration
    for i in range(n):
        rows[i] = vectors[members[i]]
    sums = np.empty((2, vectors.shape[1]), np.float32)
    difference = np.empty(n, np.float32)
    for _ in range(max_iter):
        sums[:] = 0.0
        for i in range(n):
            if side[i] >= 0:
                total, row = sums[side[i]], rows[i]
                for j in range(len(row)):
                    total[j] += row[j]
        for center in sums:
            center /= np.sqrt(max(dot(center, center), np.float32(1e-12)))
        direction = sums[1] - sums[0]
        for i in range(n):
            difference[i] = dot(rows[i], direction)
        threshold = np.partition(difference, first_half - 1)[first_half - 1]
        n_ties = first_half - (difference < threshold).sum()  # rows at the threshold that go to the first half
        changed = False
        for i in range(n):
            new = 0 if difference[i] < threshold or (difference[i] == threshold and n_ties > 0) else 1
            n_ties -= difference[i] == threshold
            changed |= side[i] != new
            side[i] = new
        if not changed:
            break
    partition_by_side(members, side, first_half)


@kernel()
def init_sides(n: int, seed: int) -> Int8s:
    """Two of n rows, drawn at random, on the two sides; the others on none (-1)."""
    state = initial_state(seed)
    for _ in range(4):
        state = next_state(state)
    one = np.int64(state % np.uint64(n))
    other = (one + 1 + np.int64((state >> np.uint64(20)) % np.uint64(n - 1))) % n
    side = np.full(n, -1, np.int8)
    side[one], side[other] = 0, 1
    return side


@kernel()
def partition_by_side(members: Ints, side: Int8s, first_half: int) -> None:
    """Put the ``first_half`` members of side 0 before those of side 1, each in their old order."""
    previous = members.copy()
    offsets = np.array([0, first_half])
    for i in range(len(previous)):
        members[offsets[side[i]]] = previous[i]
        offsets[side[i]] += 1


@kernel()
def kmeans(
    data: Floats, indices: Ints, indptr: Ints, members: Ints, k: int, max_iter: int, seed: int, n_columns: int
) -> Longs:
    """Reorder ``members`` (unit rows of a CSR matrix) cluster by cluster, and return the cluster sizes.

    The initial centers are k random rows; each iteration assigns every row to the center of largest inner product.
    """
    new_column, n = np.full(n_columns, -1, np.int32), len(members)
    values, columns, row_ptr, column_ids = compact_rows(data, indices, indptr, members, new_column)
    k = min(k, n)
    state = next_state(initial_state(seed))
    drawn = np.arange(n)
    cluster = np.full(n, -1, np.int32)
    for c in range(k):
        state = next_state(state)
        other = c + np.int64(state % np.uint64(n - c))
        drawn[c], drawn[other] = drawn[other], drawn[c]
        cluster[drawn[c]] = c
    centers = np.empty((len(column_ids), k), np.float32)  # column-major: vectorized over the k centers
    products, squares, sizes = np.empty(k, np.float32), np.empty(k, np.float64), np.zeros(k, np.int64)
    for _ in range(max_iter):
        centers[:] = 0.0
        for i in range(n):
            if cluster[i] >= 0:
                for j in range(row_ptr[i], row_ptr[i + 1]):
                    centers[columns[j], cluster[i]] += values[j]
        squares[:] = 0.0
        for column in range(len(column_ids)):
            for c in range(k):
                squares[c] += centers[column, c] * centers[column, c]
        norms = np.sqrt(np.maximum(squares, 1e-12))
        changed = False
        for i in range(n):
            products[:] = 0.0
            for j in range(row_ptr[i], row_ptr[i + 1]):
                value, center = values[j], centers[columns[j]]
                for c in range(k):
                    products[c] += value * center[c]
            best = 0
            for c in range(1, k):
                if products[c] / norms[c] > products[best] / norms[best]:
                    best = c
            changed |= cluster[i] != best
            cluster[i] = best
        if not changed:
            break
    for i in range(n):
        sizes[cluster[i]] += 1
    members[:] = members[np.argsort(cluster, kind="mergesort")]
    return sizes
