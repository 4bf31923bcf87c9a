"""How weights move: Adam for dense ones, Adagrad for numbers of which a step touches few, and a choice for rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from labelspace.kernels.sparse_layers import adam_step
from labelspace.types import Floats, Ints


@dataclass
class AdamParameter:
    """Weights that Adam moves, with what it remembers of their gradients."""

    value: Floats
    mean: Floats = field(init=False)
    square: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.mean, self.square = np.zeros_like(self.value), np.zeros_like(self.value)

    def step(self, gradient: Floats, rate: float, number: int, part: slice = slice(None)) -> None:
        """Move the rows of a part, whose gradient this is."""
        value, mean, square = (array[part].reshape(-1) for array in (self.value, self.mean, self.square))
        adam_step(value, gradient.reshape(-1), mean, square, rate, number)


@dataclass
class AdagradParameter:
    """Single numbers that Adagrad moves: only those that a step names are read and changed."""

    value: Floats
    square: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.square = np.zeros_like(self.value)

    def step(self, gradient: Floats, rate: float, which: Ints | slice) -> None:
        """Move the numbers at some places, each named once, whose gradient this is."""
        self.square[which] += gradient * gradient
        self.value[which] -= np.float32(rate) * gradient / (np.sqrt(self.square[which]) + np.float32(1e-10))


class RowOptimizer(ABC):
    """Turns the gradients of some rows of a table into steps; what it remembers is kept by the rows' ids."""

    form: ClassVar[str]

    @abstractmethod
    def steps(self, ids: Ints, gradient: npt.NDArray[Any], rate: float) -> npt.NDArray[Any]:
        """What to add to the rows, each named once, whose gradient (n, width) this is."""


class RowSgd(RowOptimizer):
    """Against the gradient."""

    form = "sgd"

    def steps(self, ids: Ints, gradient: npt.NDArray[Any], rate: float) -> npt.NDArray[Any]:
        """The gradient times the rate."""
        found: npt.NDArray[Any] = -gradient.dtype.type(rate) * gradient
        return found


class RowAdagrad(RowOptimizer):
    """One number a row: the sum so far of the mean squares of its gradients."""

    form = "adagrad"

    def __init__(self, rows: int) -> None:
        self.squares = np.zeros(rows, np.float32)

    def steps(self, ids: Ints, gradient: npt.NDArray[Any], rate: float) -> npt.NDArray[Any]:
        """The longer the gradients of a row were, the shorter its step; 0 for a gradient of 0."""
        self.squares[ids] += np.einsum("ij,ij->i", gradient, gradient) / gradient.shape[1]
        lengths = -gradient.dtype.type(rate) / (np.sqrt(self.squares[ids]) + gradient.dtype.type(1e-10))
        found: npt.NDArray[Any] = lengths[:, None].astype(gradient.dtype) * gradient
        return found


class RowAdam(RowOptimizer):
    """Adam (Kingma and Ba, 2015) with its usual constants, for the rows that a step names; the others rest."""

    form = "adam"

    def __init__(self, rows: int, width: int) -> None:
        self.mean, self.square = np.zeros((rows, width), np.float32), np.zeros((rows, width), np.float32)
        self.n_steps = np.zeros(rows, np.int32)  # steps of each row

    def steps(self, ids: Ints, gradient: npt.NDArray[Any], rate: float) -> npt.NDArray[Any]:
        """Each row by its own count of steps."""
        self.n_steps[ids] += 1
        number = self.n_steps[ids][:, None].astype(gradient.dtype)
        self.mean[ids] = mean = 0.9 * self.mean[ids] + 0.1 * gradient
        self.square[ids] = square = 0.999 * self.square[ids] + 0.001 * gradient * gradient
        lengths = -rate * np.sqrt(1 - 0.999**number) / (1 - 0.9**number)
        found: npt.NDArray[Any] = (lengths * mean / (np.sqrt(square) + 1e-8)).astype(gradient.dtype)
        return found
