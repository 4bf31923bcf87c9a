"""The stacking model: from the stacking table of documents to the probability that a label is right, in two passes.

1. Boosted trees on the rows of the table: what the members say of a label.
2. Boosted trees on each document's best labels of the first pass, with what these say of each other
   (``label_context``).

The second pass must learn from probabilities such as the first has for new documents. So the documents are halved, and
each half gets those of a first pass that was fitted on the other half. In the same way a second pass of each half says
what both passes say of documents that they have not seen, for thresholds on it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from labelspace.kernels.label_context import N_COLUMNS
from labelspace.models.blend.gradient_boosting import BinnedColumns, Forest, fit_forest
from labelspace.models.blend.label_context import SHORTLIST, Cooccurrence, Shortlist, shortlist
from labelspace.models.blend.stacking import StackingTable
from labelspace.types import Bools, Floats, Longs, Progress, TopK

MAX_LEAVES = 16  # of a tree
LEARNING_RATE = 0.15
MIN_CHILD_WEIGHT = 3.0  # the least sum of p (1 - p) over the rows of a leaf
N_FORESTS = 6  # two of halves and one of all documents, for each pass
BELOW = np.float32(1 - 1e-6)  # a label outside the shortlist is less probable than all in it


class Candidates(NamedTuple):
    """The candidates of documents that the members were not trained on."""

    table: StackingTable
    targets: Floats  # whether each candidate is right
    pairs: Cooccurrence  # of the documents that the members were trained on


class Passes(NamedTuple):
    """The stacking model, and what such a model says of documents that it was not fitted on."""

    first: Forest
    second: Forest
    unseen: list[TopK]  # the most probable labels of the documents of each group


def fit_passes(
    held: Sequence[Candidates], n_columns: int, n_rounds: int, random_state: int, progress: Progress
) -> Passes:
    """The trees of both passes; without rows they have no trees."""
    columns = np.concatenate([np.zeros((0, n_columns), np.float32), *(part.table.columns for part in held)])
    targets = np.concatenate([np.zeros(0, np.float32), *(part.targets for part in held)])
    half = _halves([len(part.table.ends) - 1 for part in held], random_state)
    in_half = np.concatenate([np.zeros(0, bool), *map(_by_row, held, half)])
    done = 0

    def fit(binned: BinnedColumns, targets: Floats) -> Forest:
        nonlocal done
        before, done = done, done + n_rounds
        return fit_forest(
            binned, targets, n_rounds, LEARNING_RATE, MAX_LEAVES, MIN_CHILD_WEIGHT,
            progress=lambda step, now, total: progress(step, before + now, N_FORESTS * total),
        )  # fmt: skip

    def of_other_half(binned: BinnedColumns, rows: Floats, targets: Floats, in_half: Bools) -> Floats:
        """The probabilities of rows, by trees that were fitted on the rows of the other half."""
        probabilities = np.empty(len(targets), np.float32)
        for judged in (in_half, ~in_half):
            probabilities[judged] = fit(binned.rows(~judged), targets[~judged]).probabilities(rows[judged])
        return probabilities

    binned = BinnedColumns.of(columns, random_state)
    first = _split(of_other_half(binned, columns, targets, in_half), [len(part.targets) for part in held])
    best = [shortlist(part.table, p, part.pairs) for part, p in zip(held, first, strict=True)]
    contexts = np.concatenate([np.zeros((0, N_COLUMNS), np.float32), *(listed.table for listed in best)])
    judged = [part.targets[listed.listed] for part, listed in zip(held, best, strict=True)]
    right = np.concatenate([np.zeros(0, np.float32), *judged])
    in_half = np.concatenate([np.zeros(0, bool), *(in_half[rows] for rows in _listed_rows(held, best))])
    second = BinnedColumns.of(contexts, random_state)
    unseen = _split(of_other_half(second, contexts, right, in_half), list(map(len, judged)))
    return Passes(fit(binned, targets), fit(second, right), list(map(_ranked, held, best, unseen)))


def second_pass(table: StackingTable, first: Floats, forest: Forest, pairs: Cooccurrence) -> Floats:
    """The probabilities of the second pass, given those of the first; labels outside the shortlist stay below it."""
    best = shortlist(table, first, pairs)
    judged = forest.probabilities(best.table)
    by_document = np.ones(best.rows.shape, np.float32)
    by_document[best.rows >= 0] = judged
    out: Floats = np.minimum(first, np.repeat(by_document.min(axis=1), np.diff(table.ends)) * BELOW)
    out[best.listed] = judged
    return out


def _halves(sizes: Sequence[int], random_state: int) -> list[Bools]:
    """For each of several groups of documents, which are in the first half."""
    rng = np.random.default_rng(random_state)
    return [rng.permutation(n) < n / 2 for n in sizes]


def _by_row(part: Candidates, half: Bools) -> Bools:
    return np.repeat(half, np.diff(part.table.ends))


def _split(values: Floats, sizes: Sequence[int]) -> list[Floats]:
    """The values of each group of documents."""
    return np.split(values, np.cumsum(sizes))[:-1]


def _listed_rows(held: Sequence[Candidates], best: Sequence[Shortlist]) -> list[Longs]:
    """The rows of the shortlists of each group, among those of all groups."""
    begins = np.cumsum([0, *(len(part.targets) for part in held)])
    return [begin + listed.listed for begin, listed in zip(begins, best, strict=False)]


def _ranked(part: Candidates, best: Shortlist, probabilities: Floats) -> TopK:
    """The labels of shortlists, the most probable first."""
    top = TopK.empty(len(best.rows), SHORTLIST)
    top.labels[best.rows >= 0], top.scores[best.rows >= 0] = part.table.labels[best.listed], probabilities
    order = np.argsort(-top.scores, axis=1, kind="stable")
    return TopK(np.take_along_axis(top.labels, order, axis=1), np.take_along_axis(top.scores, order, axis=1))
