"""What losses and the scores they lead to share."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

Real = TypeVar("Real", np.float32, np.float64)


def sigmoid(log_odds: npt.NDArray[Real]) -> npt.NDArray[Real]:
    """1 / (1 + exp(-log_odds)), without overflow.

    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    half = log_odds.dtype.type(0.5)
    chance: npt.NDArray[Real] = half + half * np.tanh(half * log_odds)
    return chance
