"""Scale the rows of a sparse matrix to unit length."""

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.types import Floats, Ints


@kernel()
def normalized_values(data: Floats, indptr: Ints) -> Floats:
    """The values of a CSR matrix, each divided by the Euclidean norm of its row; a row of zeros stays zero."""
    out = np.empty(len(data), np.float32)
    for row in range(len(indptr) - 1):
        total = 0.0
        for j in range(indptr[row], indptr[row + 1]):
            total += np.float64(data[j]) * data[j]
        scale = np.float32(1.0 / np.sqrt(total)) if total > 0.0 else np.float32(0.0)
        for j in range(indptr[row], indptr[row + 1]):
            out[j] = data[j] * scale
    return out
