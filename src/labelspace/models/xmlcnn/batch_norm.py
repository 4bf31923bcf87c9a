"""Batch normalization (Ioffe and Szegedy, 2015) before a ReLU: each unit's values in a batch get deviation 1.

There is no learned scale: after a ReLU, the next layer's weights can be that. Switched off, it is a learned bias.
"""

from typing import NamedTuple

import numpy as np

from labelspace.training.optimizers import AdamParameter
from labelspace.types import Floats

MIN_VARIANCE = np.float32(1e-5)  # is added to the variance, so that one can divide by its root


class Normalized(NamedTuple):
    """The values of a batch with mean 0 and deviation 1, and what they were divided by."""

    values: Floats  # (n, units)
    std: Floats  # (units,)


class BatchNorm:
    """y = (x - mean) / std + shift, with mean and std of the batch in training."""

    def __init__(self, units: int, on: bool = True) -> None:
        self.on = on
        self.shift = AdamParameter(np.zeros(units, np.float32))

    def forward(self, values: Floats) -> tuple[Floats, Normalized]:
        """The output for values (n, units), and what ``backward`` needs."""
        mean, std = self._statistics(values)
        normalized = (values - mean) / std
        return normalized + self.shift.value, Normalized(normalized, std)

    def backward(self, batch: Normalized, gradient: Floats, rate: float, n_steps: int) -> Floats:
        """Update on the gradient by the output; returns that by the input, through mean and std of the batch too."""
        values, std = batch
        self.shift.step(gradient.sum(axis=0), rate, n_steps)
        if not self.on:
            return gradient
        along = np.einsum("ij,ij->j", gradient, values) / np.float32(len(values))
        by_input: Floats = (gradient - gradient.mean(axis=0) - values * along) / std
        return by_input

    def factor_and_bias(self, values: Floats) -> tuple[Floats, Floats]:
        """What prediction needs: a > 0 and b so that y = a x + b, with mean and std of many values."""
        mean, std = self._statistics(values)
        factor: Floats = np.float32(1) / std
        return factor, self.shift.value - factor * mean

    def _statistics(self, values: Floats) -> tuple[Floats, Floats]:
        """The mean and standard deviation that values (n, units) are normalized by."""
        if not self.on:
            return np.zeros_like(self.shift.value), np.ones_like(self.shift.value)
        return values.mean(axis=0), np.sqrt(values.var(axis=0) + MIN_VARIANCE)
