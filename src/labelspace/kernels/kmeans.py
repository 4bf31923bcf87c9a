"""Spherical k-means of rows, the step that grows a label tree: balanced in two, or in many as they fall."""

from __future__ import annotations

import numpy as np
from numba import njit

from labelspace.kernels.inner_products import dot
from labelspace.kernels.quantize import Bytes
from labelspace.kernels.random_numbers import advanced, seeded
from labelspace.kernels.tree_classifiers import local_rows
from labelspace.types import Floats, Ints, Longs


@njit(cache=True, nogil=True)
def bisect(
    data: Floats,
    indices: Ints,
    indptr: Ints,
    members: Ints,
    first_half: int,
    max_rounds: int,
    seed: int,
    sums: Floats,
) -> None:
    """Reorder ``members`` (numbers of unit rows of a CSR matrix) so that the first ``first_half`` are one cluster.

    Each round ranks the rows by how much closer they lie to the first center than to the second, and cuts the list in
    two. ``sums`` (2, n_columns), the sums of the rows of each side, is scratch: all zeros before and after.
    """
    n = len(members)
    side = first_sides(n, seed)
    towards = np.empty((2, n), np.float32)
    for _ in range(max_rounds):
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
            towards[0, i], towards[1, i] = first, second
            if side[i] >= 0:
                squares[side[i]] += towards[side[i], i]  # the square of a sum is the sum of its rows' products with it
        lengths = np.sqrt(np.maximum(squares, 1e-12))
        order = np.argsort(towards[1] / lengths[1] - towards[0] / lengths[0], kind="mergesort")
        changed = False
        for place in range(n):
            new = 0 if place < first_half else 1
            changed |= side[order[place]] != new
            side[order[place]] = new
        for i in range(n):
            for j in range(indptr[members[i]], indptr[members[i] + 1]):
                sums[0, indices[j]] = 0.0
                sums[1, indices[j]] = 0.0
        if not changed:
            break
    sort_by_side(members, side, first_half)


@njit(cache=True, nogil=True)
def bisect_dense(vectors: Floats, members: Ints, first_half: int, max_rounds: int, seed: int) -> None:
    """The same for ``members`` that are rows of a dense table, of unit length."""
    n = len(members)
    side = first_sides(n, seed)
    rows = np.empty((n, vectors.shape[1]), np.float32)  # side by side: they are read again in every round
    for i in range(n):
        rows[i] = vectors[members[i]]
    sums = np.empty((2, vectors.shape[1]), np.float32)
    away = np.empty(n, np.float32)
    for _ in range(max_rounds):
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
            away[i] = dot(rows[i], direction)
        cut = np.partition(away, first_half - 1)[first_half - 1]
        equals = first_half - (away < cut).sum()  # so many of those at the cut still belong to the first half
        changed = False
        for i in range(n):
            new = 0 if away[i] < cut or (away[i] == cut and equals > 0) else 1
            equals -= away[i] == cut
            changed |= side[i] != new
            side[i] = new
        if not changed:
            break
    sort_by_side(members, side, first_half)


@njit(cache=True, nogil=True)
def first_sides(n: int, seed: int) -> Bytes:
    """Two of n rows, drawn at random, on the two sides; the others on none, which is -1."""
    state = seeded(seed)
    for _ in range(4):
        state = advanced(state)
    one = np.int64(state % np.uint64(n))
    other = (one + 1 + np.int64((state >> np.uint64(20)) % np.uint64(n - 1))) % n
    side = np.full(n, -1, np.int8)
    side[one], side[other] = 0, 1
    return side


@njit(cache=True, nogil=True)
def sort_by_side(members: Ints, side: Bytes, first_half: int) -> None:
    """Put the ``first_half`` members of side 0 before those of side 1, else in the order they have."""
    kept = members.copy()
    places = np.array([0, first_half])
    for i in range(len(kept)):
        members[places[side[i]]] = kept[i]
        places[side[i]] += 1


@njit(cache=True, nogil=True)
def kmeans(
    data: Floats,
    indices: Ints,
    indptr: Ints,
    members: Ints,
    k: int,
    max_rounds: int,
    seed: int,
    n_columns: int,
) -> Longs:
    """Reorder ``members`` (numbers of unit rows of a CSR matrix) cluster by cluster; the clusters' sizes are returned.

    The first centers are k of the rows; each round gives every row to the center it has the largest product with.
    """
    values, columns, ends, names = local_rows(data, indices, indptr, members, np.full(n_columns, -1, np.int32))
    n = len(members)
    k = min(k, n)
    state = advanced(seeded(seed))
    drawn = np.arange(n)
    cluster = np.full(n, -1, np.int32)
    for c in range(k):
        state = advanced(state)
        other = c + np.int64(state % np.uint64(n - c))
        drawn[c], drawn[other] = drawn[other], drawn[c]
        cluster[drawn[c]] = c
    centers = np.empty((len(names), k), np.float32)  # a column's values side by side: one row adds to k sums at once
    products, squares, sizes = np.empty(k, np.float32), np.empty(k, np.float64), np.zeros(k, np.int64)
    for _ in range(max_rounds):
        centers[:] = 0.0
        for i in range(n):
            if cluster[i] >= 0:
                for j in range(ends[i], ends[i + 1]):
                    centers[columns[j], cluster[i]] += values[j]
        squares[:] = 0.0
        for column in range(len(names)):
            for c in range(k):
                squares[c] += centers[column, c] * centers[column, c]
        lengths = np.sqrt(np.maximum(squares, 1e-12))
        changed = False
        for i in range(n):
            products[:] = 0.0
            for j in range(ends[i], ends[i + 1]):
                value, center = values[j], centers[columns[j]]
                for c in range(k):
                    products[c] += value * center[c]
            best = 0
            for c in range(1, k):
                if products[c] / lengths[c] > products[best] / lengths[best]:
                    best = c
            changed |= cluster[i] != best
            cluster[i] = best
        if not changed:
            break
    for i in range(n):
        sizes[cluster[i]] += 1
    members[:] = members[np.argsort(cluster, kind="mergesort")]
    return sizes
