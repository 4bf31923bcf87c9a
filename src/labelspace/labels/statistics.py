"""Statistics of labels: their similarity by shared documents, and the rank correlation of two figures per label.

With n(i) the documents of label i and n(i, j) the documents of both, F(i|j) = n(i, j) / n(j).
"""

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.errors import DataError
from labelspace.estimator.parameter_constraints import one_of
from labelspace.types import Csr, Doubles

MEASURES = ("arithmetic", "geometric", "jaccard", "pmi")


def cooccurrence_counts(Y: Csr) -> Csr:
    """Count the documents that every two labels share; on the diagonal, the documents of each label.

    >>> cooccurrence_counts(sp.csr_matrix(np.array([[1, 1], [1, 0]], np.float32))).toarray().tolist()
    [[2.0, 1.0], [1.0, 1.0]]
    """
    return sp.csr_matrix(Y.T @ Y)


def similarity(Y: Csr, measure: str = "arithmetic") -> Csr:
    """Return the similarity, from 0 to 1, of every two labels that share a document; 1 on the diagonal.

    ``arithmetic`` and ``geometric`` are the means of F(i|j) and F(j|i), ``jaccard`` is n(i, j) over the documents of
    either, ``pmi`` the pointwise mutual information over its largest value, -log of the probability of both, or 0 if
    that is negative. A label without documents is similar only to itself.

    >>> Y = sp.csr_matrix(np.array([[1, 1], [1, 0], [1, 0], [0, 1]], np.float32))
    >>> similarity(Y).toarray().round(3).tolist()
    [[1.0, 0.4169999957084656], [0.4169999957084656, 1.0]]
    """
    one_of(*MEASURES).check("similarity", measure)
    pairs = cooccurrence_counts(Y).tocoo()
    counts = np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.float64)
    shared, one, other = pairs.data.astype(np.float64), counts[pairs.row], counts[pairs.col]
    if measure == "arithmetic":
        values = 0.5 * shared / one + 0.5 * shared / other
    elif measure == "geometric":
        values = shared / np.sqrt(one * other)
    elif measure == "jaccard":
        values = shared / (one + other - shared)
    else:
        probability = shared / Y.shape[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.log(shared * Y.shape[0] / (one * other)) / -np.log(probability)
        values = np.maximum(np.where(probability < 1, values, 1.0), 0.0)  # 0/0 for labels that all documents have
    off = pairs.row != pairs.col
    U = sp.csr_matrix((values[off].astype(np.float32), (pairs.row[off], pairs.col[off])), shape=pairs.shape)
    return sp.csr_matrix(U + sp.identity(Y.shape[1], np.float32, "csr"))


def spearman(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Return Spearman's rank correlation, from -1 to 1; ties get their mean rank. NaN if one of the two is constant.

    >>> round(spearman([1, 2, 3, 4], [10, 30, 20, 40]), 6)
    0.8
    """
    one, other = _ranks(a), _ranks(b)
    if len(one) != len(other):
        raise DataError(f"there must be two figures per label, but there are {len(one)} and {len(other)}; give as many")
    if not len(one) or np.ptp(one) == 0 or np.ptp(other) == 0:
        return float("nan")
    one, other = one - one.mean(), other - other.mean()
    return float(np.clip(one @ other / np.sqrt((one @ one) * (other @ other)), -1.0, 1.0))


def _ranks(values: npt.ArrayLike) -> Doubles:
    """Return the rank of each value, from 1; ties get their mean rank."""
    _, group, sizes = np.unique(np.ravel(values), return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(sizes) - (sizes - 1) / 2)[group], dtype=np.float64)
