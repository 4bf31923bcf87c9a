"""Sort numbers in kernels: one sort that is compiled once, while numpy's is compiled for each type and takes longer."""

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.types import Longs

INSERTION_SORT_MAX = 32  # items up to which insertion sort is faster


@kernel()
def radix_sort(items: Longs, buffer: Longs, n_keys: int) -> Longs:
    """Sort numbers by their upper halves, below ``n_keys``; return ``items`` or ``buffer`` and spoil the other.

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
    max_digit_bits = 8 if n < 512 else 11
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
