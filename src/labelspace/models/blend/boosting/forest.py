"""Gradient-boosted decision trees with a logistic loss: from a table of numbers to the probability of a yes.

1. Cut every column into at most 256 bins of about equal size.
2. Start with the log-odds of the share of positives.
3. Again and again, grow a tree on the gradients of the logistic loss, and add a small step of it.

The learned forest is a handful of arrays, saved like everything else; no tree is a Python object.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from labelspace.estimator.state_constraints import array, ids, must
from labelspace.kernels.threads import run_blocks
from labelspace.models.blend.boosting import kernels
from labelspace.training.losses import sigmoid
from labelspace.types import Bools, Floats, Ints, Longs, Progress

ROW_BLOCK = 8192  # rows per task of a thread
BINNING_SAMPLE = 200_000  # rows that the bins are made from: more give finer quantiles and take longer
GROWTH = kernels.GrowthOptions(kernels.MAX_LEAVES, min_child_weight=1.0, l2=1.0, learning_rate=0.05)
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
        """Check that the nodes form small trees, one after another, each node before its children."""
        n, inner = len(self.column), np.flatnonzero(self.column >= 0)
        left = self.left[inner]
        must((left > inner).all() and (left + 1 < n).all(), "nodes in order")
        once = np.sort(np.concatenate([self.roots, left, left + 1]))
        must(np.array_equal(once, np.arange(n)) and (np.diff(self.roots) > 0).all(), "nodes of one tree each")
        tree = self.trees()
        must((tree[inner] == tree[left]).all() and (tree[inner] == tree[left + 1]).all(), "trees one after another")
        must(
            np.bincount(tree[self.column < 0]).max(initial=0) <= kernels.MAX_LEAVES,
            f"trees of at most {kernels.MAX_LEAVES} leaves",
        )

    def trees(self) -> Longs:
        """Return the tree of each node."""
        return np.searchsorted(self.roots, np.arange(len(self.column)), side="right") - 1

    @cached_property
    def _leaf_bits(self) -> kernels.LeafBits:
        return leaf_bits(self)

    def probabilities(self, F: Floats) -> Floats:
        """Return the probability of a yes for each row of F (n, columns)."""
        scores, forest = np.full(len(F), self.base[0], np.float32), self._leaf_bits
        run_blocks(lambda start, stop: kernels.forest_scores(F, start, stop, forest, scores), len(F), ROW_BLOCK)
        return sigmoid(scores)


def leaf_bits(forest: Forest) -> kernels.LeafBits:
    """Lay out a forest for ``forest_scores``."""
    inner, leaves = np.flatnonzero(forest.column >= 0), np.flatnonzero(forest.column < 0)
    left = forest.left[inner].astype(np.int64)
    n_leaves, first = np.ones((2, len(forest.column)), np.int64)  # below a node, and the number of the first one
    for node, child in zip(inner[::-1].tolist(), left[::-1].tolist(), strict=True):
        n_leaves[node] = n_leaves[child] + n_leaves[child + 1]
    first[forest.roots] = 0
    for node, child in zip(inner.tolist(), left.tolist(), strict=True):
        first[child], first[child + 1] = first[node], first[node] + n_leaves[child]
    cleared = ((1 << n_leaves[left]) - 1) << first[left]
    values = np.zeros((len(forest.roots), kernels.MAX_LEAVES), np.float32)
    values[forest.trees()[leaves], first[leaves]] = forest.value[leaves]
    ends = np.append(np.searchsorted(inner, forest.roots), len(inner)).astype(np.int64)
    masks = (~cleared & (2**32 - 1)).astype(np.uint32)
    return kernels.LeafBits(ends, forest.column[inner], forest.threshold[inner], masks, values)


class BinnedColumns(NamedTuple):
    """The columns of a table, cut into bins."""

    bins: kernels.Bytes  # (n, columns)
    edges: list[Floats]  # of each column: the largest value of each bin but the last

    @classmethod
    def of(cls, F: Floats, random_state: int = 0) -> Self:
        """Bin a table of rows F (n, columns) (step 1)."""
        edges = [_bin_edges(column) for column in _sample(F, random_state).T]
        bins = np.empty(F.shape, np.uint8)
        for at, column_edges in enumerate(edges):
            bins[:, at] = np.searchsorted(column_edges, F[:, at], side="left")
        return cls(bins, edges)

    def rows(self, chosen: Bools) -> "BinnedColumns":
        """Return some of the rows, in the same bins."""
        return BinnedColumns(self.bins[chosen], self.edges)


def fit_forest(
    binned: BinnedColumns,
    y: Floats,
    n_rounds: int = 200,
    options: kernels.GrowthOptions = GROWTH,
    progress: Progress | None = None,
) -> Forest:
    """Learn a forest from the rows of a table and targets y of 0 and 1.

    >>> F = np.linspace(0, 1, 200, dtype=np.float32)[:, None]
    >>> forest = fit_forest(BinnedColumns.of(F), (F[:, 0] > 0.5).astype(np.float32))
    >>> forest.probabilities(np.array([[0.2], [0.8]], np.float32)).round(1).tolist()
    [0.0, 1.0]
    """
    share = float(np.clip(y.mean(), 1e-6, 1 - 1e-6)) if len(y) else 0.5  # step 2
    base = np.float32(np.log(share / (1 - share)))
    scores = np.full(len(y), base, np.float32)
    columns, thresholds, lefts, values = [NO_NODES], [NO_VALUES], [NO_NODES], [NO_VALUES]
    roots, size = [], 0
    for done in range(n_rounds if len(y) else 0):  # step 3
        p = sigmoid(scores)
        column, bins, left, value = kernels.grow_tree(binned.bins, p - y, p * (1 - p), options, scores)
        splits = zip(column.tolist(), bins.tolist(), strict=True)
        threshold = [binned.edges[c][b] if c >= 0 else 0.0 for c, b in splits]
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
    """Return the largest value of each bin except the last: at most N_BINS - 1 values, increasing."""
    values = np.unique(column)
    if len(values) <= kernels.N_BINS:
        return values[:-1]
    return np.unique(np.quantile(column, np.linspace(0, 1, kernels.N_BINS + 1)[1:-1], method="lower"))
