"""The gradient of a loss by the scores of a batch, written over the scores.

``columns[ends[i] : ends[i + 1]]`` are the places of row i's true labels.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from labelspace.kernels.topk import push
from labelspace.types import Floats, Ints, Longs


@njit(cache=True, nogil=True)
def subtract_at(columns: Ints, ends: Ints, start: int, shared: bool, out: Floats) -> None:
    """Take 1 from the places of each row's true labels, or a share of 1 from each; ``out`` begins at row start."""
    for i in range(len(out)):
        first, last = ends[start + i], ends[start + i + 1]
        part = np.float32(1.0 / (last - first)) if shared and last > first else np.float32(1.0)
        for j in range(first, last):
            out[i, columns[j]] -= part


@njit(cache=True, nogil=True)
def margin_errors(
    columns: Ints, ends: Ints, start: int, drawn: Longs, margin: float, hardest: int, out: Floats
) -> None:
    """The margin loss of one true label a row, ``columns[drawn[i]]``, against the hardest wrong ones.

    The loss of row i is the mean over its ``hardest`` best-scored wrong labels of max(0, theirs - own + margin).
    """
    best, ids = np.empty(hardest, np.float32), np.empty(hardest, np.int32)
    for i in range(len(out)):
        scores, first, last = out[i], ends[start + i], ends[start + i + 1]
        if first == last:  # no label, nothing to learn
            scores[:] = 0.0
            continue
        own = columns[drawn[start + i]]
        least = scores[own] - np.float32(margin)
        for j in range(first, last):
            scores[columns[j]] = -np.inf
        size = 0
        for column in range(len(scores)):
            if scores[column] > least:
                size = push(best, ids, size, scores[column], column)
        scores[:] = 0.0
        for j in range(size):
            scores[ids[j]] = np.float32(1.0 / hardest)
        scores[own] = np.float32(-size / hardest)
