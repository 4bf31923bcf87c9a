"""Several members' lists of labels as one table: a row for every label that a member ranks high in a document."""

from __future__ import annotations

import numpy as np
from numba import njit

from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Floats, Ints, Longs

COLUMNS_PER_MEMBER = 4  # columns: score, rank, score relative to the member's best, that best
SHARED_COLUMNS = 3  # columns: log count of the label, sum of the scores, members that list it


@njit(cache=True, nogil=True)
def candidates(listed: Ints, row: int, depth: int, out: Ints) -> int:
    """The labels that a member lists among its first ``depth`` for a row, sorted, each once; their number is returned.

    ``listed`` (members, rows, places) holds -1 where a list ends.
    """
    size = 0
    for member in range(listed.shape[0]):
        for place in range(min(depth, listed.shape[2])):
            if listed[member, row, place] >= 0:
                out[size] = listed[member, row, place]
                size += 1
    out[:size].sort()
    unique = 0
    for i in range(size):
        if i == 0 or out[i] != out[i - 1]:
            out[unique] = out[i]
            unique += 1
    return unique


@njit(cache=True, nogil=True)
def count_candidates(listed: Ints, start: int, stop: int, depth: int, out: Longs) -> None:
    """The number of candidates of rows start..stop."""
    found = np.empty(listed.shape[0] * depth, np.int32)
    for row in range(start, stop):
        out[row] = candidates(listed, row, depth, found)


@njit(cache=True, nogil=True)
def fill_table(
    listed: Ints,
    scores: Floats,
    start: int,
    stop: int,
    depth: int,
    log_counts: Floats,
    ends: Longs,
    labels: Ints,
    table: Floats,
) -> None:
    """The candidates of rows start..stop and what the members say of them; row r fills ends[r]..ends[r + 1].

    A member that does not list a label gives it the score 0 and a rank behind all its places.
    """
    members, _, places = listed.shape
    found = np.empty(members * depth, np.int32)
    total, hits = COLUMNS_PER_MEMBER * members + 1, COLUMNS_PER_MEMBER * members + 2
    for row in range(start, stop):
        first, n = ends[row], candidates(listed, row, depth, found)
        labels[first : first + n] = found[:n]
        here = table[first : first + n]
        here[:] = 0.0
        for i in range(n):
            here[i, COLUMNS_PER_MEMBER * members] = log_counts[found[i]]
        for member in range(members):
            at = COLUMNS_PER_MEMBER * member
            best = max(scores[member, row, 0], np.float32(0.0))
            for i in range(n):
                here[i, at + 1], here[i, at + 3] = places, best
            for place in range(places):
                label = listed[member, row, place]
                if label < 0:
                    break
                i = np.searchsorted(found[:n], label)
                if i < n and found[i] == label:
                    score = scores[member, row, place]
                    here[i, at], here[i, at + 1] = score, place
                    here[i, at + 2] = score / best if best > 0 else np.float32(0.0)
                    here[i, total] += score
                    here[i, hits] += 1.0


@njit(cache=True, nogil=True)
def rank_candidates(
    labels: Ints, chances: Floats, ends: Longs, start: int, stop: int, out_labels: Ints, out_scores: Floats
) -> None:
    """The candidates of rows start..stop with the best chances, best first."""
    for row in range(start, stop):
        best, ids, size = out_scores[row], out_labels[row], 0
        for i in range(ends[row], ends[row + 1]):
            size = push(best, ids, size, chances[i], labels[i])
        sort_best_first(best, ids, size)
