"""Kernels of the stacking table: a row for every label that a member ranks high for a document, and its context."""

import numpy as np

from labelspace.kernels.beam_search import lower_bound
from labelspace.kernels.compiled import integer, kernel, part
from labelspace.kernels.radix_sort import radix_sort
from labelspace.kernels.topk import Scores, push, sort_best_first
from labelspace.types import Floats, Ints, Longs

COLUMNS_PER_MEMBER = 4  # columns: score, rank, score relative to the member's best, that best
SHARED_COLUMNS = 3  # columns: log count of the label, sum of the scores, members that list it


@kernel()
def collect_candidates(rankings: Ints, row: int, depth: int, buffers: Longs, out: Ints) -> int:
    """The labels that a member ranks among its first ``depth`` for a row, sorted and unique; returns their number.

    ``rankings`` (members, rows, n_ranks) holds -1 where a list ends; ``buffers`` (2, members * depth) is scratch.
    """
    size, n_labels = 0, integer(0)
    for member in range(rankings.shape[0]):
        for rank in range(min(depth, rankings.shape[2])):
            label = integer(rankings[member, row, rank])
            if label >= 0:
                buffers[0, size] = label << 32
                n_labels = max(n_labels, label + 1)
                size += 1
    found = radix_sort(buffers[0, :size], buffers[1], n_labels)
    unique = 0
    for i in range(size):
        if i == 0 or found[i] != found[i - 1]:
            out[unique] = found[i] >> 32
            unique += 1
    return unique


@kernel()
def count_candidates(rankings: Ints, start: int, stop: int, depth: int, out: Longs) -> None:
    """The number of candidates of rows start..stop."""
    n = rankings.shape[0] * depth
    buffers, candidates = np.empty((2, n), np.int64), np.empty(n, np.int32)
    for row in range(start, stop):
        out[row] = collect_candidates(rankings, row, depth, buffers, candidates)


@kernel()
def start_rows(candidates: Ints, scores: Floats, log_counts: Floats, labels: Ints, table: Floats) -> None:
    """The rows of a document's candidates before members list them; ``scores`` (members, n_ranks) are the document's.

    A member that does not list a label gives it the score 0 and the rank ``n_ranks``.
    """
    n_members, n_ranks = scores.shape
    for i in range(len(candidates)):
        labels[i] = candidates[i]
        for column in range(table.shape[1]):
            table[i, column] = 0.0
        table[i, COLUMNS_PER_MEMBER * n_members] = log_counts[candidates[i]]
        for member in range(n_members):
            table[i, COLUMNS_PER_MEMBER * member + 1] = n_ranks
            table[i, COLUMNS_PER_MEMBER * member + 3] = max(scores[member, 0], np.float32(0.0))


@kernel()
def fill_candidate_features(
    rankings: Ints, scores: Floats, start: int, stop: int, depth: int, log_counts: Floats, ends: Longs,
    labels: Ints, table: Floats,
) -> None:  # fmt: skip
    """The candidates of rows start..stop and their features; row r fills ends[r]..ends[r + 1]."""
    n_members, _, n_ranks = rankings.shape
    buffers, candidates = np.empty((2, n_members * depth), np.int64), np.empty(n_members * depth, np.int32)
    sum_column, count_column = COLUMNS_PER_MEMBER * n_members + 1, COLUMNS_PER_MEMBER * n_members + 2
    for row in range(start, stop):
        first, n = ends[row], collect_candidates(rankings, row, depth, buffers, candidates)
        row_table = table[first : first + n]
        start_rows(candidates[:n], scores[:, row], log_counts, labels[first : first + n], row_table)
        for member in range(n_members):
            first_column, best = COLUMNS_PER_MEMBER * member, max(scores[member, row, 0], np.float32(0.0))
            for rank in range(n_ranks):
                label = rankings[member, row, rank]
                if label < 0:
                    break
                i = lower_bound(candidates, integer(0), n, label)
                if i < n and candidates[i] == label:
                    score = scores[member, row, rank]
                    row_table[i, first_column], row_table[i, first_column + 1] = score, rank
                    row_table[i, first_column + 2] = score / best if best > 0 else np.float32(0.0)
                    row_table[i, sum_column] += score
                    row_table[i, count_column] += 1.0


@kernel()
def collect_further(rankings: Ints, row: int, known: Ints, buffers: Longs, out: Ints) -> int:
    """The labels that any member lists for a row and that are not ``known``, both sorted; returns their number."""
    size = 0
    for i in range(collect_candidates(rankings, row, rankings.shape[2], buffers, out)):
        at = lower_bound(known, integer(0), len(known), out[i])
        if at == len(known) or known[at] != out[i]:
            out[size] = out[i]
            size += 1
    return size


@kernel()
def count_further(
    deep: Ints, rows: Longs, start: int, stop: int, known: Ints, known_ends: Longs, out: Longs
) -> None:  # fmt: skip
    """The number of further candidates of entries start..stop: see ``fill_further_features``."""
    n = deep.shape[0] * deep.shape[2]
    buffers, candidates = np.empty((2, n), np.int64), np.empty(n, np.int32)
    for i in range(start, stop):
        listed = known[known_ends[rows[i]] : known_ends[rows[i] + 1]]
        out[i] = collect_further(deep, i, listed, buffers, candidates)


@kernel()
def fill_further_features(
    rankings: Ints, scores: Floats, deep: Ints, deep_scores: Floats, rows: Longs, start: int, stop: int, known: Ints,
    known_ends: Longs, log_counts: Floats, ends: Longs, labels: Ints, table: Floats,
) -> None:  # fmt: skip
    """Candidates of other lists, ``deep`` (members, entries, depth), beside those that are known, and their features.

    Entry i is of row rows[i] of ``rankings``, with known labels known_ends[row]..known_ends[row + 1]; it fills
    ends[i]..ends[i + 1]. Scores are those of the deep lists; ranks, the best score and the number of members are those
    of ``rankings``, as in ``fill_candidate_features``.
    """
    n_members, _, n_ranks = rankings.shape
    size = n_members * deep.shape[2]
    buffers, candidates = np.empty((2, size), np.int64), np.empty(size, np.int32)
    sum_column, count_column = COLUMNS_PER_MEMBER * n_members + 1, COLUMNS_PER_MEMBER * n_members + 2
    for entry in range(start, stop):
        row = rows[entry]
        listed = known[known_ends[row] : known_ends[row + 1]]
        first, n = ends[entry], collect_further(deep, entry, listed, buffers, candidates)
        row_table = table[first : first + n]
        start_rows(candidates[:n], scores[:, row], log_counts, labels[first : first + n], row_table)
        for member in range(n_members):
            first_column, best = COLUMNS_PER_MEMBER * member, max(scores[member, row, 0], np.float32(0.0))
            for rank in range(deep.shape[2]):
                label = deep[member, entry, rank]
                if label < 0:
                    break
                i = lower_bound(candidates, integer(0), n, label)
                if i < n and candidates[i] == label:
                    score = deep_scores[member, entry, rank]
                    row_table[i, first_column] = score
                    row_table[i, first_column + 2] = score / best if best > 0 else np.float32(0.0)
                    row_table[i, sum_column] += score
            for rank in range(n_ranks):
                label = rankings[member, row, rank]
                if label < 0:
                    break
                i = lower_bound(candidates, integer(0), n, label)
                if i < n and candidates[i] == label:
                    row_table[i, first_column + 1] = rank
                    row_table[i, count_column] += 1.0


@kernel()
def rank_candidates(
    labels: Ints, probabilities: Scores, ends: Longs, start: int, stop: int, out_labels: Ints, out_scores: Scores
) -> None:
    """The candidates of rows start..stop with the highest probabilities, best first."""
    for row in range(start, stop):
        row_scores, row_labels, size = out_scores[row], out_labels[row], integer(0)
        for i in range(ends[row], ends[row + 1]):
            size = push(row_scores, row_labels, size, probabilities[i], labels[i])
        sort_best_first(row_scores, row_labels, size)


N_COLUMNS = 12


@part()
def documents_of_both(one: int, other: int, partners: Ints, shared: Floats, starts: Longs) -> float:
    """The documents that two labels share: label i has the sorted partners[starts[i] : starts[i + 1]], all above i."""
    low, high = min(one, other), max(one, other)
    left, right = starts[low], starts[low + 1]
    while left < right:
        middle = (left + right) // 2
        if partners[middle] < high:
            left = middle + 1
        else:
            right = middle
    return np.float64(shared[left]) if left < starts[low + 1] and partners[left] == high else 0.0


@kernel()
def fill_context(
    labels: Ints, probabilities: Floats, columns: Floats, ends: Longs, start: int, stop: int, counts: Floats,
    n_documents: float, partners: Ints, shared: Floats, starts: Longs, best: Ints, table: Floats,
) -> None:  # fmt: skip
    """The most probable candidates of documents start..stop, as rows of ``best``, and their context.

    Document i has the candidates ends[i] : ends[i + 1]. ``best`` (n, shortlist) gets their row numbers, -1 where there
    are fewer; ``table`` (n, shortlist, N_COLUMNS) gets log-odds, rank, sum of the document's probabilities, difference
    to the next and to the one before; then, over the other candidates, probability times PMI, probability times
    P(this | other), the largest of these, and probability times P(other | this); the last three of ``columns``.
    """
    size = best.shape[1]
    p = np.empty(size, np.float32)
    for i in range(start, stop):
        n, total = 0, 0.0
        for row in range(ends[i], ends[i + 1]):
            n = push(p, best[i], n, probabilities[row], row)
            total += probabilities[row]
        sort_best_first(p, best[i], n)
        for rank in range(n):
            label, out = labels[best[i, rank]], table[i, rank]
            count, odds = counts[label], min(max(np.float64(p[rank]), 1e-6), 1.0 - 1e-6)
            by_pmi, by_others, largest, by_this = 0.0, 0.0, 0.0, 0.0
            for at in range(n):
                if at != rank:
                    other = labels[best[i, at]]
                    both = documents_of_both(label, other, partners, shared, starts)
                    expected = count * counts[other] / n_documents
                    by_pmi += p[at] * np.log((both + 1.0) / (expected + 1.0))
                    support = p[at] * both / max(counts[other], 1.0)
                    by_others, largest = by_others + support, max(largest, support)
                    by_this += p[at] * both / max(count, 1.0)
            out[0], out[1], out[2] = np.log(odds / (1.0 - odds)), rank, total
            out[3] = p[rank] - (p[rank + 1] if rank + 1 < n else 0.0)
            out[4] = (p[rank - 1] if rank > 0 else 1.0) - p[rank]
            out[5], out[6], out[7], out[8] = by_pmi, by_others, largest, by_this
            for j in range(3):
                out[9 + j] = columns[best[i, rank], columns.shape[1] - 3 + j]
