"""Gradient-boosted trees with a logistic loss: from a table of numbers to the chance of a yes.

1. Cut every column into at most 256 bins of about equal size.
2. Begin with the log-odds of the share of yes.
3. Again and again, grow a tree on the gradients of the logistic loss, and add a small step of it.

The learned forest is a handful of arrays, saved like everything else; no tree is a Python object.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelspace.kernels.gbdt import BINS, forest_scores, grow
from labelspace.kernels.threads import run_blocks
from labelspace.training.losses import sigmoid
from labelspace.types import Floats, Ints, Progress

ROW_BLOCK = 8192
SAMPLE = 200_000  # rows looked at for the bins
NO_NODES, NO_VALUES = np.zeros(0, np.int32), np.zeros(0, np.float32)


@dataclass(frozen=True)
class Forest:
    """Boosted trees as arrays."""

    roots: Ints
    column: Ints
    upto: Floats
    left: Ints
    value: Floats
    base: Floats

    def probabilities(self, F: Floats) -> Floats:
        """The chance of a yes for each row of F (n, columns)."""
        margins = np.full(len(F), self.base[0], np.float32)

        def walk(start: int, stop: int) -> None:
            forest_scores(F, start, stop, self.roots, self.column, self.upto, self.left, self.value, margins)

        run_blocks(walk, len(F), ROW_BLOCK)
        return sigmoid(margins)


def boost(
    F: Floats,
    y: Floats,
    rounds: int = 200,
    rate: float = 0.05,
    leaves: int = 31,
    least_rows: int = 20,
    l2: float = 1.0,
    seed: int = 0,
    progress: Progress | None = None,
) -> Forest:
    """Learn a forest from rows F (n, columns) and targets y of 0 and 1.

    >>> F = np.linspace(0, 1, 200, dtype=np.float32)[:, None]
    >>> forest = boost(F, (F[:, 0] > 0.5).astype(np.float32))
    >>> forest.probabilities(np.array([[0.2], [0.8]], np.float32)).round(2).tolist()
    [0.0, 1.0]
    """
    cuts = [_cuts(column) for column in _sample(F, seed).T]  # step 1
    binned = np.empty(F.shape, np.uint8)
    for at, ends in enumerate(cuts):
        binned[:, at] = np.searchsorted(ends, F[:, at], side="left")
    share = float(np.clip(y.mean(), 1e-6, 1 - 1e-6)) if len(y) else 0.5  # step 2
    base = np.float32(np.log(share / (1 - share)))
    margin = np.full(len(F), base, np.float32)
    columns, uptos, lefts, values = [NO_NODES], [NO_VALUES], [NO_NODES], [NO_VALUES]
    roots, size = [], 0
    for done in range(rounds if len(y) else 0):  # step 3
        p = sigmoid(margin)
        column, bins, left, value = grow(binned, p - y, p * (1 - p), leaves, least_rows, float(l2), float(rate), margin)
        upto = [cuts[c][b] if c >= 0 else 0.0 for c, b in zip(column.tolist(), bins.tolist(), strict=True)]
        columns.append(column)
        uptos.append(np.array(upto, np.float32))
        lefts.append(left + np.int32(size))
        values.append(value)
        roots.append(size)
        size += len(column)
        if progress is not None:
            progress("rounds of the combiner", done + 1, rounds)
    joined = (np.concatenate(columns), np.concatenate(uptos), np.concatenate(lefts), np.concatenate(values))
    return Forest(np.array(roots, np.int32), *joined, np.array([base], np.float32))


def _sample(F: Floats, seed: int) -> Floats:
    if len(F) <= SAMPLE:
        return F
    chosen: npt.NDArray[np.int64] = np.sort(np.random.default_rng(seed).choice(len(F), SAMPLE, replace=False))
    return F[chosen]


def _cuts(column: Floats) -> Floats:
    """The largest value of each bin but the last: at most BINS - 1, increasing."""
    values = np.unique(column)
    if len(values) <= BINS:
        return values[:-1]
    return np.unique(np.quantile(column, np.linspace(0, 1, BINS + 1)[1:-1], method="lower"))
