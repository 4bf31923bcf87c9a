"""Gradient-boosted decision trees for a binary target: grow one tree on binned columns.

A tree is four arrays with one entry per node: split column (-1 in a leaf), the largest bin or value that goes left,
the left child (the right child follows it), and the value of a leaf.
"""

import numpy as np
import numpy.typing as npt

from labelspace.kernels.compiled import kernel
from labelspace.types import Doubles, Floats, Ints

Bytes = npt.NDArray[np.uint8]
N_BINS = 256
MIN_GAIN = 1e-6


@kernel()
def add_histogram(binned: Bytes, gradient: Floats, hessian: Floats, rows: Ints, histogram: Doubles) -> None:
    """Sum gradient, hessian and number of the given rows per column and bin. Shape (columns, N_BINS, 3)."""
    for row in rows:
        g, h = gradient[row], hessian[row]
        for column in range(binned.shape[1]):
            cell = histogram[column, binned[row, column]]
            cell[0] += g
            cell[1] += h
            cell[2] += 1.0


@kernel()
def best_split(histogram: Doubles, min_samples_leaf: int, l2: float) -> tuple[float, int, int]:
    """Gain, column and last left bin of the best split of a node; column -1 if there is none."""
    g, h, n = 0.0, 0.0, 0.0
    for b in range(N_BINS):
        g, h, n = g + histogram[0, b, 0], h + histogram[0, b, 1], n + histogram[0, b, 2]
    parent_score = g * g / (h + l2)
    best_gain, best_column, best_bin = MIN_GAIN, -1, 0
    for column in range(histogram.shape[0]):
        left_g, left_h, left_n = 0.0, 0.0, 0.0
        for b in range(N_BINS - 1):
            if histogram[column, b, 2] == 0.0:
                continue
            left_g += histogram[column, b, 0]
            left_h += histogram[column, b, 1]
            left_n += histogram[column, b, 2]
            if left_n < min_samples_leaf:
                continue
            if n - left_n < min_samples_leaf:
                break
            right_g, right_h = g - left_g, h - left_h
            split_gain = left_g * left_g / (left_h + l2) + right_g * right_g / (right_h + l2) - parent_score
            if split_gain > best_gain:
                best_gain, best_column, best_bin = split_gain, column, b
    return best_gain, best_column, best_bin


@kernel()
def grow_tree(
    binned: Bytes, gradient: Floats, hessian: Floats, max_leaves: int, min_samples_leaf: int, l2: float,
    learning_rate: float, margin: Floats,
) -> tuple[Ints, Ints, Ints, Floats]:  # fmt: skip
    """Grow one tree, the leaf of highest gain first, and add its values to the rows' ``margin``.

    Returns column, bin, left child and value of each node. The histogram of the larger child is parent minus smaller.
    """
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
    histograms = np.zeros((max_leaves, columns, N_BINS, 3))
    right_rows = np.empty(n, np.int32)
    stops[0] = n
    add_histogram(binned, gradient, hessian, rows, histograms[0])
    gain[0], split_column[0], split_bin[0] = best_split(histograms[0], min_samples_leaf, l2)
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
        add_histogram(binned, gradient, hessian, rows[starts[small] : stops[small]], small_histogram)
        for c in range(columns):
            for b in range(N_BINS):
                for part in range(3):
                    large_histogram[c, b, part] -= small_histogram[c, b, part]
        for child in (size, size + 1):
            histogram = histograms[slot[child]]
            gain[child], split_column[child], split_bin[child] = best_split(histogram, min_samples_leaf, l2)
        size += 2
    for node in range(size):
        if column[node] < 0:
            g, h = 0.0, 0.0
            for i in range(starts[node], stops[node]):
                g += gradient[rows[i]]
                h += hessian[rows[i]]
            value[node] = -learning_rate * g / (h + l2)
            for i in range(starts[node], stops[node]):
                margin[rows[i]] += value[node]
    return column[:size].copy(), bins[:size].copy(), left[:size].copy(), value[:size].copy()
