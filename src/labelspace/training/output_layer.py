"""The output layer of a network, one row of weights per label: each block of labels from scores to its Adam step."""

from collections.abc import Callable
from typing import Self

import numpy as np

from labelspace.kernels.quantize import Int8s, quantize_int8
from labelspace.kernels.threads import run_blocks
from labelspace.training.optimizers import AdamParameter
from labelspace.training.sparse_layers import SparseLayer
from labelspace.types import Floats, Ints

LABEL_BLOCK = 512  # labels per task: their scores of a batch stay in the cache

LossGradient = Callable[[Floats, int], None]
"""Turns the scores (batch, n) of n labels from a first one on into the gradient of the loss by them, in place."""


class OutputLayer:
    """z = W h + b for all labels."""

    def __init__(self, weights: Floats, bias: Floats) -> None:
        self.weights, self.bias = AdamParameter(weights), AdamParameter(bias)  # (n_labels, width) and (n_labels,)

    @classmethod
    def random(cls, bias: Floats, width: int, rng: np.random.Generator) -> Self:
        """Draw the weights; the initial bias (n_labels,) is given."""
        return cls(_random_rows(len(bias), width, rng), bias)

    def backward(self, hidden: Floats, loss_gradient: LossGradient, rate: float, n_steps: int) -> Floats:
        """Score all labels for ``hidden`` (batch, width), and update on the loss; return the gradient by ``hidden``.

        Scores exist only block by block, so the forward pass is part of this.
        """
        n_labels = len(self.bias.value)
        gradients = np.empty((-(-n_labels // LABEL_BLOCK), *hidden.shape), np.float32)

        def update(start: int, stop: int) -> None:
            part = slice(start, stop)
            weights = self.weights.value[part]
            errors: Floats = hidden @ weights.T  # (batch, stop - start)
            errors += self.bias.value[part]
            loss_gradient(errors, start)
            np.matmul(errors, weights, out=gradients[start // LABEL_BLOCK])
            self.weights.step(errors.T @ hidden, rate, n_steps, part)
            self.bias.step(errors.sum(axis=0), rate, n_steps, part)

        run_blocks(update, n_labels, LABEL_BLOCK)
        gradient: Floats = gradients.sum(axis=0)  # in one order, whatever the threads did
        return gradient

    @property
    def bias_values(self) -> Floats:
        """The bias of each label. Shape (n_labels,)."""
        return self.bias.value

    def quantized_weights(self) -> tuple[Int8s, Floats]:
        """Return the weights for prediction: (width, n_labels) in int8, with a scale per label."""
        return _quantized_weights(self.weights.value)


class SampledOutputLayer:
    """z = W h + b where a step updates only some labels: row-wise Adagrad stores one number per label."""

    def __init__(self, weights: Floats, bias: Floats) -> None:
        self.rows = SparseLayer(np.concatenate([weights, bias[:, None]], axis=1))  # (n_labels, width + 1)

    @classmethod
    def random(cls, bias: Floats, width: int, rng: np.random.Generator) -> Self:
        """Draw the weights; the initial bias (n_labels,) is given."""
        return cls(_random_rows(len(bias), width, rng), bias)

    def backward(self, hidden: Floats, ids: Ints, loss_gradient: LossGradient, rate: float) -> Floats:
        """Score the labels ``ids``, each named once, and update them on the loss; return the gradient by hidden."""
        padded, rows = append_ones(hidden), self.rows.vectors[ids]
        errors: Floats = padded @ rows.T  # (batch, len(ids))
        loss_gradient(errors, 0)
        gradient: Floats = errors @ rows[:, :-1]
        self.rows.update_rows(ids, errors.T @ padded, rate)
        return gradient

    @property
    def bias_values(self) -> Floats:
        """The bias of each label. Shape (n_labels,)."""
        return self.rows.vectors[:, -1].copy()

    def quantized_weights(self) -> tuple[Int8s, Floats]:
        """Return the weights for prediction: (width, n_labels) in int8, with a scale per label."""
        return _quantized_weights(self.rows.vectors[:, :-1])


def append_ones(hidden: Floats) -> Floats:
    """Append a column of ones, which multiplies biases, to activations (batch, width)."""
    return np.concatenate([hidden, np.ones((len(hidden), 1), np.float32)], axis=1)


def _random_rows(n_labels: int, width: int, rng: np.random.Generator) -> Floats:
    rows: Floats = rng.standard_normal((n_labels, width), np.float32) * np.float32(width**-0.5)
    return rows


def _quantized_weights(rows: Floats) -> tuple[Int8s, Floats]:
    weights, scales = quantize_int8(rows)
    return np.ascontiguousarray(weights.T), scales
