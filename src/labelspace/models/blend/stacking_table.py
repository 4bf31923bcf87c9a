"""The stacking table: a row for every candidate label of a document, with what the members say of it.

Where more labels are requested than there are candidates, or a filter leaves too few, the answer goes on beyond the
candidates. The candidates, and what both passes of the stacking model say of them, depend neither on k nor on a filter:

1. Predict more labels by every member: twice as many as requested. With a filter, predict allowed labels, and at least
   ``FEW_LABELS`` of them. If there are no more, the answer is exactly the list of all labels without the others.
2. Labels that are no candidates are further candidates. Note of each what the stacking table notes of a candidate:
   scores come from the longer lists, ranks and best scores from the lists without a filter, which the first pass knows.
3. Score further candidates by the first pass; all stay less probable than the document's candidates. The trees give
   many the same score: of these, the label with the larger sum of the members' scores is first.
"""

from collections.abc import Sequence
from typing import Self

import numpy as np

from labelspace.kernels.threads import run_blocks
from labelspace.kernels.topk import Scores
from labelspace.labels.masks import FEW_LABELS, kept_entries
from labelspace.models.blend import kernels
from labelspace.types import Bools, Csr, Floats, Ints, Longs, TopK

ROW_BLOCK = 256  # documents per task of a thread: fewer cost calls, more leave threads idle at the end
BELOW = np.float32(1 - 1e-6)  # a label outside the shortlist is less probable than all in it


class MemberTopK(kernels.Rankings):
    """The predictions of every member for the same documents."""

    __slots__ = ()

    def of(self, members: Sequence[int]) -> "MemberTopK":
        """Return the predictions of some of the members."""
        return MemberTopK(self.labels[list(members)], self.scores[list(members)])

    def rows(self, documents: Longs) -> "MemberTopK":
        """Return the predictions for some of the documents."""
        return MemberTopK(
            np.ascontiguousarray(self.labels[:, documents]), np.ascontiguousarray(self.scores[:, documents])
        )

    def first(self, k: int) -> "MemberTopK":
        """Return the first k labels of every list."""
        return MemberTopK(np.ascontiguousarray(self.labels[:, :, :k]), np.ascontiguousarray(self.scores[:, :, :k]))


class StackingTable(kernels.CandidateRows):
    """The candidates of some documents."""

    __slots__ = ()

    @classmethod
    def empty(cls, counts: Longs, n_columns: int) -> Self:
        """Return a table to fill, for documents with these numbers of candidates."""
        ends = np.concatenate([[0], np.cumsum(counts)])
        return cls(np.empty(ends[-1], np.int32), np.empty((ends[-1], n_columns), np.float32), ends)

    def targets(self, Y: Csr) -> Floats:
        """Return which candidates are right: 1 or 0 for each row."""
        documents = np.repeat(np.arange(Y.shape[0]), np.diff(self.ends))
        return np.asarray(Y[documents, self.labels], np.float32).ravel()

    def mean_scores(self, n_members: int) -> Floats:
        """Return the mean score of the members for each row."""
        mean: Floats = self.columns[:, -2] / np.float32(n_members)
        return mean

    def rank(self, probabilities: Floats, out: TopK, allowed: Bools | None = None) -> None:
        """Write the allowed candidates with the best probabilities to ``out``."""
        labels, ends = self.labels, self.ends
        if allowed is not None:
            kept, ends = kept_entries(labels, ends, allowed)
            labels, probabilities = labels[kept], probabilities[kept]
        rank_rows(labels, probabilities, ends, out.labels, out.scores)


def rank_rows(labels: Ints, scores: Scores, ends: Longs, out_labels: Ints, out_scores: Scores) -> None:
    """Write the candidates with the best scores."""

    def rank(start: int, stop: int) -> None:
        kernels.rank_candidates(labels, scores, ends, start, stop, out_labels, out_scores)

    run_blocks(rank, len(out_labels), ROW_BLOCK)


def n_columns(n_members: int) -> int:
    """Return the number of columns of the table of ``n_members`` members."""
    return kernels.COLUMNS_PER_MEMBER * n_members + kernels.SHARED_COLUMNS


def stacking_table(predicted: MemberTopK, depth: int, log_counts: Floats) -> StackingTable:
    """Return the candidates: labels that any member ranks among its first ``depth``."""
    listed, n = predicted.labels, predicted.labels.shape[1]
    counts = np.zeros(n, np.int64)
    run_blocks(lambda start, stop: kernels.count_candidates(listed, start, stop, depth, counts), n, ROW_BLOCK)
    table = StackingTable.empty(counts, n_columns(len(listed)))

    def fill(start: int, stop: int) -> None:
        kernels.fill_candidate_features(predicted, start, stop, depth, log_counts, table)

    run_blocks(fill, n, ROW_BLOCK)
    return table


def further_table(
    predicted: MemberTopK, table: StackingTable, deep: MemberTopK, documents: Longs, log_counts: Floats
) -> StackingTable:
    """Return further candidates of some documents: labels that members list in ``deep`` and that the table lacks."""
    counts = np.zeros(len(documents), np.int64)

    def count(start: int, stop: int) -> None:
        kernels.count_further(deep.labels, documents, start, stop, table, counts)

    run_blocks(count, len(documents), ROW_BLOCK)
    further = StackingTable.empty(counts, table.columns.shape[1])

    def fill(start: int, stop: int) -> None:
        kernels.fill_further_features(predicted, deep, documents, start, stop, table, log_counts, further)

    run_blocks(fill, len(documents), ROW_BLOCK)
    return further


HALF_STEP = 2.0**-26  # less than half of the relative distance of two numbers of 32 bits


def further_depth(k: int, n_candidates: int, n_labels: int, allowed: Bools | None) -> int:
    """Return how many labels every member predicts (step 1).

    >>> further_depth(50, 10, 3000, None), further_depth(5, 10, 3000, np.arange(3000) < 300)
    (100, 300)
    """
    depth = 2 * max(k, n_candidates)
    return min(depth, n_labels) if allowed is None else min(max(depth, FEW_LABELS), int(allowed.sum()))


def rank_further(further: StackingTable, first: Floats, lowest: Floats, k: int, weights: Floats | None = None) -> TopK:
    """Return the best further candidates of each document, less probable than its ``lowest`` candidate (step 3).

    ``first`` are the scores of the first pass, ``weights`` (n_labels,) factors of the labels' probabilities.
    """
    total = further.columns[:, -2].astype(np.float64)
    share = 0.5 + 0.5 * total / (1 + np.abs(total))  # from 0 to 1, in the same order
    highest = lowest * BELOW
    if weights is not None:
        first = np.minimum(first, np.repeat(highest, np.diff(further.ends))) * weights[further.labels]
    labels, keys = np.empty((len(lowest), k), np.int32), np.empty((len(lowest), k), np.float64)
    rank_rows(further.labels, first * (1 + HALF_STEP * share), further.ends, labels, keys)
    scores = keys.astype(np.float32)  # as they were
    return TopK(labels, scores if weights is not None else np.minimum(scores, highest[:, None]))


def lowest_scores(table: StackingTable, scores: Floats) -> Floats:
    """Return the lowest score of the candidates of each document; 1 for a document without candidates."""
    lowest, some = np.ones(len(table.ends) - 1, np.float32), np.diff(table.ends) > 0
    if some.any():
        lowest[some] = np.minimum.reduceat(scores, table.ends[:-1][some])
    return lowest
