"""The stacking table: a row for every candidate label of a document, with what the members say of it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from labelspace.kernels.stacking import (
    COLUMNS_PER_MEMBER,
    SHARED_COLUMNS,
    count_candidates,
    count_further,
    fill_candidate_features,
    fill_further_features,
    rank_candidates,
)
from labelspace.kernels.threads import run_blocks
from labelspace.kernels.topk import Scores
from labelspace.labels.masks import kept_entries
from labelspace.types import Bools, Csr, Floats, Ints, Longs, TopK

ROW_BLOCK = 256  # documents per task


class MemberTopK(NamedTuple):
    """What every member predicts for the same documents."""

    labels: Ints  # (members, n, k)
    scores: Floats

    def of(self, members: Sequence[int]) -> "MemberTopK":
        """What some of the members predict."""
        return MemberTopK(self.labels[list(members)], self.scores[list(members)])

    def rows(self, documents: Longs) -> "MemberTopK":
        """What they predict for some of the documents."""
        return MemberTopK(self.labels[:, documents], self.scores[:, documents])

    def first(self, k: int) -> "MemberTopK":
        """The first k labels of every list."""
        return MemberTopK(np.ascontiguousarray(self.labels[:, :, :k]), np.ascontiguousarray(self.scores[:, :, :k]))


class StackingTable(NamedTuple):
    """The candidates of some documents, one document after another."""

    labels: Ints  # (rows,)
    columns: Floats  # (rows, n_columns)
    ends: Longs  # (n + 1,) rows up to each document

    def targets(self, Y: Csr) -> Floats:
        """Which candidates are right: 1 or 0 for each row."""
        documents = np.repeat(np.arange(Y.shape[0]), np.diff(self.ends))
        return np.asarray(Y[documents, self.labels], np.float32).ravel()

    def mean_scores(self, n_members: int) -> Floats:
        """The mean score of the members for each row."""
        mean: Floats = self.columns[:, -2] / np.float32(n_members)
        return mean

    def rank(self, probabilities: Floats, out: TopK, allowed: Bools | None = None) -> None:
        """Write the candidates with the best probabilities, of those that are allowed, to ``out``."""
        labels, ends = self.labels, self.ends
        if allowed is not None:
            kept, ends = kept_entries(labels, ends, allowed)
            labels, probabilities = labels[kept], probabilities[kept]
        rank_rows(labels, probabilities, ends, out.labels, out.scores)


def rank_rows(labels: Ints, scores: Scores, ends: Longs, out_labels: Ints, out_scores: Scores) -> None:
    """Write the candidates with the best scores."""

    def rank(start: int, stop: int) -> None:
        rank_candidates(labels, scores, ends, start, stop, out_labels, out_scores)

    run_blocks(rank, len(out_labels), ROW_BLOCK)


def n_columns(n_members: int) -> int:
    """Columns of the table of so many members."""
    return COLUMNS_PER_MEMBER * n_members + SHARED_COLUMNS


def stacking_table(predicted: MemberTopK, depth: int, log_counts: Floats) -> StackingTable:
    """The candidates: labels that any member ranks among its first ``depth``. ``log_counts`` are of the labels."""
    listed, scores = predicted
    n, counts = listed.shape[1], np.zeros(listed.shape[1], np.int64)
    run_blocks(lambda start, stop: count_candidates(listed, start, stop, depth, counts), n, ROW_BLOCK)
    ends = np.concatenate([[0], np.cumsum(counts)])
    labels = np.empty(ends[-1], np.int32)
    columns = np.empty((ends[-1], n_columns(len(listed))), np.float32)

    def fill(start: int, stop: int) -> None:
        fill_candidate_features(listed, scores, start, stop, depth, log_counts, ends, labels, columns)

    run_blocks(fill, n, ROW_BLOCK)
    return StackingTable(labels, columns, ends)


def further_table(
    predicted: MemberTopK, table: StackingTable, deep: MemberTopK, documents: Longs, log_counts: Floats
) -> StackingTable:
    """Further candidates of some documents: labels that members list in ``deep``, and that are not in the table."""
    counts = np.zeros(len(documents), np.int64)

    def count(start: int, stop: int) -> None:
        count_further(deep.labels, documents, start, stop, table.labels, table.ends, counts)

    run_blocks(count, len(documents), ROW_BLOCK)
    ends = np.concatenate([[0], np.cumsum(counts)])
    labels = np.empty(ends[-1], np.int32)
    columns = np.empty((ends[-1], table.columns.shape[1]), np.float32)

    def fill(start: int, stop: int) -> None:
        fill_further_features(
            *predicted, *deep, documents, start, stop, table.labels, table.ends, log_counts, ends, labels, columns
        )

    run_blocks(fill, len(documents), ROW_BLOCK)
    return StackingTable(labels, columns, ends)
