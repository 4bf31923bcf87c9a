"""Python objects that are to be tagged, as texts or as a matrix of features."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import scipy.sparse as sp

from labelspace.data.objects.feature_matrices import to_matrix
from labelspace.data.objects.frames import Frame, to_frame
from labelspace.data.table import row_text, row_texts
from labelspace.data.texts import check_texts
from labelspace.errors import DataError
from labelspace.types import Columns, Dataset, Fields

Documents = Any
"""Texts, features or a table, of any package."""


def read_inputs(
    given: Documents, columns: Columns | None = None, fields: Fields | None = None, ready_made: bool = False
) -> Any:  # noqa: ANN401 - texts, or a sparse or dense matrix
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


def _of_frame(frame: Frame, columns: Columns | None, fields: Fields | None, ready_made: bool) -> Any:  # noqa: ANN401
    """Return the texts or features of a table; None if it is not known which columns hold them."""
    if ready_made:
        return frame.numbers()
    if columns is not None:
        return [row_text(row, columns) for row in frame.rows(columns.inputs)]
    return None if fields is None or not fields.text else frame_texts(frame, fields.text)


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
                raise DataError(
                    f"the column {name!r} must hold texts, but that of row {row} {problem}; write '' for no text, or "
                    "drop the row"
                )
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
    return sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))


def document_names(given: Documents) -> list[Any] | None:
    """Return the index of a column or table of pandas; None for anything else."""
    index = getattr(given, "index", None)
    return None if index is None or callable(index) or isinstance(given, Mapping) else list(index)
