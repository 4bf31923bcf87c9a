"""Gradient-boosted decision trees with a logistic loss: from a table of numbers to the probability of a yes.

1. Cut every column into at most 256 bins of about equal size.
2. Start with the log-odds of the share of positives.
3. Again and again, grow a tree on the gradients of the logistic loss, and add a small step of it.

The learned forest is a handful of arrays, saved like everything else; no tree is a Python object.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from labelspace.kernels.gbdt import N_BINS, forest_scores, grow_tree
from labelspace.kernels.threads import run_blocks
from labelspace.state_constraints import array, ids, must
from labelspace.training.losses import sigmoid
from labelspace.types import Floats, Ints, Progress

ROW_BLOCK = 8192
BINNING_SAMPLE = 200_000  # rows that the bins are made by
NO_NODES, NO_VALUES = np.zeros(0, np.int32), np.zeros(0, np.float32)


@dataclass(frozen=True)
class Forest:
    """Boosted trees as arrays: node i splits ``column[i]`` at ``threshold[i]`` into left[i] and left[i] + 1."""

    roots: Annotated[Ints, ids("n_trees", below="n_nodes")]
    column: Annotated[Ints, ids("n_nodes", below="n_columns", at_least=-1)]  # -1 for a leaf
    threshold: Annotated[Floats, array("float32", "n_nodes", finite=False)]
    left: Annotated[Ints, ids("n_nodes", below="n_nodes")]
    value: Annotated[Floats, array("float32", "n_nodes")]  # of a leaf
    base: Annotated[Floats, array("float32", 1)]  # the log-odds that boosting starts with

    def check_state(self) -> None:
        """A node comes before its children, so that a walk down ends."""
        inner = np.flatnonzero(self.column >= 0)
        must((self.left[inner] > inner).all() and (self.left[inner] + 1 < len(self.left)).all(), "nodes in order")

    def probabilities(self, F: Floats) -> Floats:
        """The probability of a yes for each row of F (n, columns)."""
        scores = np.full(len(F), self.base[0], np.float32)

        def score(start: int, stop: int) -> None:
            forest_scores(F, start, stop, self.roots, self.column, self.threshold, self.left, self.value, scores)

        run_blocks(score, len(F), ROW_BLOCK)
        return sigmoid(scores)


def fit_forest(
    F: Floats,
    y: Floats,
    n_rounds: int = 200,
    learning_rate: float = 0.05,
    max_leaves: int = 31,
    min_leaf_rows: int = 20,
    l2: float = 1.0,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Forest:
    """Learn a forest from rows F (n, columns) and targets y of 0 and 1.

    >>> F = np.linspace(0, 1, 200, dtype=np.float32)[:, None]
    >>> forest = fit_forest(F, (F[:, 0] > 0.5).astype(np.float32))
    >>> forest.probabilities(np.array([[0.2], [0.8]], np.float32)).round(2).tolist()
    [0.0, 1.0]
    """
    cuts = [_bin_edges(column) for column in _sample(F, random_state).T]  # step 1
    binned = np.empty(F.shape, np.uint8)
    for at, edges in enumerate(cuts):
        binned[:, at] = np.searchsorted(edges, F[:, at], side="left")
    share = float(np.clip(y.mean(), 1e-6, 1 - 1e-6)) if len(y) else 0.5  # step 2
    base = np.float32(np.log(share / (1 - share)))
    scores = np.full(len(F), base, np.float32)
    columns, thresholds, lefts, values = [NO_NODES], [NO_VALUES], [NO_NODES], [NO_VALUES]
    roots, size = [], 0
    for done in range(n_rounds if len(y) else 0):  # step 3
        p = sigmoid(scores)
        column, bins, left, value = grow_tree(
            binned, p - y, p * (1 - p), max_leaves, min_leaf_rows, float(l2), float(learning_rate), scores
        )
        threshold = [cuts[c][b] if c >= 0 else 0.0 for c, b in zip(column.tolist(), bins.tolist(), strict=True)]
        columns.append(column)
        thresholds.append(np.array(threshold, np.float32))
        lefts.append(left + np.int32(size))
        values.append(value)
        roots.append(size)
        size += len(column)
        if progress is not None:
            progress("boosting rounds", done + 1, n_rounds)
    joined = (np.concatenate(columns), np.concatenate(thresholds), np.concatenate(lefts), np.concatenate(values))
    return Forest(np.array(roots, np.int32), *joined, np.array([base], np.float32))


def _sample(F: Floats, random_state: int) -> Floats:
    if len(F) <= BINNING_SAMPLE:
        return F
    rng = np.random.default_rng(random_state)
    rows: npt.NDArray[np.int64] = np.sort(rng.choice(len(F), BINNING_SAMPLE, replace=False))
    return F[rows]


def _bin_edges(column: Floats) -> Floats:
    """The largest value of each bin but the last: at most BINS - 1, increasing."""
    values = np.unique(column)
    if len(values) <= N_BINS:
        return values[:-1]
    return np.unique(np.quantile(column, np.linspace(0, 1, N_BINS + 1)[1:-1], method="lower"))
