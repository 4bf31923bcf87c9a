"""Features as Python objects: sparse and dense matrices, tensors, and columns of embeddings."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelspace.data.objects.sequences import is_column, is_frame
from labelspace.errors import DataError


def is_text_array(given: object) -> bool:
    """Return whether this is a NumPy array of texts, or of objects that may be texts."""
    return isinstance(given, np.ndarray) and given.ndim == 1 and given.dtype.kind in "UOT"


def to_matrix(given: Any) -> Any:  # noqa: ANN401 - a sparse or dense matrix
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


def _first(given: Any) -> Any:  # noqa: ANN401 - a caller may pass anything
    """Return the first value of a list or column."""
    if is_text_array(given) or isinstance(given, (list, tuple)) or (is_column(given) and isinstance(given, Sequence)):
        return given[0] if len(given) else None
    if is_column(given):
        for method in ("head", "slice"):  # pandas and polars, pyarrow
            if hasattr(given, method):
                head = getattr(given, method)(*((1,) if method == "head" else (0, 1)))
                return next(iter(head.to_pylist() if hasattr(head, "to_pylist") else head.to_list()), None)
    return None


def _is_vector(value: object) -> bool:
    """Return whether a value is a list or array of numbers."""
    if isinstance(value, np.ndarray) or (hasattr(value, "__array__") and hasattr(value, "shape")):
        array = np.asarray(value)
        return array.ndim == 1 and array.dtype.kind in "iuf"
    if not isinstance(value, (list, tuple)) or not value:
        return False
    return all(isinstance(item, Real) and not isinstance(item, bool) for item in value)


def _stacked(column: Any) -> Any:  # noqa: ANN401 - a dense matrix
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
            raise DataError(
                f"embeddings must have as many numbers each, but row 0 has {width} and row {number} {shown}; "
                "give rows of one length, and drop rows without one"
            )
    try:
        return np.array(rows, np.float32)
    except (TypeError, ValueError) as error:
        raise DataError(f"embeddings must be numbers, but are not ({error}); give numbers") from error
