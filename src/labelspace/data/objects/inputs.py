"""Python objects that are to be tagged, as texts or as features: matrices, tensors, columns of embeddings."""

from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelspace.data.label_mapping import widened
from labelspace.data.objects.frames import Frame, Given, is_column, is_frame, to_frame
from labelspace.data.side_columns import with_values
from labelspace.data.table import row_text, row_texts
from labelspace.data.texts import check_texts
from labelspace.errors import DataError
from labelspace.types import Columns, Dataset, Fields, SideColumns

Documents = Any
"""Texts, features or a table, of any package."""


def is_text_array(given: object) -> bool:
    """Return whether this is a NumPy array of texts, or of objects that may be texts."""
    return isinstance(given, np.ndarray) and given.ndim == 1 and given.dtype.kind in "UOT"


def to_matrix(given: Given) -> Given:
    """Return the matrix that was given, or a column of embeddings as one; None for anything else.

    >>> to_matrix([[0.5, 1.0], [0.25, 0.0]]).shape, to_matrix(["a text"])
    ((2, 2), None)
    """
    if sp.issparse(given) or (isinstance(given, np.ndarray) and not is_text_array(given)):
        return given
    if is_frame(given):
        return None
    if len(getattr(given, "shape", ())) == 2 and hasattr(given, "__array__"):  # a tensor
        return np.asarray(given)
    return _stacked(given) if _is_vector(_first(given)) else None


def _first(given: Given) -> Given:
    """Return the first value of a list or column."""
    if is_text_array(given) or isinstance(given, (list, tuple)) or (is_column(given) and isinstance(given, Sequence)):
        return given[0] if len(given) else None
    if not is_column(given) or not (hasattr(given, "head") or hasattr(given, "slice")):
        return None
    head = given.head(1) if hasattr(given, "head") else given.slice(0, 1)  # pandas and polars, or pyarrow
    return next(iter(head.to_pylist() if hasattr(head, "to_pylist") else head.to_list()), None)


def _is_vector(value: object) -> bool:
    """Return whether a value is a list or array of numbers."""
    if isinstance(value, np.ndarray) or (hasattr(value, "__array__") and hasattr(value, "shape")):
        array = np.asarray(value)
        return array.ndim == 1 and array.dtype.kind in "iuf"
    if not isinstance(value, (list, tuple)) or not value:
        return False
    return all(isinstance(item, Real) and not isinstance(item, bool) for item in value)


def _stacked(column: Given) -> Given:
    """Return a column of equally long vectors as a matrix (n, dim) of float32."""
    values = column
    if is_column(column) and hasattr(column, "to_numpy"):
        values = column.to_numpy(**({"zero_copy_only": False} if hasattr(column, "to_pylist") else {}))  # pyarrow
    if isinstance(values, np.ndarray) and values.ndim == 2:  # polars has an Array of one width as a matrix
        return values
    rows = list(values)
    width = len(rows[0])
    for number, row in enumerate(rows):
        if not hasattr(row, "__len__") or isinstance(row, str) or len(row) != width:
            shown = f"has {len(row)}" if hasattr(row, "__len__") else f"is {row!r}"
            problem = f"row 0 has {width} and row {number} {shown}; give rows of one length, and drop rows without one"
            raise DataError(f"embeddings must have as many numbers each, but {problem}")
    try:
        return np.array(rows, np.float32)
    except (TypeError, ValueError) as error:
        raise DataError(f"embeddings must be numbers, but are not ({error}); give numbers") from error


def read_inputs(
    given: Documents, columns: Columns | None = None, fields: Fields | None = None, ready_made: bool = False
) -> Documents:
    """Return the texts of documents, or their features; ``columns`` are those of the table of training.

    >>> read_inputs([{"title": "Rye", "price": 3}], Columns(("title", "price"), (("kind",),)))
    ['title: Rye; price: 3']
    """
    if isinstance(given, list) and columns is None and given and isinstance(given[0], str):  # the usual case
        return check_texts(given)
    if sp.issparse(given):
        return given
    if isinstance(given, Iterator):
        given = list(given)
    if columns is not None and isinstance(given, (list, tuple)):
        return check_texts(row_texts(given, columns))
    frame = to_frame(given)
    if frame is not None:
        found = _of_frame(frame, columns, fields, ready_made)
        if found is not None:
            return found
    matrix = to_matrix(given)
    return check_texts(given, "use tag(text), or give [text]") if matrix is None else matrix


def _of_frame(frame: Frame, columns: Columns | None, fields: Fields | None, ready_made: bool) -> Documents:
    """Return the texts or features of a table; None if it is not known which columns hold them."""
    if ready_made:
        return frame.numbers()
    if columns is not None:
        return frame_values(frame, [row_text(row, columns) for row in frame.rows(columns.inputs)], columns.beside)
    if fields is None or not fields.text:
        return None
    return frame_values(frame, frame_texts(frame, fields.text), fields.beside)


def frame_values(frame: Frame, texts: list[str], beside: SideColumns) -> list[str]:
    """Return the texts of a table with the values of the columns that stand beside them.

    >>> frame_values(to_frame([{"price": 3.5}]), ["Rye"], SideColumns(["price"]))[0].values
    {'price': 3.5}
    """
    if not beside:
        return texts
    rows = zip(texts, frame.rows(beside.names), strict=True)
    return [with_values(text, row, beside, f"row {number}") for number, (text, row) in enumerate(rows)]


def frame_texts(frame: Frame, names: Sequence[str]) -> list[str]:
    r"""Return the texts of a column; the cells of several columns are joined by a line end, without missing ones.

    >>> frame_texts(to_frame([{"title": "Rye", "body": "Bake it."}, {"title": "Tea"}]), ["title", "body"])
    ['Rye\nBake it.', 'Tea']
    """
    columns = [frame[name] for name in names]
    for name, column in zip(names, columns, strict=True):
        for row, value in enumerate(column):
            if not isinstance(value, str) and (len(names) == 1 or not isinstance(value, (int, float, type(None)))):
                problem = "is missing" if value is None else f"is of type {type(value).__name__}"
                remedy = "write '' for no text, or drop the row"
                raise DataError(f"the column {name!r} must hold texts, but that of row {row} {problem}; {remedy}")
    if len(columns) == 1:
        return columns[0]
    return ["\n".join(str(cell) for cell in row if cell not in (None, "")) for row in zip(*columns, strict=True)]


def dataset_inputs(documents: Dataset, n_features: int | None) -> Documents:
    """Return the texts of a data set; with ``n_features``, its features with at least as many columns."""
    if n_features is None:
        if documents.texts is None:
            raise DataError("this model reads texts, but the data holds ready-made features; give a file with texts")
        return documents.texts
    X = documents.X
    if X is None or X.shape[1] >= n_features:
        return documents.inputs
    return widened(X, n_features)


def document_names(given: Documents) -> list[Any] | None:
    """Return the index of a column or table of pandas; None for anything else."""
    index = getattr(given, "index", None)
    return None if index is None or callable(index) or isinstance(given, Mapping) else list(index)
