"""The classification loss of a batch: its gradient with respect to the scores."""

import numpy as np

from labelspace.kernels.losses import margin_gradient
from labelspace.kernels.threads import run_blocks
from labelspace.training.losses import bce_gradient, softmax_gradient
from labelspace.training.negative_sampling import SampledLabels
from labelspace.types import Floats, Longs

ROW_BLOCK = 64  # documents per task


def loss_gradient(
    scores: Floats, sampled: SampledLabels, positives: Longs, loss: str, margin: float, n_hardest: int
) -> Floats:
    """The gradient of the mean loss by the scores (batch, labels), which it overwrites.

    ``positives`` are the positions that ``sample_positives`` drew, for the margin loss (eq. 1).
    """

    def to_gradient(start: int, stop: int) -> None:
        block, true = scores[start:stop], (sampled.columns, sampled.indptr, start)
        if loss == "bce":
            bce_gradient(block, *true, sampled.weights)
        elif loss == "softmax":
            softmax_gradient(block, *true, sampled.weights)
        else:
            margin_gradient(*true, positives, margin, min(n_hardest, scores.shape[1]), block)
        block /= np.float32(len(scores))

    run_blocks(to_gradient, len(scores), ROW_BLOCK)
    return scores
