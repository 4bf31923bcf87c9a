"""The last layer of a network, with a row of weights a label: each block of labels from its scores to its Adam step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labelspace.kernels.quantize import Int8s, quantize_int8
from labelspace.kernels.threads import run_blocks
from labelspace.training.optimizers import AdamParameter
from labelspace.training.sparse_layers import SparseLayer
from labelspace.types import Floats, Ints

LABEL_BLOCK = 512  # labels a task: their scores of a batch stay in the cache

ToErrors = Callable[[Floats, int], None]
"""Turns the scores (batch, some) of the labels from a number on into the gradient of the loss by them, in place."""


class OutputLayer:
    """z = W a + b for all labels."""

    def __init__(self, weights: Floats, bias: Floats) -> None:
        self.weights, self.bias = AdamParameter(weights), AdamParameter(bias)  # (n_labels, width) and (n_labels,)

    @classmethod
    def random(cls, bias: Floats, width: int, rng: np.random.Generator) -> OutputLayer:
        """Random weights, and a bias (n_labels,) to begin with."""
        return cls(_random_rows(len(bias), width, rng), bias)

    def descend(self, activity: Floats, to_errors: ToErrors, rate: float, number: int) -> Floats:
        """Move on the errors of the scores of an activity (batch, width); the gradient by that is returned."""
        n_labels = len(self.bias.value)
        gradients = np.empty((-(-n_labels // LABEL_BLOCK), *activity.shape), np.float32)

        def descend(start: int, stop: int) -> None:
            part = slice(start, stop)
            weights = self.weights.value[part]
            errors: Floats = activity @ weights.T  # (batch, stop - start)
            errors += self.bias.value[part]
            to_errors(errors, start)
            np.matmul(errors, weights, out=gradients[start // LABEL_BLOCK])
            self.weights.step(errors.T @ activity, rate, number, part)
            self.bias.step(errors.sum(axis=0), rate, number, part)

        run_blocks(descend, n_labels, LABEL_BLOCK)
        gradient: Floats = gradients.sum(axis=0)  # in one order, whatever the threads did
        return gradient

    @property
    def bias_values(self) -> Floats:
        """The bias of each label. Shape (n_labels,)."""
        return self.bias.value

    def by_units(self) -> tuple[Int8s, Floats]:
        """The weights as prediction reads them: (width, n_labels) in bytes, with a scale a label."""
        return _by_units(self.weights.value)


class SampledOutputLayer:
    """The same where a step can touch some labels only: row-wise Adagrad remembers one number a label."""

    def __init__(self, weights: Floats, bias: Floats) -> None:
        self.rows = SparseLayer(np.concatenate([weights, bias[:, None]], axis=1))  # (n_labels, width + 1)

    @classmethod
    def random(cls, bias: Floats, width: int, rng: np.random.Generator) -> SampledOutputLayer:
        """Random weights, and a bias (n_labels,) to begin with."""
        return cls(_random_rows(len(bias), width, rng), bias)

    def descend(self, activity: Floats, ids: Ints, to_errors: ToErrors, rate: float) -> Floats:
        """Move the labels ``ids``, each named once, on the errors of their scores; the gradient by the activity."""
        padded, own = append_ones(activity), self.rows.vectors[ids]
        errors: Floats = padded @ own.T  # (batch, len(ids))
        to_errors(errors, 0)
        gradient: Floats = errors @ own[:, :-1]
        self.rows.descend_rows(ids, errors.T @ padded, rate)
        return gradient

    @property
    def bias_values(self) -> Floats:
        """The bias of each label. Shape (n_labels,)."""
        return self.rows.vectors[:, -1].copy()

    def by_units(self) -> tuple[Int8s, Floats]:
        """The weights as prediction reads them: (width, n_labels) in bytes, with a scale a label."""
        return _by_units(self.rows.vectors[:, :-1])


def append_ones(activity: Floats) -> Floats:
    """An activity (batch, width) with a last column that multiplies biases."""
    return np.concatenate([activity, np.ones((len(activity), 1), np.float32)], axis=1)


def _random_rows(n_labels: int, width: int, rng: np.random.Generator) -> Floats:
    rows: Floats = rng.standard_normal((n_labels, width), np.float32) * np.float32(width**-0.5)
    return rows


def _by_units(rows: Floats) -> tuple[Int8s, Floats]:
    weights, scales = quantize_int8(rows)
    return np.ascontiguousarray(weights.T), scales
