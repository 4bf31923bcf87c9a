"""The strong values of sparse rows."""

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.types import Bools, Floats, Ints


@kernel()
def strong_values(
    data: Floats, indptr: Ints, start: int, stop: int, share: float, at_least: int, out: Bools
) -> None:  # fmt: skip
    """Which values of the rows start..stop of a CSR matrix are strong: others hold at most ``share`` of the squares.

    ``at_least`` as many are strong in a row, if it has them, and values of the same size are alike. ``out`` is
    (n_values,); what belongs to other rows is not touched.
    """
    for row in range(start, stop):
        first, last = indptr[row], indptr[row + 1]
        n_weak, smallest = last - first - at_least, 0.0  # how many may be left out
        if n_weak > 0:
            sizes = np.sort(np.abs(data[first:last]))
            total, below = 0.0, 0.0
            for i in range(len(sizes)):
                total += np.float64(sizes[i]) * sizes[i]
            for i in range(n_weak + 1):
                below += np.float64(sizes[i]) * sizes[i]
                smallest = np.float64(sizes[i])
                if below > share * total:
                    break
        for j in range(first, last):
            out[j] = abs(data[j]) >= smallest
