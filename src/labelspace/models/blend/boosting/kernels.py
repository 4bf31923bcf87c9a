"""Kernels of gradient-boosted decision trees: grow a tree, score rows by a forest, Shapley values of a forest.

Growing (binary target, binned columns): a tree is four arrays with one entry per node: split column (-1 in a leaf), the
largest bin or value that goes left, the left child (the right child follows it), and the value of a leaf. Histograms
count in whole numbers: a row's gradient, rounded, is the upper half of one integer and its hessian the lower half, so
that one addition sums both. Leaves are given values by the exact ones.

Scoring, some rows side by side (QuickScorer, Lucchese et al., SIGIR 2015): the leaves of a tree are bits, leftmost leaf
first. A row starts with all bits of a tree; every inner node whose test fails (value above the threshold: go right)
clears the leaves of its left part. The lowest bit left is the row's leaf. No branch depends on the data, so that rows
are processed in vectors.

Shapley values between two rows, exact, in one pass over the nodes that tell the rows apart: the players are groups of
columns. In a coalition, its players have the values of the row x, all others those of the reference row r, and the
worth is the forest's score. In one tree, a path to a leaf is taken if some players have the values of x and some others
those of r; with a of the former and b of the latter, the leaf's value counts for each of the a players with
(a - 1)! b! / (a + b)!, and against each of the b players with a! (b - 1)! / (a + b)! (interventional TreeSHAP, Lundberg
et al., Nature Machine Intelligence 2020, with a single reference).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from labelspace.kernels.compiled import integer, kernel
from labelspace.types import Doubles, Floats, Ints, Longs

Bytes = npt.NDArray[np.uint8]
N_BINS = 256
MIN_GAIN = 1e-6  # a split that gains less is not made: it may be rounding
HALF = 32  # bits of a half of a packed integer
LOWER = (1 << HALF) - 1
MOST_STEPS = 2.0**16  # a gradient of 1 is counted in so many steps: more are finer, but fewer rows fit into a half
ROWS_AT_ONCE = 64  # rows side by side, at most: a loop of a length that is not known before becomes vectors
MAX_LEAVES = 32  # of a tree: its leaves are the bits of a number
ALL_BITS = np.uint32(2**32 - 1)
ONE, ZERO = np.uint32(1), np.uint32(0)
Masks = npt.NDArray[np.uint32]
UNDECIDED, FROM_X, FROM_R = 0, 1, 2


class GrowthOptions(NamedTuple):
    """How a tree is grown."""

    max_leaves: int
    min_child_weight: float  # least sum of the hessians of a child's rows
    l2: float  # added to the hessians: it draws the values of leaves towards 0
    learning_rate: float


class LeafBits(NamedTuple):
    """A forest laid out for ``forest_scores``: inner nodes, tree after tree, and the values of the leaves.

    Tree t has the inner nodes ``ends[t]`` to ``ends[t + 1]``: a column, a threshold, and a mask without the leaves of
    the left part.
    """

    ends: Longs  # (n_trees + 1,)
    column: Ints
    threshold: Floats
    masks: Masks
    leaf_values: Floats  # (n_trees, MAX_LEAVES), the leaves from left to right


class ForestNodes(NamedTuple):
    """The nodes of a forest: node i splits ``column[i]``, -1 for a leaf, at ``threshold[i]``.

    Rows up to the threshold go to left[i], others to left[i] + 1.
    """

    roots: Ints
    column: Ints
    threshold: Floats
    left: Ints
    value: Floats  # of a leaf


@kernel()
def pack_gradients(gradient: Floats, hessian: Floats, scale: float) -> Longs:
    """Return gradient and hessian of each row, times ``scale`` and rounded, as the halves of one integer."""
    packed = np.empty(len(gradient), np.int64)
    for row in range(len(gradient)):
        packed[row] = (integer(np.rint(gradient[row] * scale)) << HALF) + integer(np.rint(hessian[row] * scale))
    return packed


@kernel()
def add_histogram(binned: Bytes, packed: Longs, rows: Ints, histogram: Longs) -> None:
    """Sum the packed gradients of the given rows per column and bin. Shape (columns, N_BINS)."""
    for row in rows:
        value = packed[row]
        for column in range(binned.shape[1]):
            histogram[column, binned[row, column]] += value


@kernel(fastmath={"arcp", "contract"}, forceinline=True)
def best_split(histogram: Longs, scale: float, min_child_weight: float, l2: float) -> tuple[float, int, int]:
    """Return gain, column and last left bin of the best split of a node; column -1 if there is none."""
    total = integer(0)
    for b in range(N_BINS):
        total += histogram[0, b]
    g, h = float(total >> HALF), float(total & LOWER)
    min_h, l2 = min_child_weight * scale, l2 * scale  # all in the steps of the histogram
    best, best_column, best_bin = g * g / (h + l2) + MIN_GAIN * scale, -1, 0
    for column in range(histogram.shape[0]):
        left = integer(0)
        for b in range(N_BINS - 1):
            if histogram[column, b] == 0:
                continue
            left += histogram[column, b]
            left_g, left_h = float(left >> HALF), float(left & LOWER)
            right_g, right_h = g - left_g, h - left_h
            if left_h < min_h:
                continue
            if right_h < min_h:
                break
            left_h, right_h = left_h + l2, right_h + l2
            score = (left_g * left_g * right_h + right_g * right_g * left_h) / (left_h * right_h)
            if score > best:
                best, best_column, best_bin = score, column, b
    return (best - g * g / (h + l2)) / scale, best_column, best_bin


@kernel()
def leaf_value(
    gradient: Floats, hessian: Floats, rows: Ints, l2: float, learning_rate: float, margin: Floats
) -> np.float32:
    """Return the value of a leaf with these rows, and add it to their ``margin``."""
    g, h = 0.0, 0.0
    for row in rows:
        g += gradient[row]
        h += hessian[row]
    value = np.float32(-learning_rate * g / (h + l2))
    for row in rows:
        margin[row] += value
    return value


@kernel()
def grow_tree(
    binned: Bytes, gradient: Floats, hessian: Floats, options: GrowthOptions, margin: Floats
) -> tuple[Ints, Ints, Ints, Floats]:
    """Grow one tree, the leaf of highest gain first, and add its values to the rows' ``margin``.

    ``gradient`` lies in -1..1 and ``hessian`` in 0..1; a child's hessians sum to at least ``min_child_weight``. Return
    column, bin, left child and value of each node. The histogram of the larger child is parent minus smaller.
    """
    max_leaves, min_child_weight, l2 = options.max_leaves, options.min_child_weight, options.l2
    n, columns = binned.shape
    max_nodes = 2 * max_leaves - 1
    column, bins, left = np.full(max_nodes, -1, np.int32), np.zeros(max_nodes, np.int32), np.zeros(max_nodes, np.int32)
    value = np.zeros(max_nodes, np.float32)
    rows = np.empty(n, np.int32)
    for i in range(n):
        rows[i] = i
    starts, stops = np.zeros(max_nodes, np.int64), np.zeros(max_nodes, np.int64)
    gain, split_column, split_bin = np.zeros(max_nodes), np.full(max_nodes, -1, np.int32), np.zeros(max_nodes, np.int32)
    slot = np.zeros(max_nodes, np.int32)  # index of the histogram of an open leaf
    histograms = np.zeros((max_leaves, columns, N_BINS), np.int64)
    scale = min(MOST_STEPS, 2.0 ** (HALF - 1) / max(n, 1))  # no sum reaches beyond its half
    packed = pack_gradients(gradient, hessian, scale)
    right_rows = np.empty(n, np.int32)
    stops[0] = n
    add_histogram(binned, packed, rows, histograms[0])
    gain[0], split_column[0], split_bin[0] = best_split(histograms[0], scale, min_child_weight, l2)
    size = 1
    while size < max_nodes:
        node = -1
        for i in range(size):
            if column[i] < 0 and split_column[i] >= 0 and (node < 0 or gain[i] > gain[node]):
                node = i
        if node < 0:
            break
        column[node], bins[node], left[node] = split_column[node], split_bin[node], size
        middle, n_right = starts[node], 0
        for i in range(starts[node], stops[node]):  # stable partition: left rows first
            row = rows[i]
            if binned[row, column[node]] <= bins[node]:
                rows[middle] = row
                middle += 1
            else:
                right_rows[n_right] = row
                n_right += 1
        for i in range(n_right):
            rows[middle + i] = right_rows[i]
        starts[size], stops[size], starts[size + 1], stops[size + 1] = (starts[node], middle, middle, stops[node])
        small, large = (size, size + 1) if middle - starts[node] <= stops[node] - middle else (size + 1, size)
        slot[large], slot[small] = slot[node], (size + 1) // 2
        small_histogram, large_histogram = histograms[slot[small]], histograms[slot[large]]
        add_histogram(binned, packed, rows[starts[small] : stops[small]], small_histogram)
        for c in range(columns):
            for b in range(N_BINS):
                large_histogram[c, b] -= small_histogram[c, b]
        for child in (size, size + 1):
            histogram = histograms[slot[child]]
            gain[child], split_column[child], split_bin[child] = best_split(histogram, scale, min_child_weight, l2)
        size += 2
    for node in range(size):
        if column[node] < 0:
            members = rows[starts[node] : stops[node]]
            value[node] = leaf_value(gradient, hessian, members, l2, options.learning_rate, margin)
    return column[:size].copy(), bins[:size].copy(), left[:size].copy(), value[:size].copy()


@kernel()
def forest_scores(F: Floats, start: int, stop: int, forest: LeafBits, out: Floats) -> None:
    """Add the leaf values of rows start..stop of F (n, columns) to ``out``, tree after tree."""
    ends, column, threshold, masks = forest.ends, forest.column, forest.threshold, forest.masks
    lanes = np.empty((F.shape[1], ROWS_AT_ONCE), np.float32)
    bits, powers = np.empty(ROWS_AT_ONCE, np.uint32), np.empty(ROWS_AT_ONCE, np.float32)
    exponents = powers.view(np.uint32)
    for first in range(start, stop, ROWS_AT_ONCE):
        n_rows = min(ROWS_AT_ONCE, stop - first)
        for i in range(n_rows):
            for c in range(F.shape[1]):
                lanes[c, i] = F[first + i, c]
        width = min((n_rows + 15) // 16 * 16, ROWS_AT_ONCE)  # whole vectors
        for tree in range(len(ends) - 1):
            for i in range(width):
                bits[i] = ALL_BITS
            for node in range(ends[tree], ends[tree + 1]):
                at, limit, mask = column[node], threshold[node], masks[node]
                for i in range(width):
                    bits[i] &= mask if lanes[at, i] > limit else ALL_BITS
            for i in range(width):  # the exponent of a power of two is the number of its bit
                powers[i] = np.float32(bits[i] & (ZERO - bits[i]))
            for i in range(n_rows):
                out[first + i] += forest.leaf_values[tree, np.int64(exponents[i] >> np.uint32(23)) - 127]


@kernel()
def forest_shapley(
    x: Floats, r: Floats, players: Ints, forest: ForestNodes, n_players: int, factorials: Doubles, out: Doubles
) -> None:
    """Write the Shapley value of each player to ``out``, and then the score of r and that of x.

    ``players`` has the player of each column. ``factorials`` reaches as far as a tree is deep. A tree is walked depth
    first; a level of the stack has the node, and what the walk decided there: a player, or none.
    """
    column, threshold, left = forest.column, forest.threshold, forest.left
    deepest = len(factorials) + 1
    nodes, decided, branch = np.empty(deepest, np.int64), np.empty(deepest, np.int64), np.empty(deepest, np.int64)
    side = np.zeros(n_players, np.int64)
    for i in range(n_players + 2):
        out[i] = 0.0
    for root in forest.roots:
        depth, n_x, n_r = integer(0), integer(0), integer(0)
        nodes[0], decided[0], branch[0] = root, -1, 0
        while depth >= 0:
            node = nodes[depth]
            if column[node] < 0:
                add_leaf(forest.value[node], side, n_players, n_x, n_r, factorials, out)
                depth -= 1
                continue
            player = players[column[node]]
            to_x = left[node] + (x[column[node]] > threshold[node])
            to_r = left[node] + (r[column[node]] > threshold[node])
            step = branch[depth]
            branch[depth] += 1
            if decided[depth] >= 0 and step == 1:  # back from the branch of x: now that of r
                side[player], n_x, n_r = FROM_R, n_x - 1, n_r + 1
                target = to_r
            elif step > 0:
                if decided[depth] >= 0:
                    side[player], n_r = UNDECIDED, n_r - 1
                depth -= 1
                continue
            elif to_x == to_r or side[player] == FROM_X:
                target = to_x
            elif side[player] == FROM_R:
                target = to_r
            else:
                side[player], n_x, decided[depth] = FROM_X, n_x + 1, player
                target = to_x
            depth += 1
            nodes[depth], decided[depth], branch[depth] = target, -1, 0


@kernel()
def add_leaf(value: float, side: Longs, n_players: int, n_x: int, n_r: int, factorials: Doubles, out: Doubles) -> None:
    """Add a leaf to the Shapley values of the players on its path, and to the scores of r and x."""
    if n_x == 0:
        out[n_players] += value
    if n_r == 0:
        out[n_players + 1] += value
    total = factorials[n_x + n_r]
    for player in range(n_players):
        if side[player] == FROM_X:
            out[player] += value * factorials[n_x - 1] * factorials[n_r] / total
        elif side[player] == FROM_R:
            out[player] -= value * factorials[n_x] * factorials[n_r - 1] / total
