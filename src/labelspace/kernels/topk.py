"""The k best of a stream of (score, id) in a small heap: no sorting of, and no memory for, what is not kept.

Better means a higher score, or the same score and a smaller id, so results do not depend on the order of arrival.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from numba import njit

from labelspace.types import Doubles, Floats, Ints, Longs

Score: TypeAlias = float | np.float32
Scores: TypeAlias = Floats | Doubles
Ids: TypeAlias = Ints | Longs


@njit(cache=True, nogil=True, inline="always")
def worse(score_a: Score, id_a: int, score_b: Score, id_b: int) -> bool:
    """Whether a ranks behind b."""
    return bool(score_a < score_b or (score_a == score_b and id_a > id_b))


@njit(cache=True, nogil=True)
def sift_down(scores: Scores, ids: Ids, at: int, size: int) -> None:
    """Let the entry at a place sink until no child is worse: the root is the worst kept."""
    score, identity = scores[at], ids[at]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and worse(scores[child + 1], ids[child + 1], scores[child], ids[child]):
            child += 1
        if not worse(scores[child], ids[child], score, identity):
            break
        scores[at], ids[at] = scores[child], ids[child]
        at = child
    scores[at], ids[at] = score, identity


@njit(cache=True, nogil=True)
def push(scores: Scores, ids: Ids, size: int, score: Score, identity: int) -> int:
    """Offer one entry to the heap; the new size is returned. A full heap drops its worst."""
    if size < len(scores):
        at = size
        while at > 0:
            parent = (at - 1) // 2
            if not worse(score, identity, scores[parent], ids[parent]):
                break
            scores[at], ids[at] = scores[parent], ids[parent]
            at = parent
        scores[at], ids[at] = score, identity
        return size + 1
    if worse(scores[0], ids[0], score, identity):
        scores[0], ids[0] = score, identity
        sift_down(scores, ids, 0, size)
    return size


@njit(cache=True, nogil=True)
def sort_best_first(scores: Scores, ids: Ids, size: int) -> None:
    """Turn the heap into a list, best first; places beyond ``size`` become -inf and -1."""
    for last in range(size - 1, 0, -1):
        scores[0], scores[last] = scores[last], scores[0]
        ids[0], ids[last] = ids[last], ids[0]
        sift_down(scores, ids, 0, last)
    for at in range(size, len(scores)):
        scores[at], ids[at] = -np.inf, -1


@njit(cache=True, nogil=True)
def best_allowed(values: Floats, allowed: npt.NDArray[np.bool_], scores: Floats, ids: Ints) -> None:
    """The best of a score for every label, of those allowed only, best first."""
    size = 0
    for label in range(len(values)):
        if allowed[label] and (size < len(scores) or values[label] > scores[0]):
            size = push(scores, ids, size, values[label], label)
    sort_best_first(scores, ids, size)
