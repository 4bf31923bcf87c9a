"""Check the input of metrics, and mark the predicted labels that are true: every ranking metric needs these marks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.errors import DataError, ParameterError
from labelspace.types import Bools, Csr, Doubles, Ints, Longs, TopK


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


@dataclass(frozen=True)
class RankedHits:
    """The top k labels of the documents that have labels; documents without labels are counted and left out.

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.9, 0.1, 0.5], [0.2, 0.1, 0.7]], k=2)
    >>> RankedHits.from_topk(sp.csr_matrix([[1, 1, 0], [0, 0, 1]]), topk, k=2).relevant.tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """

    true: Csr  # (n, n_labels), 0/1
    labels: Ints  # (n, k)
    relevant: Doubles  # (n, k), 1 where the label at that rank is a true one
    n_without_labels: int

    @staticmethod
    def from_topk(Y: Csr, topk: TopK, k: int) -> RankedHits:
        """Check that Y and ``topk`` match, drop documents without labels, and mark the hits."""
        true, labels = checked_matrix(Y), checked_labels(topk, checked_k(k), Y.shape)
        labeled = labeled_rows(true)
        n_without_labels = int(labeled.size - labeled.sum())
        if n_without_labels:
            true, labels = true[labeled], labels[labeled]
        return RankedHits(true, labels, _mark_hits(true, labels), n_without_labels)

    def __len__(self) -> int:
        return int(self.true.shape[0])

    @property
    def n_true(self) -> Longs:
        """Return the number of true labels of each document. Shape (n,)."""
        return np.asarray(np.diff(self.true.indptr), np.int64)

    def at_k(self, k: int) -> Doubles:
        """Return ``relevant`` up to rank k. Shape (n, k)."""
        return self.relevant[:, :k]


def relevance(Y: Csr, topk: TopK, k: int) -> Doubles:
    """Return 1 for each predicted label that is true, else 0, for documents with and without labels. Shape (n, k).

    >>> import scipy.sparse as sp
    >>> relevance(sp.csr_matrix([[0, 0], [0, 1]]), TopK.from_scores([[0.9, 0.1], [0.2, 0.1]], k=2), k=2).tolist()
    [[0.0, 0.0], [0.0, 1.0]]
    """
    true, labels = checked_matrix(Y), checked_labels(topk, checked_k(k), Y.shape)
    return _mark_hits(true, labels)


def checked_labels(topk: TopK, k: int, shape: tuple[int, int]) -> Ints:
    """Return the top k labels if they are valid predictions for a Y of this shape, else raise. Shape (n, k)."""
    n, n_labels = shape
    if len(topk) != n:
        rule = f"Y and the TopK must have one row per document, but have {n} and {len(topk)} rows"
        raise DataError(f"{rule}; predict the documents of Y")
    if topk.k < k:
        rule = f"a metric at k={k} needs k labels per document, but the TopK has {topk.k}"
        raise DataError(f"{rule}; predict with k={k} or more, or pad with topk.padded({k})")
    labels = topk.labels[:, :k]
    outside = labels[(labels < -1) | (labels >= n_labels)]
    if outside.size:
        rule = f"a label must be a column of Y (0 to {n_labels - 1}) or -1 for none, but one is {outside[0]}"
        raise DataError(f"{rule}; give Y the model's number of columns")
    ordered = np.sort(labels, axis=1)
    duplicates = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if duplicates.any():
        row, column = np.argwhere(duplicates)[0]
        rule = f"a label must occur once in a row of a TopK, but label {ordered[row, column]} occurs twice in row {row}"
        raise DataError(f"{rule}; keep the better rank")
    return labels


def _mark_hits(true: Csr, labels: Ints) -> Doubles:
    n_true = np.diff(true.indptr)
    rows = np.repeat(np.arange(len(labels)), n_true)
    # Column-major, because every metric sums over the documents of a rank.
    relevant = np.zeros(labels.shape, order="F")
    for rank in range(labels.shape[1]):
        is_hit = np.repeat(labels[:, rank], n_true) == true.indices
        relevant[rows[is_hit], rank] = 1.0
    return relevant
