"""Gradient-boosted trees for a yes-or-no target: growing one tree on binned columns, and walking a forest.

A node is four numbers at one place of four arrays: the column to look at (-1 in a leaf), the bin or value up to which
to go left, the place of the left child (the right one follows it), and a leaf's value.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from labelspace.types import Floats, Ints

Bytes = npt.NDArray[np.uint8]
BINS = 256
LEAST_GAIN = 1e-6


@njit(cache=True, nogil=True)
def add_histogram(
    binned: Bytes, gradient: Floats, curvature: Floats, rows: Ints, histogram: npt.NDArray[np.float64]
) -> None:
    """Add up gradient, curvature and number of the given rows for each column and bin. Shape (columns, BINS, 3)."""
    for row in rows:
        g, h = gradient[row], curvature[row]
        for column in range(binned.shape[1]):
            at = histogram[column, binned[row, column]]
            at[0] += g
            at[1] += h
            at[2] += 1.0


@njit(cache=True, nogil=True)
def best_split(histogram: npt.NDArray[np.float64], least_rows: int, l2: float) -> tuple[float, int, int]:
    """The gain, column and last left bin of the best split of one node; no split is a column of -1."""
    g, h, n = histogram[0, :, 0].sum(), histogram[0, :, 1].sum(), histogram[0, :, 2].sum()
    whole = g * g / (h + l2)
    gain, at_column, at_bin = LEAST_GAIN, -1, 0
    for column in range(histogram.shape[0]):
        left_g, left_h, left_n = 0.0, 0.0, 0.0
        for b in range(BINS - 1):
            if histogram[column, b, 2] == 0.0:
                continue
            left_g += histogram[column, b, 0]
            left_h += histogram[column, b, 1]
            left_n += histogram[column, b, 2]
            if left_n < least_rows:
                continue
            if n - left_n < least_rows:
                break
            right_g, right_h = g - left_g, h - left_h
            here = left_g * left_g / (left_h + l2) + right_g * right_g / (right_h + l2) - whole
            if here > gain:
                gain, at_column, at_bin = here, column, b
    return gain, at_column, at_bin


@njit(cache=True, nogil=True)
def grow(
    binned: Bytes,
    gradient: Floats,
    curvature: Floats,
    leaves: int,
    least_rows: int,
    l2: float,
    rate: float,
    margin: Floats,
) -> tuple[Ints, Ints, Ints, Floats]:
    """Grow one tree, the leaf with most to gain first, and add its values to the rows' ``margin``.

    Returns column, bin, left child and value of each node. The larger half of a split is the node less the smaller.
    """
    n, columns = binned.shape
    size = 2 * leaves - 1
    column, bins, left = np.full(size, -1, np.int32), np.zeros(size, np.int32), np.zeros(size, np.int32)
    value = np.zeros(size, np.float32)
    rows = np.arange(n).astype(np.int32)
    begin, end = np.zeros(size, np.int64), np.zeros(size, np.int64)
    gain, split_column, split_bin = np.zeros(size), np.full(size, -1, np.int32), np.zeros(size, np.int32)
    slot = np.zeros(size, np.int32)  # where the histogram of an open leaf is kept
    histograms = np.zeros((leaves, columns, BINS, 3))
    spare = np.empty(n, np.int32)
    end[0] = n
    add_histogram(binned, gradient, curvature, rows, histograms[0])
    gain[0], split_column[0], split_bin[0] = best_split(histograms[0], least_rows, l2)
    used = 1
    while used < size:
        node = -1
        for i in range(used):
            if column[i] < 0 and split_column[i] >= 0 and (node < 0 or gain[i] > gain[node]):
                node = i
        if node < 0:
            break
        column[node], bins[node], left[node] = split_column[node], split_bin[node], used
        at, kept = begin[node], 0
        for i in range(begin[node], end[node]):  # rows that go left move to the front, all in their old order
            row = rows[i]
            if binned[row, column[node]] <= bins[node]:
                rows[at] = row
                at += 1
            else:
                spare[kept] = row
                kept += 1
        rows[at : end[node]] = spare[:kept]
        begin[used], end[used], begin[used + 1], end[used + 1] = begin[node], at, at, end[node]
        small, large = (used, used + 1) if at - begin[node] <= end[node] - at else (used + 1, used)
        slot[large], slot[small] = slot[node], (used + 1) // 2
        fresh, older = histograms[slot[small]], histograms[slot[large]]
        add_histogram(binned, gradient, curvature, rows[begin[small] : end[small]], fresh)
        older -= fresh
        for child in (used, used + 1):
            gain[child], split_column[child], split_bin[child] = best_split(histograms[slot[child]], least_rows, l2)
        used += 2
    for node in range(used):
        if column[node] < 0:
            g, h = 0.0, 0.0
            for i in range(begin[node], end[node]):
                g += gradient[rows[i]]
                h += curvature[rows[i]]
            value[node] = -rate * g / (h + l2)
            for i in range(begin[node], end[node]):
                margin[rows[i]] += value[node]
    return column[:used].copy(), bins[:used].copy(), left[:used].copy(), value[:used].copy()


@njit(cache=True, nogil=True)
def forest_scores(
    F: Floats, start: int, stop: int, roots: Ints, column: Ints, upto: Floats, left: Ints, value: Floats, out: Floats
) -> None:
    """Add the leaves that rows start..stop of F fall into to ``out``, tree by tree: a tree stays in the cache."""
    for root in roots:
        for row in range(start, stop):
            node = root
            while column[node] >= 0:
                node = left[node] if F[row, column[node]] <= upto[node] else left[node] + 1
            out[row] += value[node]
