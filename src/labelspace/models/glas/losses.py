"""The classification loss of a batch: its gradient with respect to the scores."""

import numpy as np

from labelspace.kernels.losses import margin_gradient
from labelspace.kernels.threads import run_blocks
from labelspace.training.losses import SampledLabels, bce_gradient, softmax_gradient
from labelspace.types import Floats, Ints, Longs

ROW_BLOCK = 64  # documents per task


def loss_gradient(
    scores: Floats, sampled: SampledLabels, positives: Longs | None, loss: str, margin: float, n_hardest: int | None
) -> Floats:
    """The gradient of the mean loss by the scores (batch, labels), which it overwrites.

    ``positives`` are the positions of the labels that ``sample_positives`` drew; None counts all labels of a document.
    The margin loss counts the ``n_hardest`` wrong labels, or, if None, the pairs with all of them (eq. 1).
    """
    columns, indptr = sampled.columns, sampled.indptr
    if loss == "softmax" and positives is not None:  # one label of each document that has some
        columns, indptr = columns[positives[positives >= 0]], np.append(0, np.cumsum(positives >= 0)).astype(np.int32)

    def to_gradient(start: int, stop: int) -> None:
        block, true = scores[start:stop], (columns, indptr, start)
        if loss == "bce":
            bce_gradient(block, *true, sampled.weights)
        elif loss == "softmax":
            softmax_gradient(block, *true, sampled.weights)
        elif positives is None or n_hardest is None:
            pairs_gradient(*true, positives, margin, block)
        else:
            margin_gradient(*true, positives, margin, min(n_hardest, scores.shape[1]), block)
        block /= np.float32(len(scores))

    run_blocks(to_gradient, len(scores), ROW_BLOCK)
    return scores


def pairs_gradient(columns: Ints, ends: Ints, start: int, positives: Longs | None, margin: float, out: Floats) -> None:
    """The margin loss of eq. 1, summed over the pairs of a true and a wrong label; ``out`` begins at row ``start``.

    The true labels are one per row, ``columns[positives[row]]``, or all, ``columns[ends[row] : ends[row + 1]]``.
    """
    begin, end = ends[start : start + len(out)], ends[start + 1 : start + 1 + len(out)]
    rows, true = np.repeat(np.arange(len(out)), end - begin), columns[begin[0] : end[-1]]
    true_scores = out[rows, true]
    out[rows, true] = -np.inf  # not wrong
    if positives is None:
        ranks = np.arange(len(rows)) - np.repeat(begin - begin[0], end - begin)  # of a label within its row
    else:
        drawn = positives[start : start + len(out)][begin < end] - begin[0]
        rows, true, true_scores, ranks = rows[drawn], true[drawn], true_scores[drawn], np.zeros(len(drawn), np.int64)
    gradient = np.zeros_like(out)
    for rank in range(int(ranks.max(initial=-1)) + 1):  # a pass has one true label of each row
        now = ranks == rank
        violated = out[rows[now]] > true_scores[now, None] - np.float32(margin)
        gradient[rows[now]] += violated
        gradient[rows[now], true[now]] -= violated.sum(axis=1, dtype=np.float32)
    out[:] = gradient
