"""How weights move: Adam for dense ones, Adagrad for numbers of which a step touches few."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from labelspace.kernels.layers import adam
from labelspace.types import Floats, Ints


@dataclass
class Moving:
    """Weights that Adam moves, with what it remembers of their gradients."""

    value: Floats
    mean: Floats = field(init=False)
    square: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.mean, self.square = np.zeros_like(self.value), np.zeros_like(self.value)

    def step(self, gradient: Floats, rate: float, number: int, part: slice = slice(None)) -> None:
        """Move the rows of a part, whose gradient this is."""
        value, mean, square = (array[part].reshape(-1) for array in (self.value, self.mean, self.square))
        adam(value, gradient.reshape(-1), mean, square, rate, number)


@dataclass
class Adaptive:
    """Single numbers that Adagrad moves: only those that a step names are read and changed."""

    value: Floats
    square: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.square = np.zeros_like(self.value)

    def step(self, gradient: Floats, rate: float, which: Ints | slice) -> None:
        """Move the numbers at some places, each named once, whose gradient this is."""
        self.square[which] += gradient * gradient
        self.value[which] -= np.float32(rate) * gradient / (np.sqrt(self.square[which]) + np.float32(1e-10))
