"""The stacking model: from the stacking table of documents to the probability that a label is right, in two passes.

1. Boosted trees on the rows of the table: what the members say of a label.
2. Boosted trees on each document's best labels of the first pass, with what these say of each other
   (``label_context``).

The second pass must learn from probabilities such as the first has for new documents. So the documents are halved, and
each half gets those of a first pass that was fitted on the other half.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from labelspace.kernels.label_context import N_COLUMNS
from labelspace.models.blend.gradient_boosting import BinnedColumns, Forest, fit_forest
from labelspace.models.blend.label_context import Cooccurrence, shortlist
from labelspace.models.blend.stacking import StackingTable
from labelspace.types import Bools, Floats, Progress

MAX_LEAVES = 16  # of a tree
LEARNING_RATE = 0.15
MIN_CHILD_WEIGHT = 3.0  # the least sum of p (1 - p) over the rows of a leaf
BELOW = np.float32(1 - 1e-6)  # a label outside the shortlist is less probable than all in it


class Candidates(NamedTuple):
    """The candidates of documents that the members were not trained on."""

    table: StackingTable
    targets: Floats  # whether each candidate is right
    pairs: Cooccurrence  # of the documents that the members were trained on


def fit_passes(
    held: Sequence[Candidates], n_columns: int, n_rounds: int, random_state: int, progress: Progress
) -> tuple[Forest, Forest]:
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
            progress=lambda step, now, total: progress(step, before + now, 4 * total),
        )  # fmt: skip

    binned = BinnedColumns.of(columns, random_state)
    probabilities = np.empty(len(targets), np.float32)
    for rows in (in_half, ~in_half):
        probabilities[rows] = fit(binned.rows(~rows), targets[~rows]).probabilities(columns[rows])
    contexts, judged, at = [np.zeros((0, N_COLUMNS), np.float32)], [np.zeros(0, np.float32)], 0
    for part in held:
        best = shortlist(part.table, probabilities[at : at + len(part.targets)], part.pairs)
        contexts.append(best.table)
        judged.append(part.targets[best.listed])
        at += len(part.targets)
    second = BinnedColumns.of(np.concatenate(contexts), random_state)
    return fit(binned, targets), fit(second, np.concatenate(judged))


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
