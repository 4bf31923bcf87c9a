"""Leave out labels that do not count for a document, neither right nor wrong: the filters of some data sets.

In a data set of products and the products bought with them, a document is often one of its own labels. As the
evaluation scripts of the Extreme Classification Repository do, such pairs are removed from the predictions and from
the true labels; propensities are computed from the training labels as they are.
"""

import numpy as np

from labelspace.errors import DataError
from labelspace.types import Bools, Csr, Ints, Longs, TopK


def most_filtered(filtered: Csr) -> int:
    """Return the largest number of filtered labels of a document: to keep k labels, predict so many more."""
    return int(np.diff(filtered.indptr).max(initial=0))


def labels_without(Y: Csr, filtered: Csr) -> Csr:
    """Return the true labels (n, n_labels) that are not filtered.

    >>> import scipy.sparse as sp
    >>> labels_without(sp.csr_matrix([[1, 1, 0]]), sp.csr_matrix([[1, 0, 0]])).toarray().tolist()
    [[0, 1, 0]]
    """
    kept = Y.copy()
    kept.data[_are_filtered(_rows(Y), Y.indices, filtered, Y.shape[0])] = 0
    kept.eliminate_zeros()
    return kept


def predictions_without(top: TopK, filtered: Csr, k: int) -> TopK:
    """Return the k best labels of each document that are not filtered.

    >>> import scipy.sparse as sp
    >>> top = TopK.from_scores([[0.9, 0.1, 0.5]], k=3)
    >>> predictions_without(top, sp.csr_matrix([[1, 0, 0]]), k=2).labels.tolist()
    [[2, 1]]
    """
    rows = np.broadcast_to(np.arange(len(top))[:, None], top.labels.shape)
    return top.where(~_are_filtered(rows, top.labels, filtered, len(top)), k)


def _rows(matrix: Csr) -> Longs:
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def _are_filtered(rows: Longs, labels: Ints | Longs, filtered: Csr, n: int) -> Bools:
    """Return whether each pair of a document and a label is filtered; raise DataError unless there are n documents."""
    if filtered.shape[0] != n:
        rule = f"filtered labels must have one row per document, but have {filtered.shape[0]} for {n}"
        raise DataError(f"{rule}; give those of the same documents")
    n_labels = max(filtered.shape[1], int(labels.max(initial=0)) + 1)
    pairs = _rows(filtered)[filtered.data != 0] * n_labels + filtered.indices[filtered.data != 0]
    return np.isin(rows * n_labels + labels, pairs) & (labels >= 0)
