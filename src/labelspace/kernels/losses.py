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
def margin_gradient(
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


@njit(cache=True, nogil=True)
def take_out(columns: Ints, ends: Ints, start: int, scores: Floats, own: Floats) -> None:
    """Move the scores of true labels to ``own``, one after another, and leave -inf in their places."""
    for i in range(len(scores)):
        for j in range(ends[start + i], ends[start + i + 1]):
            own[j - ends[start]] = scores[i, columns[j]]
            scores[i, columns[j]] = -np.inf


@njit(cache=True, nogil=True)
def pair_shares(columns: Ints, ends: Ints, start: int, own: Floats, out: Floats) -> None:
    """Each true label of a row against all wrong ones, from the powers of e that are their scores.

    ``own`` has those of true labels, one after another; ``out`` those of wrong ones, with 0 in the places of true ones.
    The loss of row i is the mean over its true labels of -log(own / (own + the sum over wrong ones)).
    """
    for i in range(len(out)):
        powers, first, last = out[i], ends[start + i], ends[start + i + 1]
        if first == last:  # no label, nothing to learn
            powers[:] = 0.0
            continue
        wrong = 1e-30  # where there are none
        for column in range(len(powers)):
            wrong += powers[column]
        share = 0.0
        for j in range(first, last):
            share += 1.0 / ((wrong + own[j - ends[start]]) * (last - first))
        for column in range(len(powers)):
            powers[column] *= np.float32(share)
        for j in range(first, last):
            powers[columns[j]] = np.float32(-wrong / ((wrong + own[j - ends[start]]) * (last - first)))
