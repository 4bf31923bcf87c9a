"""Kernels of the stacking table: a row for every label that a member ranks high for a document, and its context."""

from typing import NamedTuple

import numpy as np

from labelspace.kernels.beam_search import lower_bound
from labelspace.kernels.compiled import integer, kernel, part
from labelspace.kernels.topk import Scores, push, radix_sort, sort_best_first
from labelspace.types import Floats, Ints, Longs

COLUMNS_PER_MEMBER = 4  # columns: score, rank, score relative to the member's best, that best
SHARED_COLUMNS = 3  # columns: log count of the label, sum of the scores, members that list it
N_COLUMNS = 12  # of the second pass, for each candidate


class Rankings(NamedTuple):
    """The labels that members rank for documents, best first, with their scores: (members, n, n_ranks)."""

    labels: Ints  # -1 where a list ends
    scores: Floats


class CandidateRows(NamedTuple):
    """The candidates of some documents, one document after another, with what the members say of them."""

    labels: Ints  # (rows,) sorted for each document
    columns: Floats  # (rows, n_columns)
    ends: Longs  # (n + 1,) rows up to each document


class LabelPairs(NamedTuple):
    """The documents that two labels share: label i has the sorted partners[starts[i] : starts[i + 1]], all above i."""

    partners: Ints
    shared: Floats
    starts: Longs
    counts: Floats  # (n_labels,) documents of each label
    n_documents: float


@kernel()
def collect_candidates(rankings: Ints, row: int, depth: int, buffers: Longs, out: Ints) -> int:
    """Collect the labels that a member ranks among its first ``depth``, sorted, each once; return their number.

    ``buffers`` (2, members * depth) is scratch.
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
    """Count the candidates of rows start..stop."""
    n = rankings.shape[0] * depth
    buffers, candidates = np.empty((2, n), np.int64), np.empty(n, np.int32)
    for row in range(start, stop):
        out[row] = collect_candidates(rankings, row, depth, buffers, candidates)


@kernel()
def start_rows(candidates: Ints, scores: Floats, log_counts: Floats, labels: Ints, table: Floats) -> None:
    """Start the rows of a document's candidates, of which ``scores`` (members, n_ranks) are the document's.

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
    predicted: Rankings, start: int, stop: int, depth: int, log_counts: Floats, out: CandidateRows
) -> None:
    """Fill the candidates of rows start..stop and their features; row r fills ends[r]..ends[r + 1]."""
    rankings, scores = predicted.labels, predicted.scores
    n_members, _, n_ranks = rankings.shape
    buffers, candidates = np.empty((2, n_members * depth), np.int64), np.empty(n_members * depth, np.int32)
    sum_column, count_column = COLUMNS_PER_MEMBER * n_members + 1, COLUMNS_PER_MEMBER * n_members + 2
    for row in range(start, stop):
        first, n = out.ends[row], collect_candidates(rankings, row, depth, buffers, candidates)
        row_table = out.columns[first : first + n]
        start_rows(candidates[:n], scores[:, row], log_counts, out.labels[first : first + n], row_table)
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
    """Collect the labels that any member lists for a row and that are not ``known``, sorted; return their number."""
    size = 0
    for i in range(collect_candidates(rankings, row, rankings.shape[2], buffers, out)):
        at = lower_bound(known, integer(0), len(known), out[i])
        if at == len(known) or known[at] != out[i]:
            out[size] = out[i]
            size += 1
    return size


@kernel()
def count_further(deep: Ints, rows: Longs, start: int, stop: int, known: CandidateRows, out: Longs) -> None:
    """Count the further candidates of entries start..stop: see ``fill_further_features``."""
    n = deep.shape[0] * deep.shape[2]
    buffers, candidates = np.empty((2, n), np.int64), np.empty(n, np.int32)
    for i in range(start, stop):
        listed = known.labels[known.ends[rows[i]] : known.ends[rows[i] + 1]]
        out[i] = collect_further(deep, i, listed, buffers, candidates)


@kernel()
def fill_further_features(
    predicted: Rankings,
    deep: Rankings,
    rows: Longs,
    start: int,
    stop: int,
    known: CandidateRows,
    log_counts: Floats,
    out: CandidateRows,
) -> None:
    """Fill the candidates of the longer lists ``deep`` that are not ``known``, and their features.

    Entry i is about row rows[i] of ``predicted`` and of ``known``; it fills ends[i]..ends[i + 1]. Scores are those of
    the deep lists; ranks, the best score and the number of members are those of ``predicted``, as in
    ``fill_candidate_features``.
    """
    rankings, scores = predicted.labels, predicted.scores
    n_members, _, n_ranks = rankings.shape
    depth = deep.labels.shape[2]
    size = n_members * depth
    buffers, candidates = np.empty((2, size), np.int64), np.empty(size, np.int32)
    sum_column, count_column = COLUMNS_PER_MEMBER * n_members + 1, COLUMNS_PER_MEMBER * n_members + 2
    for entry in range(start, stop):
        row = rows[entry]
        listed = known.labels[known.ends[row] : known.ends[row + 1]]
        first, n = out.ends[entry], collect_further(deep.labels, entry, listed, buffers, candidates)
        row_table = out.columns[first : first + n]
        start_rows(candidates[:n], scores[:, row], log_counts, out.labels[first : first + n], row_table)
        for member in range(n_members):
            first_column, best = COLUMNS_PER_MEMBER * member, max(scores[member, row, 0], np.float32(0.0))
            for rank in range(depth):
                label = deep.labels[member, entry, rank]
                if label < 0:
                    break
                i = lower_bound(candidates, integer(0), n, label)
                if i < n and candidates[i] == label:
                    score = deep.scores[member, entry, rank]
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
    """Rank the candidates of rows start..stop by their probabilities, best first."""
    for row in range(start, stop):
        row_scores, row_labels, size = out_scores[row], out_labels[row], integer(0)
        for i in range(ends[row], ends[row + 1]):
            size = push(row_scores, row_labels, size, probabilities[i], labels[i])
        sort_best_first(row_scores, row_labels, size)


@part()
def documents_of_both(one: int, other: int, pairs: LabelPairs) -> float:
    """Return the number of documents that two labels share."""
    low, high = min(one, other), max(one, other)
    end = int(pairs.starts[low + 1])
    at = lower_bound(pairs.partners, int(pairs.starts[low]), end, high)
    return np.float64(pairs.shared[at]) if at < end and pairs.partners[at] == high else 0.0


@kernel()
def fill_context(
    known: CandidateRows, probabilities: Floats, start: int, stop: int, pairs: LabelPairs, best: Ints, table: Floats
) -> None:
    """Find the most probable of the ``known`` candidates of documents start..stop, and their context.

    ``best`` (n, shortlist) gets their row numbers, -1 where there are fewer. ``table`` (n, shortlist, N_COLUMNS) gets
    log-odds, rank, sum of the document's probabilities, difference to the next and to the one before; then, over the
    other candidates, probability times PMI, probability times P(this | other), the largest of these, and probability
    times P(other | this); then the last three of the candidates' ``columns``.
    """
    labels, columns, ends = known.labels, known.columns, known.ends
    counts, size = pairs.counts, best.shape[1]
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
                    both = documents_of_both(label, other, pairs)
                    expected = count * counts[other] / pairs.n_documents
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
