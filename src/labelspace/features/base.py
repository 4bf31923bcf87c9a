"""The contract of features, and the making of their matrix."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from labelspace.errors import DataError
from labelspace.estimator import Estimator
from labelspace.kernels.tfidf import tfidf_values
from labelspace.types import Csr, Floats, Ints, Longs

ONCE = np.empty(0, np.int32)
"""The counts of columns that are listed as often as they occur."""


class Features(Estimator):
    """From texts to X: ``csr_matrix`` float32 (n, n_features), rows of length one, column indices sorted.

    ``y`` is there for scikit-learn's ``Pipeline`` and is not used.
    """

    def fit(self, texts: Iterable[str], y: object = None) -> Self:
        """Learn from the training texts."""
        raise NotImplementedError

    def transform(self, texts: Iterable[str]) -> Csr:
        """The rows of these texts. Shape (n, n_features)."""
        raise NotImplementedError

    def fit_transform(self, texts: Iterable[str], y: object = None) -> Csr:
        """``fit`` and ``transform`` of the same texts, which are read once. Shape (n, n_features)."""
        raise NotImplementedError

    @property
    def n_features(self) -> int:
        """Columns of X."""
        raise NotImplementedError


def check_texts(texts: Iterable[str]) -> Sequence[str]:
    """The texts as a list; anything but texts is an error that names its row."""
    if isinstance(texts, (str, bytes)):
        raise DataError(f"texts must be a list of texts, but are one {type(texts).__name__}; give a list of texts")
    listed = texts if isinstance(texts, (list, tuple)) else list(texts)
    for row, text in enumerate(listed):
        if not isinstance(text, str):
            raise DataError(
                f"a text must be a str, but the one of row {row} is of type {type(text).__name__}; "
                "give a str, an empty one for no text"
            )
    return listed


def check_training_texts(texts: Iterable[str]) -> Sequence[str]:
    """The same, of which there must be some."""
    listed = check_texts(texts)
    if not listed:
        raise DataError("features must be fitted on at least one text, but there are 0; give more texts")
    return listed


def inverse_document_frequency(df: Longs, n: int) -> Floats:
    """Smoothed as in scikit-learn: as if one more document held every term."""
    return (np.log((n + 1) / (df + 1)) + 1).astype(np.float32)


class Bags(NamedTuple):
    """The columns that occur in each of some documents, sorted, each once, with their counts."""

    columns: Ints
    counts: Ints
    ends: Longs  # columns up to the end of each document

    def weighed(self, idf: Floats, sublinear: bool) -> Rows:
        """With values in place of counts."""
        return Rows(self.columns, tfidf_values(self.columns, self.counts, self.ends, idf, sublinear), self.ends)


class Rows(NamedTuple):
    """Some rows of the matrix."""

    columns: Ints
    values: Floats
    ends: Longs  # columns up to the end of each row


def stacked(parts: list[Rows], n_features: int) -> Csr:
    """One matrix of all rows; the list is emptied on the way, so that little is held twice."""
    if len(parts) == 1:
        return _matrix(*parts[0], n_features)
    size = sum(part.columns.size for part in parts)
    columns, values = np.empty(size, np.int32), np.empty(size, np.float32)
    ends, begin = [np.zeros(0, np.int64)], 0
    parts.reverse()
    while parts:
        part = parts.pop()
        columns[begin : begin + part.columns.size] = part.columns
        values[begin : begin + part.columns.size] = part.values
        ends.append(part.ends + begin)
        begin += part.columns.size
    return _matrix(columns, values, np.concatenate(ends), n_features)


def _matrix(columns: Ints, values: Floats, ends: Longs, n_features: int) -> Csr:
    # SciPy holds both index arrays in one type: int32 unless the number of values does not fit.
    index = np.int32 if columns.size < 2**31 else np.int64
    indptr = np.zeros(ends.size + 1, index)
    indptr[1:] = ends
    columns = columns.astype(index, copy=False)
    if ends.size == 1:  # SciPy's constructor would take a third of the time of one text; a copy takes a tenth of that
        matrix = copy(_empty_row(n_features))
        matrix.data, matrix.indices, matrix.indptr = values, columns, indptr
        return matrix
    matrix = sp.csr_matrix((values, columns, indptr), shape=(ends.size, n_features))
    matrix.has_canonical_format = True
    return matrix


@lru_cache
def _empty_row(n_features: int) -> Csr:
    matrix = sp.csr_matrix((1, n_features), dtype=np.float32)
    matrix.has_canonical_format = True
    return matrix
