"""Spherical k-means of sparse rows, the step that grows a label tree: balanced in two, or in many as they fall."""

from __future__ import annotations

import numpy as np
from numba import njit

from labelspace.kernels.random import advanced, seeded
from labelspace.kernels.tree import local_rows
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

    Each round ranks the rows by how much closer they lie to the first centre than to the second, and cuts the list in
    two. ``sums`` (2, n_columns), the sums of the rows of each side, is scratch: all zeros before and after.
    """
    n = len(members)
    state = seeded(seed)
    for _ in range(4):
        state = advanced(state)
    one = np.int64(state % np.uint64(n))
    other = (one + 1 + np.int64((state >> np.uint64(20)) % np.uint64(n - 1))) % n
    side = np.full(n, -1, np.int8)  # -1: on no side yet
    side[one], side[other] = 0, 1
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
    kept = members.copy()
    places = np.array([0, first_half])
    for i in range(n):
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

    The first centres are k of the rows; each round gives every row to the centre it has the largest product with.
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
    centres = np.empty((len(names), k), np.float32)  # a column's values side by side: one row adds to k sums at once
    products, squares, sizes = np.empty(k, np.float32), np.empty(k, np.float64), np.zeros(k, np.int64)
    for _ in range(max_rounds):
        centres[:] = 0.0
        for i in range(n):
            if cluster[i] >= 0:
                for j in range(ends[i], ends[i + 1]):
                    centres[columns[j], cluster[i]] += values[j]
        squares[:] = 0.0
        for column in range(len(names)):
            for c in range(k):
                squares[c] += centres[column, c] * centres[column, c]
        lengths = np.sqrt(np.maximum(squares, 1e-12))
        changed = False
        for i in range(n):
            products[:] = 0.0
            for j in range(ends[i], ends[i + 1]):
                value, centre = values[j], centres[columns[j]]
                for c in range(k):
                    products[c] += value * centre[c]
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
