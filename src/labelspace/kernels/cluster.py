"""Balanced spherical 2-means of sparse rows: the step that grows a label tree."""

from __future__ import annotations

import numpy as np
from numba import njit

from labelspace.types import Floats, Ints


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
    state = np.uint64(seed) * np.uint64(2) + np.uint64(0x9E3779B97F4A7C15)
    for _ in range(4):  # xorshift: the same draw on every platform
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
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
