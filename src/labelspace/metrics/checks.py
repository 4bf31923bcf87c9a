"""Check the input of metrics: 0/1 label matrices, label counts and k."""

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.errors import DataError, ParameterError
from labelspace.types import Bools, Csr, Longs


def checked_k(k: int) -> int:
    """Return k if it is at least 1, else raise ParameterError.

    >>> checked_k(5)
    5
    """
    if k < 1:
        raise ParameterError(f"k must be at least 1, but is {k}; ask for k=1 or more")
    return int(k)


def checked_matrix(matrix: Csr, name: str = "Y") -> Csr:
    """Return a 0/1 matrix as csr with sorted indices and without stored zeros; the input is not modified.

    >>> checked_matrix(sp.csr_matrix([[0, 1], [1, 1]])).nnz
    3
    """
    csr = matrix if sp.issparse(matrix) and matrix.format == "csr" else sp.csr_matrix(matrix)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    if not csr.data.all():
        csr = csr.copy()
        csr.eliminate_zeros()
    wrong = csr.data[csr.data != 1]
    if wrong.size:
        rule = f"{name} must hold 0 and 1 only, each label at most once per document, but holds {wrong[0]}"
        raise DataError(f"{rule}; set {name}.data to 1 after summing its duplicates")
    return csr


def labeled_rows(Y: Csr) -> Bools:
    """Return which documents of a checked matrix have labels; raise DataError if no document has. Shape (n,).

    >>> labeled_rows(sp.csr_matrix([[0, 1], [0, 0]])).tolist()
    [True, False]
    """
    labeled = np.asarray(np.diff(Y.indptr) > 0)
    if not labeled.any():
        rule = f"at least one document must have a label, but none of the {labeled.size} has"
        raise DataError(f"{rule}; evaluate on documents whose labels are known")
    return labeled


def checked_counts(counts: npt.ArrayLike, n_labels: int) -> Longs:
    """Return label counts truncated or padded with 0 to ``n_labels``: an unseen label has the count 0.

    >>> checked_counts([3, 1], n_labels=4).tolist()
    [3, 1, 0, 0]
    """
    given = np.ravel(np.asarray(counts))
    wrong = given[~(given >= 0)]
    if wrong.size:
        raise DataError(f"a label's count must be at least 0, but one is {wrong[0]}; count its training documents")
    padded = np.zeros(n_labels, np.int64)
    padded[: given.size] = given[:n_labels]
    return padded
