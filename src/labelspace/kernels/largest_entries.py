"""The largest entries of each row of a sparse matrix."""

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.types import Floats, Ints, Longs


@kernel()
def largest_entries(data: Floats, indptr: Ints, most: int) -> Longs:
    """Where the ``most`` largest entries of each row are, in order; of equal ones the first."""
    kept, n = np.empty(len(data), np.int64), 0
    for row in range(len(indptr) - 1):
        start, stop = indptr[row], indptr[row + 1]
        if stop - start <= most:
            for i in range(start, stop):
                kept[n] = i
                n += 1
            continue
        values = data[start:stop]
        limit = np.partition(values, len(values) - most)[len(values) - most]
        ties = most
        for i in range(start, stop):
            ties -= data[i] > limit
        for i in range(start, stop):
            if data[i] > limit or (data[i] == limit and ties > 0):
                ties -= data[i] == limit
                kept[n] = i
                n += 1
    return kept[:n].copy()
