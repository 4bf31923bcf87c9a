"""Optimizers: Adam for dense weights, Adagrad for numbers of which a step reads few, three for rows of a matrix."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from labelspace.kernels.sparse_layers import adam_step
from labelspace.types import Floats, Ints

ADAM_DECAY = 0.999  # of the mean of squared gradients, per step


@dataclass
class AdamParameter:
    """Weights trained by Adam, with the moments of their gradients."""

    value: Floats

    def __post_init__(self) -> None:
        self.mean, self.square = np.zeros_like(self.value), np.zeros_like(self.value)

    def step(self, gradient: Floats, rate: float, n_steps: int, part: slice = slice(None)) -> None:
        """Update the rows of a part, given their gradient."""
        value, mean, square = (array[part].reshape(-1) for array in (self.value, self.mean, self.square))
        adam_step(value, gradient.reshape(-1), mean, square, rate, n_steps)


class SgdParameter(AdamParameter):
    """Weights trained by SGD: value <- value - rate gradient."""

    def __post_init__(self) -> None:
        self.mean = self.square = np.zeros(0, np.float32)

    def step(self, gradient: Floats, rate: float, n_steps: int, part: slice = slice(None)) -> None:
        """Update the rows of a part, given their gradient."""
        self.value[part] -= np.float32(rate) * gradient


class FixedParameter(SgdParameter):
    """Weights that are not trained."""

    def step(self, gradient: Floats, rate: float, n_steps: int, part: slice = slice(None)) -> None:
        """Leave the weights as they are."""


class RowAdagradParameter(AdamParameter):
    """Weights trained by row-wise Adagrad in place of Adam; it goes on from sums of squared gradients, one per row."""

    def __init__(self, value: Floats, squares: Floats) -> None:
        self.value, self.squares = value, squares

    def step(self, gradient: Floats, rate: float, n_steps: int, part: slice = slice(None)) -> None:
        """Update the rows of a part, given their gradient."""
        rows, squares = gradient.reshape(len(gradient), -1), self.squares[part]
        squares += np.einsum("ij,ij->i", rows, rows) / np.float32(rows.shape[1])
        rates = np.float32(rate) / (np.sqrt(squares) + np.float32(1e-10))
        self.value[part] -= (rates[:, None] * rows).reshape(gradient.shape)


@dataclass
class AdagradParameter:
    """Single numbers trained by Adagrad: only those that a step names are read and changed."""

    value: Floats

    def __post_init__(self) -> None:
        self.square = np.zeros_like(self.value)

    def step(self, gradient: Floats, rate: float, ids: Ints | slice) -> None:
        """Update the numbers with these ids, each named once, given their gradient."""
        self.square[ids] += gradient * gradient
        self.value[ids] -= np.float32(rate) * gradient / (np.sqrt(self.square[ids]) + np.float32(1e-10))


class RowOptimizer(ABC):
    """Turns the gradients of some rows of a matrix into updates; its state is stored per row."""

    name: ClassVar[str]

    @abstractmethod
    def updates(self, ids: Ints, gradient: npt.NDArray[Any], rate: float) -> npt.NDArray[Any]:
        """Return the updates to add to the rows ``ids``, each named once, given their gradient (n, width)."""


class RowSgd(RowOptimizer):
    """Stochastic gradient descent."""

    name = "sgd"

    def updates(self, ids: Ints, gradient: npt.NDArray[Any], rate: float) -> npt.NDArray[Any]:
        """Return the negative gradient times the learning rate."""
        return np.asarray(-gradient.dtype.type(rate) * gradient)


class RowAdagrad(RowOptimizer):
    """Row-wise Adagrad: one number per row, the sum of the mean squares of its gradients."""

    name = "adagrad"

    def __init__(self, n_rows: int) -> None:
        self.squares = np.zeros(n_rows, np.float32)

    def updates(self, ids: Ints, gradient: npt.NDArray[Any], rate: float) -> npt.NDArray[Any]:
        """Return updates whose rate falls with the past gradients of a row; a gradient of 0 gives an update of 0."""
        self.squares[ids] += np.einsum("ij,ij->i", gradient, gradient) / gradient.shape[1]
        rates = -gradient.dtype.type(rate) / (np.sqrt(self.squares[ids]) + gradient.dtype.type(1e-10))
        return np.asarray(rates[:, None].astype(gradient.dtype) * gradient)


class RowAdam(RowOptimizer):
    """Adam (Kingma and Ba, 2015) with its default constants, for the rows that a step names; other rows do not move."""

    name = "adam"

    def __init__(self, n_rows: int, width: int) -> None:
        self.mean, self.square = np.zeros((n_rows, width), np.float32), np.zeros((n_rows, width), np.float32)
        self.n_steps = np.zeros(n_rows, np.int32)  # of each row

    def updates(self, ids: Ints, gradient: npt.NDArray[Any], rate: float) -> npt.NDArray[Any]:
        """Return Adam's updates; bias is corrected by each row's number of steps."""
        self.n_steps[ids] += 1
        n_steps = self.n_steps[ids][:, None].astype(gradient.dtype)
        self.mean[ids] = mean = 0.9 * self.mean[ids] + 0.1 * gradient
        self.square[ids] = square = 0.999 * self.square[ids] + 0.001 * gradient * gradient
        rates = -rate * np.sqrt(1 - 0.999**n_steps) / (1 - 0.9**n_steps)
        return np.asarray(rates * mean / (np.sqrt(square) + 1e-8), gradient.dtype)
