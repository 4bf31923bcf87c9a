"""Buffers of zeros that a thread uses again: a new buffer for every document would cost more than the work."""

import threading
from typing import Any

import numpy as np
import numpy.typing as npt

MAX_KEPT_BYTES = 2**24  # larger buffers are made anew: a kept one costs memory for each thread
_buffers = threading.local()


def zeros(name: str, n: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return the thread's buffer of this name: at least n zeros, which the caller must turn to zeros again.

    >>> buffer = zeros("an example", 3, np.int32)
    >>> buffer is zeros("an example", 2, np.int32)
    True
    """
    kept: npt.NDArray[Any] | None = getattr(_buffers, name, None)
    if kept is not None and len(kept) >= n:
        return kept
    made: npt.NDArray[Any] = np.zeros(n, dtype)
    if made.nbytes <= MAX_KEPT_BYTES:
        setattr(_buffers, name, made)
    return made
