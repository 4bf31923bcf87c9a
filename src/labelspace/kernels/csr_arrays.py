"""The three arrays of a SciPy CSR matrix as one argument of a kernel."""

from typing import Any, NamedTuple

import numpy.typing as npt

from labelspace.types import Csr, Ints


class CsrArrays(NamedTuple):
    """The arrays of a CSR matrix: the entries of row i are at ``indptr[i]:indptr[i + 1]``.

    >>> from scipy.sparse import csr_matrix
    >>> csr_arrays(csr_matrix([[0, 2], [1, 0]])).indices.tolist()
    [1, 0]
    """

    data: npt.NDArray[Any]  # float32, or int8 if quantized
    indices: Ints
    indptr: npt.NDArray[Any]  # int32 or int64


def csr_arrays(X: Csr) -> CsrArrays:
    """Return the arrays of a matrix, without a copy; numba compiles a kernel once for each of their types."""
    return CsrArrays(X.data, X.indices, X.indptr)
