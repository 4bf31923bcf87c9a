"""The types of arrays that all parts of the package exchange, and of functions that report progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Csr: TypeAlias = sp.csr_matrix
"""A SciPy CSR matrix; rows are documents unless a name says otherwise."""


Progress = Callable[[str, int, int], None]
"""Called as ``progress(step, done, total)`` by long computations."""


def no_progress(step: str, done: int, total: int) -> None:
    """Report nothing."""


@runtime_checkable
class OverallProgress(Protocol):
    """A ``Progress`` that can also show a training of many steps as one."""

    def overall(self, phase: str, step: str, share: float, seconds_left: float | None) -> None:
        """Report the current step, the share of the whole that is done, and the seconds left if they are known."""
