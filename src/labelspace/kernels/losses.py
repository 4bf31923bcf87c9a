"""Gradients of losses by the scores of a batch, written over the scores.

``columns[ends[i] : ends[i + 1]]`` are the columns of row i's positive labels.
"""

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.kernels.topk import push
from labelspace.types import Floats, Ints, Longs


@kernel()
def subtract_positives(columns: Ints, ends: Ints, start: int, normalize: bool, out: Floats) -> None:
    """Subtract 1 at each row's positive labels, or 1 / their number if ``normalize``; ``out`` starts at row start."""
    for i in range(len(out)):
        first, last = ends[start + i], ends[start + i + 1]
        share = np.float32(1.0 / (last - first)) if normalize and last > first else np.float32(1.0)
        for j in range(first, last):
            out[i, columns[j]] -= share


@kernel()
def margin_gradient(
    columns: Ints, ends: Ints, start: int, positives: Longs, margin: float, n_hardest: int, out: Floats
) -> None:
    """Compute the gradient of the margin loss of one positive per row, ``columns[positives[i]]``.

    The loss of row i is the mean over its ``n_hardest`` best-scored negatives of max(0, negative - positive + margin).
    """
    hard_scores, hard_columns = np.empty(n_hardest, np.float32), np.empty(n_hardest, np.int32)
    for i in range(len(out)):
        scores, first, last = out[i], ends[start + i], ends[start + i + 1]
        if first == last:  # no label, nothing to learn
            scores[:] = 0.0
            continue
        positive = columns[positives[start + i]]
        min_score = scores[positive] - np.float32(margin)
        for j in range(first, last):
            scores[columns[j]] = -np.inf
        size = 0
        for column in range(len(scores)):
            if scores[column] > min_score:
                size = push(hard_scores, hard_columns, size, scores[column], column)
        scores[:] = 0.0
        for j in range(size):
            scores[hard_columns[j]] = np.float32(1.0 / n_hardest)
        scores[positive] = np.float32(-size / n_hardest)


@kernel()
def extract_positive_scores(columns: Ints, ends: Ints, start: int, scores: Floats, positive_scores: Floats) -> None:
    """Move the scores of positive labels to ``positive_scores``, row by row, and set them to -inf."""
    for i in range(len(scores)):
        for j in range(ends[start + i], ends[start + i + 1]):
            positive_scores[j - ends[start]] = scores[i, columns[j]]
            scores[i, columns[j]] = -np.inf


@kernel()
def pairwise_softmax_from_exp(columns: Ints, ends: Ints, start: int, positive_exps: Floats, out: Floats) -> None:
    """Compute the gradient of the softmax of each positive against all negatives, from exponentials of scores.

    ``positive_exps`` has the exponentials of positives, row by row; ``out`` those of negatives, with 0 at the
    positives. The loss of row i is the mean over its positives of -log(positive / (positive + sum of negatives)).
    """
    for i in range(len(out)):
        row_exps, first, last = out[i], ends[start + i], ends[start + i + 1]
        if first == last:  # no label, nothing to learn
            row_exps[:] = 0.0
            continue
        negative_sum = 1e-30  # if there are none
        for column in range(len(row_exps)):
            negative_sum += row_exps[column]
        weight = 0.0
        for j in range(first, last):
            weight += 1.0 / ((negative_sum + positive_exps[j - ends[start]]) * (last - first))
        for column in range(len(row_exps)):
            row_exps[column] *= np.float32(weight)
        for j in range(first, last):
            total = negative_sum + positive_exps[j - ends[start]]
            row_exps[columns[j]] = np.float32(-negative_sum / (total * (last - first)))
