"""Score rows by a forest of small decision trees, some rows side by side (QuickScorer, Lucchese et al., SIGIR 2015).

The leaves of a tree are bits, leftmost leaf first. A row starts with all bits of a tree; every inner node whose test
fails (value above the threshold: go right) clears the leaves of its left part. The lowest bit left is the row's leaf.
No branch depends on the data, so that rows are processed in vectors.
"""

import numpy as np
import numpy.typing as npt

from labelspace.kernels.compiled import kernel
from labelspace.types import Floats, Ints, Longs

ROWS_AT_ONCE = 64  # rows side by side, at most: a loop of a length that is not known before becomes vectors
MAX_LEAVES = 32  # of a tree: its leaves are the bits of a number
ALL_BITS = np.uint32(2**32 - 1)
ONE, ZERO = np.uint32(1), np.uint32(0)
Masks = npt.NDArray[np.uint32]


@kernel()
def forest_scores(
    F: Floats, start: int, stop: int, ends: Longs, column: Ints, threshold: Floats, masks: Masks, leaf_values: Floats,
    out: Floats,
) -> None:  # fmt: skip
    """Add the leaf values of rows start..stop of F (n, columns) to ``out``, tree after tree.

    Tree t has the inner nodes ``ends[t]`` to ``ends[t + 1]``: a column, a threshold, and a mask without the leaves of
    the left part. ``leaf_values`` (trees, MAX_LEAVES) are those of the leaves from left to right.
    """
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
                out[first + i] += leaf_values[tree, np.int64(exponents[i] >> np.uint32(23)) - 127]
