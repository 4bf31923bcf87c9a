"""Put the columns of two sparse matrices side by side."""

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.types import Floats, Ints, Longs


@kernel()
def join_rows(
    left_data: Floats, left_indices: Ints, left_indptr: Ints, right_data: Floats, right_indices: Ints,
    right_indptr: Ints, offset: int, left_share: float,
) -> tuple[Ints, Floats, Longs]:  # fmt: skip
    """The columns, values and ends of rows of norm 1, of two matrices with such rows; the right columns come after.

    The left part has ``left_share`` of the squared norm of a row, or all of it where the right part is empty.
    """
    n = len(left_indptr) - 1
    columns = np.empty(len(left_data) + len(right_data), np.int32)
    values = np.empty(len(columns), np.float32)
    ends, at = np.empty(n, np.int64), 0
    for row in range(n):
        n_left, n_right = left_indptr[row + 1] - left_indptr[row], right_indptr[row + 1] - right_indptr[row]
        left = np.float32(np.sqrt(left_share) if n_right > 0 else 1.0)
        right = np.float32(np.sqrt(1.0 - left_share) if n_left > 0 else 1.0)
        for j in range(left_indptr[row], left_indptr[row + 1]):
            columns[at], values[at] = left_indices[j], left * left_data[j]
            at += 1
        for j in range(right_indptr[row], right_indptr[row + 1]):
            columns[at], values[at] = right_indices[j] + offset, right * right_data[j]
            at += 1
        ends[row] = at
    return columns, values, ends
