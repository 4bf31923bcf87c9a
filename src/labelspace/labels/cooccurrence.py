"""How alike labels are, judged by the documents they share: a sparse matrix (n_labels, n_labels), 1 on its diagonal.

With n(i) the documents of label i and n(i, j) those of both, F(i|j) = n(i, j) / n(j).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from labelspace.errors import ParameterError
from labelspace.types import Csr

MEASURES = ("arithmetic", "geometric", "jaccard", "pmi")


def shared_documents(Y: Csr) -> Csr:
    """In how many documents every two labels stand together; on the diagonal, the documents of each label.

    >>> shared_documents(sp.csr_matrix(np.array([[1, 1], [1, 0]], np.float32))).toarray().tolist()
    [[2.0, 1.0], [1.0, 1.0]]
    """
    return sp.csr_matrix(Y.T @ Y)


def similarity(Y: Csr, measure: str = "arithmetic") -> Csr:
    """The likeness of every two labels that share a document, from 0 to 1.

    ``arithmetic`` and ``geometric`` are the means of F(i|j) and F(j|i), ``jaccard`` n(i, j) over the documents of
    either, ``pmi`` the pointwise mutual information over its largest value, -log of the chance of both; what is below
    0 there counts as 0. A label without documents is like itself alone.

    >>> Y = sp.csr_matrix(np.array([[1, 1], [1, 0], [1, 0], [0, 1]], np.float32))
    >>> similarity(Y).toarray().round(3).tolist()
    [[1.0, 0.4169999957084656], [0.4169999957084656, 1.0]]
    """
    if measure not in MEASURES:
        raise ParameterError(f"similarity must be one of {', '.join(MEASURES)}, but is {measure!r}; set it so")
    both = shared_documents(Y).tocoo()
    counts = np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.float64)
    shared, one, other = both.data.astype(np.float64), counts[both.row], counts[both.col]
    if measure == "arithmetic":
        likeness = 0.5 * shared / one + 0.5 * shared / other
    elif measure == "geometric":
        likeness = shared / np.sqrt(one * other)
    elif measure == "jaccard":
        likeness = shared / (one + other - shared)
    else:
        chance = shared / Y.shape[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            likeness = np.log(shared * Y.shape[0] / (one * other)) / -np.log(chance)
        likeness = np.maximum(np.where(chance < 1, likeness, 1.0), 0.0)  # labels of every document tell nothing
    apart = both.row != both.col
    U = sp.csr_matrix((likeness[apart].astype(np.float32), (both.row[apart], both.col[apart])), shape=both.shape)
    return sp.csr_matrix(U + sp.identity(Y.shape[1], np.float32, "csr"))
