"""A xorshift generator for kernels: the same draws on every platform and in every thread."""

import numpy as np

from labelspace.kernels.compiled import kernel, part
from labelspace.types import Ints


@kernel()
def initial_state(seed: int) -> np.uint64:
    """Return the initial state of a seed."""
    return np.uint64(seed) * np.uint64(2) + np.uint64(0x9E3779B97F4A7C15)


@part()
def next_state(state: np.uint64) -> np.uint64:
    """Return the next state, which is also the number drawn."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state


@kernel()
def uniform_from_key(key: np.uint64) -> float:
    """Return a uniform number in [0, 1) that depends on the key only, independent between keys (splitmix64)."""
    bits = key * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    return np.float64(bits >> np.uint64(11)) / 9007199254740992.0  # 2^53


@kernel()
def shuffle(order: Ints, n: int, state: np.uint64) -> np.uint64:
    """Shuffle the first n entries (Fisher-Yates) and return the new state."""
    for i in range(n - 1, 0, -1):
        state = next_state(state)
        drawn = np.int64(state % np.uint64(i + 1))
        order[i], order[drawn] = order[drawn], order[i]
    return state
