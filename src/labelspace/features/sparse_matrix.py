"""Build a sparse matrix from term counts: TF-IDF weights of blocks of documents, stacked into one csr matrix."""

from copy import copy
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.kernels import large_arrays
from labelspace.kernels.ngrams import tfidf_values
from labelspace.types import Csr, Floats, Ints, Longs

BLOCK, ROW_BLOCK = 2**20, 2**14  # values, or rows, at a time: they bound the memory of temporary arrays
NO_COUNTS = np.empty(0, np.int32)  # in place of counts, where a column is listed as often as it occurs


class CsrRows(NamedTuple):
    """Some rows of a csr matrix: the columns of each, sorted, each once, with their weights or their counts."""

    columns: Ints
    values: npt.NDArray[Any]  # float32 weights, or int32 counts
    ends: Longs  # columns up to the end of each row

    def tfidf(self, idf: Floats, sublinear: bool) -> Self:
        """Return the rows with TF-IDF weights in place of counts."""
        weights = tfidf_values(self.columns, self.values, self.ends, idf, sublinear)
        return large_arrays.keep_each(self._replace(values=weights))


def inverse_document_frequency(df: Longs, n: int) -> Floats:
    """Return the inverse document frequencies, smoothed as in scikit-learn: one more document has every term."""
    return (np.log((n + 1) / (df + 1)) + 1).astype(np.float32)


def stack_rows(blocks: list[CsrRows], n_features: int) -> Csr:
    """Stack blocks into one matrix; the list is emptied meanwhile, so that little is in memory twice."""
    if len(blocks) == 1:
        return csr_matrix(*blocks[0], n_features)
    size = sum(block.columns.size for block in blocks)
    columns, values = large_arrays.empty(size, np.int32), large_arrays.empty(size, np.float32)
    ends, start = [np.zeros(0, np.int64)], 0
    blocks.reverse()
    while blocks:
        block = blocks.pop()
        columns[start : start + block.columns.size] = block.columns
        values[start : start + block.columns.size] = block.values
        ends.append(block.ends + start)
        start += block.columns.size
        large_arrays.relieve()
    return csr_matrix(columns, values, np.concatenate(ends), n_features)


def csr_matrix(columns: Ints, values: Floats, ends: Longs, n_features: int) -> Csr:
    """Build a matrix of rows that end at ``ends``, with sorted columns."""
    # SciPy stores both index arrays in one type: int32 unless the number of values does not fit.
    index = np.int32 if columns.size < 2**31 else np.int64
    indptr = np.zeros(ends.size + 1, index)
    indptr[1:] = ends
    columns = large_arrays.cast(columns, index)
    if ends.size == 1:  # SciPy's constructor would take a third of the time of one text; a copy takes a tenth of that
        matrix = copy(_empty_row(n_features))
        matrix.data, matrix.indices, matrix.indptr = values, columns, indptr
        return matrix
    matrix = sp.csr_matrix((values, columns, indptr), shape=(ends.size, n_features))
    matrix.has_canonical_format = True
    return matrix


def scaled_values(X: Csr, scales: Floats) -> Floats:
    """Return the values of X, each times the scale of its column.

    >>> scaled_values(sp.csr_matrix(np.array([[0, 2]], np.float32)), np.array([5, 3], np.float32)).tolist()
    [6.0]
    """
    scaled = large_arrays.empty(X.nnz, np.float32)
    for part in large_arrays.blocks(X.nnz, BLOCK):
        np.multiply(X.data[part], scales[X.indices[part]], out=scaled[part])
    return scaled


def column_counts(X: Csr) -> Longs:
    """Count the rows with a value in each column. Shape (n_columns,).

    >>> column_counts(sp.csr_matrix([[0, 2], [1, 3]])).tolist()
    [1, 2]
    """
    counts = np.zeros(X.shape[1], np.int64)
    for part in large_arrays.blocks(X.nnz, max(BLOCK, X.shape[1])):  # NumPy makes 64-bit numbers of the indices first
        counts += np.bincount(X.indices[part], minlength=X.shape[1])
    return counts


def take_csr_rows(X: Csr, rows: Ints | Longs) -> Csr:
    """Return ``X[rows]``, in files if it is large.

    >>> take_csr_rows(sp.csr_matrix([[0, 2], [1, 3]]), np.array([1])).toarray().tolist()
    [[1, 3]]
    """
    indptr = np.append(0, np.cumsum((X.indptr[rows + 1] - X.indptr[rows]).astype(np.int64))).astype(X.indptr.dtype)
    size = int(indptr[-1])
    data, indices = large_arrays.empty(size, X.dtype), large_arrays.empty(size, X.indices.dtype)
    for part in large_arrays.blocks(len(rows), ROW_BLOCK):
        some, own = X[rows[part]], slice(indptr[part.start], indptr[part.stop])
        data[own], indices[own] = some.data, some.indices
    taken = sp.csr_matrix((len(rows), X.shape[1]), dtype=X.dtype)
    taken.data, taken.indices, taken.indptr = data, indices, indptr  # set: the constructor would read every index
    taken.has_canonical_format = X.has_canonical_format
    return taken


@lru_cache
def _empty_row(n_features: int) -> Csr:
    matrix = sp.csr_matrix((1, n_features), dtype=np.float32)
    matrix.has_canonical_format = True
    return matrix
