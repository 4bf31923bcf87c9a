"""A xorshift generator for kernels: the same draws on every platform, whatever the thread."""

from __future__ import annotations

import numpy as np
from numba import njit

from labelspace.types import Ints


@njit(cache=True, nogil=True)
def seeded(seed: int) -> np.uint64:
    """The state that a seed begins with."""
    return np.uint64(seed) * np.uint64(2) + np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True, inline="always")
def advanced(state: np.uint64) -> np.uint64:
    """The next state, which is the number drawn too."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state


@njit(cache=True, nogil=True)
def uniform(key: np.uint64) -> float:
    """A number of 0 to 1 that goes by the key alone, and is another one for the next key (splitmix64)."""
    mixed = key * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return np.float64(mixed >> np.uint64(11)) / 9007199254740992.0  # 2^53


@njit(cache=True, nogil=True)
def shuffle(order: Ints, n: int, state: np.uint64) -> np.uint64:
    """Put the first n entries into a random order (Fisher-Yates); the state afterwards is returned."""
    for i in range(n - 1, 0, -1):
        state = advanced(state)
        drawn = np.int64(state % np.uint64(i + 1))
        order[i], order[drawn] = order[drawn], order[i]
    return state
