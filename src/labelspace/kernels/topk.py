"""Select and sort in kernels: the top k of a stream of (score, id) in a bounded heap, and a radix sort of integers.

Better means a higher score, or the same score and a smaller id, so results do not depend on the order of arrival.
Sizes and ids of any integer type are compiled once: what kernels call is a ``part`` that makes them one type.
"""

from typing import TypeAlias

import numpy as np

from labelspace.kernels.compiled import integer, kernel, part
from labelspace.types import Bools, Doubles, Floats, Ints, Longs

Score: TypeAlias = float | np.float32
Scores: TypeAlias = Floats | Doubles
Ids: TypeAlias = Ints | Longs
INSERTION_SORT_MAX = 32  # items up to which insertion sort is faster


@part()
def worse(score_a: Score, id_a: int, score_b: Score, id_b: int) -> bool:
    """Return whether a ranks behind b."""
    return bool(score_a < score_b or (score_a == score_b and id_a > id_b))


@kernel()
def sift_down(scores: Scores, ids: Ids, pos: int, size: int) -> None:
    """Sift the entry at a position down until no child is worse: the root is the worst entry."""
    score, item = scores[pos], ids[pos]
    while True:
        child = 2 * pos + 1
        if child >= size:
            break
        if child + 1 < size and worse(scores[child + 1], ids[child + 1], scores[child], ids[child]):
            child += 1
        if not worse(scores[child], ids[child], score, item):
            break
        scores[pos], ids[pos] = scores[child], ids[child]
        pos = child
    scores[pos], ids[pos] = score, item


@kernel()
def push_entry(scores: Scores, ids: Ids, size: int, score: Score, item: int) -> int:
    """Push one entry, for numbers of one type."""
    if size < len(scores):
        pos = size
        while pos > 0:
            parent = (pos - 1) // 2
            if not worse(score, item, scores[parent], ids[parent]):
                break
            scores[pos], ids[pos] = scores[parent], ids[parent]
            pos = parent
        scores[pos], ids[pos] = score, item
        return size + 1
    if worse(scores[0], ids[0], score, item):
        scores[0], ids[0] = score, item
        sift_down(scores, ids, integer(0), size)
    return size


@part()
def push(scores: Scores, ids: Ids, size: int, score: Score, item: int) -> int:
    """Push one entry and return the new size. A full heap drops its worst."""
    return push_entry(scores, ids, integer(size), score, integer(item))


@kernel()
def sort_heap(scores: Scores, ids: Ids, size: int) -> None:
    """Turn the heap into a list, for a size of one type."""
    for last in range(size - 1, 0, -1):
        scores[0], scores[last] = scores[last], scores[0]
        ids[0], ids[last] = ids[last], ids[0]
        sift_down(scores, ids, integer(0), last)
    for pos in range(size, len(scores)):
        scores[pos], ids[pos] = -np.inf, -1


@part()
def sort_best_first(scores: Scores, ids: Ids, size: int) -> None:
    """Turn the heap into a list, best first; entries beyond ``size`` become -inf and -1."""
    sort_heap(scores, ids, integer(size))


@kernel()
def topk_allowed(values: Floats, allowed: Bools, scores: Floats, ids: Ints) -> None:
    """Write the k best of the allowed labels, best first, given a score for every label."""
    size = integer(0)
    for label in range(len(values)):
        if allowed[label] and (size < len(scores) or values[label] > scores[0]):
            size = push(scores, ids, size, values[label], label)
    sort_best_first(scores, ids, size)


@kernel()
def select_best(scores: Scores, ids: Ids, size: int, k: int) -> None:
    """Move the k best of the first ``size`` entries to the front, in no order (quickselect); k is at most ``size``."""
    low, high = 0, size - 1
    while low < high:
        middle = (low + high) // 2
        score, item = scores[middle], ids[middle]
        left, right = low, high
        while left <= right:
            while worse(score, item, scores[left], ids[left]):
                left += 1
            while worse(scores[right], ids[right], score, item):
                right -= 1
            if left <= right:
                scores[left], scores[right] = scores[right], scores[left]
                ids[left], ids[right] = ids[right], ids[left]
                left += 1
                right -= 1
        if k - 1 <= right:
            high = right
        elif k - 1 >= left:
            low = left
        else:
            return


@kernel()
def largest_entries(data: Floats, indptr: Ints, most: int) -> Longs:
    """Return the positions of the ``most`` largest entries of each row, in order; of equal entries the first."""
    kept, n = np.empty(len(data), np.int64), 0
    for row in range(len(indptr) - 1):
        start, stop = indptr[row], indptr[row + 1]
        if stop - start <= most:
            for i in range(start, stop):
                kept[n] = i
                n += 1
            continue
        values, ids = data[start:stop].copy(), np.arange(stop - start).astype(np.int32)
        select_best(values, ids, len(values), most)  # np.partition takes seconds to compile
        limit = values[:most].min()
        ties = most
        for i in range(start, stop):
            ties -= data[i] > limit
        for i in range(start, stop):
            if data[i] > limit or (data[i] == limit and ties > 0):
                ties -= data[i] == limit
                kept[n] = i
                n += 1
    return kept[:n].copy()


@kernel()
def radix_sort(items: Longs, buffer: Longs, n_keys: int) -> Longs:
    """Sort numbers by their upper halves, below ``n_keys``; return ``items`` or ``buffer`` and overwrite the other.

    numpy's sort would be compiled for each type, which takes longer.

    Equal upper halves keep their order if the lower halves are in order. ``buffer`` is at least as long as ``items``.
    """
    n = items.size
    if n <= INSERTION_SORT_MAX:
        for i in range(1, n):
            item, j = items[i], i
            while j > 0 and items[j - 1] > item:
                items[j] = items[j - 1]
                j -= 1
            items[j] = item
        return items
    bits = 1
    while (1 << bits) < n_keys:
        bits += 1
    max_digit_bits = 8 if n < 512 else 11  # more bits: fewer passes, but counts of every digit to clear and add up
    passes = (bits + max_digit_bits - 1) // max_digit_bits
    digit_bits = (bits + passes - 1) // passes
    offsets = np.empty((1 << digit_bits) + 1, np.int64)
    mask = (1 << digit_bits) - 1
    for shift in range(32, 32 + bits, digit_bits):
        for i in range(offsets.size):
            offsets[i] = 0
        for i in range(n):
            offsets[((items[i] >> shift) & mask) + 1] += 1
        for i in range(1 << digit_bits):
            offsets[i + 1] += offsets[i]
        for i in range(n):
            key = (items[i] >> shift) & mask
            buffer[offsets[key]] = items[i]
            offsets[key] += 1
        items, buffer = buffer, items
    return items
