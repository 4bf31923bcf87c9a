"""Spherical k-means of unit rows, by which label trees are built: balanced 2-means, or plain k-means."""

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.kernels.inner_products import dot
from labelspace.kernels.quantize import Int8s
from labelspace.kernels.random_numbers import initial_state, next_state
from labelspace.kernels.tree_classifiers import compact_rows
from labelspace.types import Floats, Ints, Longs


@kernel()
def balanced_2means(
    Z: CsrArrays, members: Ints, first_half: int, max_iter: int, tol: float, seed: int, sums: Floats, sample: int
) -> None:
    """Reorder ``members``, rows of Z of unit length, so that the first ``first_half`` of them are one cluster.

    Each iteration ranks rows by how much closer they are to the first center than to the second, and splits the
    ranking. Iterations end after ``max_iter``, or when at most the share ``tol`` of the rows changes sides. If there
    are twice ``sample`` rows or more, evenly spread rows are split first, at least ``sample`` of them; the centers
    found for them are the first ones of twice as many rows, and so on up to all rows. ``sums`` (n_columns, 2), the sums
    of the rows of each side, is scratch: all zeros before and after.
    """
    n, step = len(members), 1
    while n // (2 * step) >= max(sample, 2):
        step *= 2
    side = init_sides(len(members[::step]), seed)
    while step > 1:
        some = members[::step].copy()
        _iterate_2means(Z, some, first_half * len(some) // n, max_iter, tol, side, sums)
        step //= 2
        of_some, side = side, np.full(len(members[::step]), -1, np.int8)
        for i in range(len(of_some)):
            side[2 * i] = of_some[i]
    _iterate_2means(Z, members, first_half, max_iter, tol, side, sums)
    partition_by_side(members, side, first_half)


@kernel()
def _iterate_2means(
    Z: CsrArrays, members: Ints, first_half: int, max_iter: int, tol: float, side: Int8s, sums: Floats
) -> None:
    """Iterate ``balanced_2means``; rows with ``side`` -1 are on neither side yet."""
    data, indices, indptr = Z.data, Z.indices, Z.indptr
    n = len(members)
    similarity = np.empty((2, n), np.float32)
    for i in range(n):
        if side[i] >= 0:
            for j in range(indptr[members[i]], indptr[members[i] + 1]):
                sums[indices[j], side[i]] += data[j]
    for _ in range(max_iter):
        squares = np.zeros(2, np.float64)
        for i in range(n):
            first, second = np.float32(0.0), np.float32(0.0)
            for j in range(indptr[members[i]], indptr[members[i] + 1]):
                first += data[j] * sums[indices[j], 0]
                second += data[j] * sums[indices[j], 1]
            similarity[0, i], similarity[1, i] = first, second
            if side[i] >= 0:
                squares[side[i]] += similarity[side[i], i]  # |sum|^2 is the sum of the rows' products with it
        norms = np.sqrt(np.maximum(squares, 1e-12))
        order = np.argsort(similarity[1] / norms[1] - similarity[0] / norms[0], kind="mergesort")
        n_changed = 0
        for rank in range(n):
            i, new = order[rank], 0 if rank < first_half else 1
            old = side[i]
            if old != new:
                side[i] = new
                n_changed += 1
                for j in range(indptr[members[i]], indptr[members[i] + 1]):
                    if old >= 0:
                        sums[indices[j], old] -= data[j]
                    sums[indices[j], new] += data[j]
        if n_changed <= tol * n:
            break
    for i in range(n):
        for j in range(indptr[members[i]], indptr[members[i] + 1]):
            sums[indices[j], 0] = 0.0
            sums[indices[j], 1] = 0.0


@kernel()
def balanced_2means_dense(vectors: Floats, members: Ints, first_half: int, max_iter: int, seed: int) -> None:
    """Reorder ``members``, rows of a dense table of unit length, as ``balanced_2means`` does."""
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
    """Put one of n rows on each side, drawn at random, and all others on no side (-1)."""
    state = initial_state(seed)
    for _ in range(4):  # initial states of nearby seeds differ in few bits: mix them
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
def kmeans(Z: CsrArrays, members: Ints, k: int, max_iter: int, seed: int, n_columns: int) -> Longs:
    """Reorder ``members``, rows of Z of unit length, cluster by cluster, and return the cluster sizes.

    The initial centers are k random rows; each iteration assigns every row to the center of largest inner product.
    """
    new_column, n = np.full(n_columns, -1, np.int32), len(members)
    values, columns, row_ptr, column_ids = compact_rows(Z, members, new_column)
    k = min(k, n)
    state = next_state(initial_state(seed))
    drawn = np.arange(n)
    cluster = np.full(n, -1, np.int32)
    for c in range(k):
        state = next_state(state)
        other = c + np.int64(state % np.uint64(n - c))
        drawn[c], drawn[other] = drawn[other], drawn[c]
        cluster[drawn[c]] = c
    centers = np.empty((len(column_ids), k), np.float32)  # column by column, so that loops over k are vectorized
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
