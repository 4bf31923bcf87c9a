"""Several members' rankings as one table: a row for every label that a member ranks high for a document."""

import numpy as np
from numba import njit

from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Floats, Ints, Longs

COLUMNS_PER_MEMBER = 4  # columns: score, rank, score relative to the member's best, that best
SHARED_COLUMNS = 3  # columns: log count of the label, sum of the scores, members that list it


@njit(cache=True, nogil=True)
def collect_candidates(rankings: Ints, row: int, depth: int, out: Ints) -> int:
    """The labels that a member ranks among its first ``depth`` for a row, sorted and unique; returns their number.

    ``rankings`` (members, rows, n_ranks) holds -1 where a list ends.
    """
    size = 0
    for member in range(rankings.shape[0]):
        for rank in range(min(depth, rankings.shape[2])):
            if rankings[member, row, rank] >= 0:
                out[size] = rankings[member, row, rank]
                size += 1
    out[:size].sort()
    unique = 0
    for i in range(size):
        if i == 0 or out[i] != out[i - 1]:
            out[unique] = out[i]
            unique += 1
    return unique


@njit(cache=True, nogil=True)
def count_candidates(rankings: Ints, start: int, stop: int, depth: int, out: Longs) -> None:
    """The number of candidates of rows start..stop."""
    buffer = np.empty(rankings.shape[0] * depth, np.int32)
    for row in range(start, stop):
        out[row] = collect_candidates(rankings, row, depth, buffer)


@njit(cache=True, nogil=True)
def fill_candidate_features(
    rankings: Ints, scores: Floats, start: int, stop: int, depth: int, log_counts: Floats, ends: Longs,
    labels: Ints, table: Floats,
) -> None:  # fmt: skip
    """The candidates of rows start..stop and their features; row r fills ends[r]..ends[r + 1].

    A member that does not list a label gives it the score 0 and the rank ``n_ranks``.
    """
    n_members, _, n_ranks = rankings.shape
    buffer = np.empty(n_members * depth, np.int32)
    sum_column, count_column = COLUMNS_PER_MEMBER * n_members + 1, COLUMNS_PER_MEMBER * n_members + 2
    for row in range(start, stop):
        first, n = ends[row], collect_candidates(rankings, row, depth, buffer)
        labels[first : first + n] = buffer[:n]
        row_table = table[first : first + n]
        row_table[:] = 0.0
        for i in range(n):
            row_table[i, COLUMNS_PER_MEMBER * n_members] = log_counts[buffer[i]]
        for member in range(n_members):
            first_column = COLUMNS_PER_MEMBER * member
            best = max(scores[member, row, 0], np.float32(0.0))
            for i in range(n):
                row_table[i, first_column + 1], row_table[i, first_column + 3] = n_ranks, best
            for rank in range(n_ranks):
                label = rankings[member, row, rank]
                if label < 0:
                    break
                i = np.searchsorted(buffer[:n], label)
                if i < n and buffer[i] == label:
                    score = scores[member, row, rank]
                    row_table[i, first_column], row_table[i, first_column + 1] = score, rank
                    row_table[i, first_column + 2] = score / best if best > 0 else np.float32(0.0)
                    row_table[i, sum_column] += score
                    row_table[i, count_column] += 1.0


@njit(cache=True, nogil=True)
def rank_candidates(
    labels: Ints, probabilities: Floats, ends: Longs, start: int, stop: int, out_labels: Ints, out_scores: Floats
) -> None:
    """The candidates of rows start..stop with the highest probabilities, best first."""
    for row in range(start, stop):
        row_scores, row_labels, size = out_scores[row], out_labels[row], 0
        for i in range(ends[row], ends[row + 1]):
            size = push(row_scores, row_labels, size, probabilities[i], labels[i])
        sort_best_first(row_scores, row_labels, size)
