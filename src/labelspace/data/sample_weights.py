"""How much each training document or label counts: numbers of at least 0, of an array, a column or a file."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from labelspace.data.dataset_file import settle
from labelspace.data.fields import check_column
from labelspace.data.files import lines
from labelspace.data.formats.base import RowFormat
from labelspace.data.objects.frames import to_frame
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Location
from labelspace.errors import DataError
from labelspace.types import Dataset, Doubles, LabelSpace

REMEDY = "give a number of at least 0 for each"


def check_weights(
    given: Any,  # noqa: ANN401 - whatever the caller gave
    n: int,
    where: str = "weights of documents",
    what: str = "documents",
) -> Doubles:
    """Return the weights of n documents as an array, finite, at least 0 and not all 0.

    >>> check_weights([1, 0.5], 2).tolist()
    [1.0, 0.5]
    """
    try:
        weights = np.asarray(given, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{where} must be numbers, but are not ({error}); {REMEDY}") from error
    if weights.shape != (n,):
        raise DataError(
            f"{where} must be one number for each of {n:,} {what}, but have shape {weights.shape}; {REMEDY}"
        )
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        problem = f"that of {what[:-1]} {wrong[0]} is {weights[wrong[0]]:g}"
        raise DataError(f"{where} must be finite and at least 0, but {problem}; {REMEDY}")
    if not weights.any():
        raise DataError(f"{where} must be above 0 for at least one of the {what}, but all are 0; {REMEDY}")
    return weights


def label_weights(given: Mapping[str, float], labels: LabelSpace) -> Doubles:
    """Return the weight of each label, 1 unless it is given by name or URI; raise DataError for an unknown label.

    >>> label_weights({"tea": 2}, LabelSpace(["bread", "tea"])).tolist()
    [1.0, 2.0]
    """
    if not isinstance(given, Mapping):
        raise DataError(f"weights of labels must be a dict, but are a {type(given).__name__}; write {{'name': 2.0}}")
    weights: list[Any] = [1.0] * len(labels)
    for name, weight in given.items():
        found = labels.find(name)
        if found is None:
            raise DataError(f"weights must be of known labels, but {str(name)[:60]!r} is none; correct or remove it")
        weights[found] = weight
    return check_weights(weights, len(labels), "weights of labels", "labels")


def read_label_weights(path: str | Path) -> dict[str, float]:
    """Read the weights of labels from lines of a name, a tab and a number."""
    found: dict[str, float] = {}
    for line, text in lines(path):
        name, tab, weight = text.rstrip("\r\n").rpartition("\t")
        if not text.strip():
            continue
        try:
            found[name] = float(weight)
        except ValueError:
            tab = ""
        if not tab or not name:
            problem = f"found {text.strip()[:60]!r}"
            raise Location(path, line).expected("label<TAB>weight", problem, "write a name, a tab and a number")
    return found


def given_weights(data: Any, given: Any, n: int) -> Doubles:  # noqa: ANN401 - documents and weights of any package
    """Return the weights of Python objects: an array, or the name of a column of the documents' table."""
    if not isinstance(given, str):
        return check_weights(given, n)
    frame = to_frame(data)
    if frame is None:
        problem = f"{given!r} is a text and the data are no table"
        raise DataError(f"weights of documents must be an array or a column of a table, but {problem}; {REMEDY}")
    return check_weights(frame[given], n, f"the weights in {given!r}")


def with_weights(documents: Dataset, path: str | Path, column: str, options: ReadOptions) -> Dataset:
    """Return the documents of a file with the weights in one of its columns."""
    fmt, options = settle(path, options)
    if not isinstance(fmt, RowFormat):
        problem = f"{path} is {fmt.title}"
        raise DataError(f"weights must be in a column of a file with columns, but {problem}; convert it")
    with fmt.rows(path, options) as rows:
        check_column(path, rows.names(), column)
        cells = [row.get(column) for _, row in rows.read([column])]
    return replace(
        documents, sample_weight=check_weights(cells, len(documents), f"the weights in {column!r} of {path}")
    )
