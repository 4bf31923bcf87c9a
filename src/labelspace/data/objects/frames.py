"""Columns and tables of pandas, polars, pyarrow, NumPy and Hugging Face datasets, and lists, under one interface."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import PurePath
from typing import Any

import numpy as np

from labelspace.errors import DataError

Given = Any
"""What a caller passes: an object of a package that may not be installed."""


def is_frame(given: object) -> bool:
    """Return whether this is a table of pandas, polars, pyarrow or Hugging Face datasets."""
    if isinstance(given, Mapping) or len(getattr(given, "shape", ())) != 2:
        return False
    return hasattr(given, "columns") or hasattr(given, "column_names")


def is_column(given: object) -> bool:
    """Return whether this is a column of pandas, polars, pyarrow or Hugging Face datasets."""
    if is_frame(given):
        return False
    return hasattr(given, "to_pylist") or hasattr(given, "to_list") or _is_of_dataset(given)


def _is_of_dataset(given: object) -> bool:
    return hasattr(given, "source") and hasattr(given, "column_name")


def column_names(frame: Given) -> list[str]:
    """Return the names of the columns of a table."""
    names = getattr(frame, "column_names", None)  # pyarrow and Hugging Face
    return [str(name) for name in (frame.columns if names is None else names)]


def is_missing(value: object) -> bool:
    """Return whether a value stands for none: None, NaN, or NA of pandas.

    >>> is_missing(None), is_missing(float("nan")), is_missing("")
    (True, True, False)
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # of pandas
        return True
    return isinstance(value, float) and value != value


def to_list(given: Given, what: str, one: str) -> Sequence[Any]:
    """Return a list of what was given: a column of another package, an array, anything with an order.

    An error for a single value, a table or a set says ``what`` the list must hold, and what to do with ``one`` value.

    >>> to_list((text for text in ["a", "b"]), "texts", "give a list")
    ['a', 'b']
    """
    if isinstance(given, (list, tuple)):
        return given
    problem = _problem(given, one)
    if problem:
        raise DataError(f"{what}, but {problem}")
    if _is_of_dataset(given) and isinstance(given, Sequence):
        given = given[:]  # at once: row by row takes long
    for method in ("to_pylist", "tolist", "to_list"):  # pyarrow, NumPy and pandas, polars
        if hasattr(given, method):
            return list(getattr(given, method)())
    return list(given)


def _problem(given: Given, one: str) -> str:
    """Say why this is no sequence, and what to do; empty if it is one."""
    kind = type(given).__name__
    if is_frame(given):
        first = next(iter(column_names(given)), "text")
        return f"is a {kind} with columns; give one column: df[{first!r}]"
    if isinstance(given, Mapping) and given and all(map(is_frame, given.values())):
        return f"is a {kind} of {', '.join(map(str, given))[:80]}; give one of them: data[{next(iter(given))!r}]"
    if isinstance(given, PurePath):
        return f"is the path {str(given)!r}; give labelspace.read(path)"
    if hasattr(given, "collect") and hasattr(given, "collect_schema"):
        return f"is a {kind} of polars, which has no rows yet; give df.collect()"
    if isinstance(given, (str, bytes, bytearray, Mapping)) or not isinstance(given, Iterable):
        return f"is one {kind}; {one}"
    if isinstance(given, Set):
        return f"is a {kind}, which has no order; give a list"
    if len(getattr(given, "shape", (1,))) != 1:
        return f"is an array of shape {tuple(given.shape)}; give one column"  # type: ignore[attr-defined]
    return ""


_NUMERIC = "biuf"  # kinds of NumPy's types


@dataclass(frozen=True)
class Frame:
    """A table: the names of its columns, and a function that gives one of them.

    >>> frame = to_frame([{"title": "Rye bread", "tags": ["bread"]}, {"title": "Tea"}])
    >>> frame.names, frame["tags"]
    (['title', 'tags'], [['bread'], None])
    """

    kind: str  # what it is called in messages
    names: list[str]
    n_rows: int
    given: Any
    column: Callable[[str], Sequence[Any]]
    features: Mapping[str, Any]  # of Hugging Face datasets: what the columns hold

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, name: str) -> list[Any]:
        """Return the values of a column, None for missing ones; raise DataError for a missing column."""
        n = self.names.count(name)
        if n != 1:
            close = get_close_matches(name, self.names, n=1)
            remedy = f"did you mean {close[0]!r}?" if close and not n else "name one of them"
            problem = f"has: {', '.join(self.names)[:200]}" if n == 0 else f"has {n} of them"
            raise DataError(f"the {self.kind} must have one column {name!r}, but {problem}; {remedy}")
        values = [None if is_missing(value) else value for value in self.column(name)]
        names = class_names(self.features.get(name))
        return values if names is None else [_class_name(value, names) for value in values]

    def rows(self, names: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Return the rows, with these columns."""
        for values in zip(*(self[name] for name in names), strict=True):
            yield dict(zip(names, values, strict=True))

    def numbers(self) -> Any:  # noqa: ANN401 - a dense or sparse matrix
        """Return the table as a matrix, sparse if pandas has it so; None if a column holds no numbers."""
        types = list(getattr(self.given, "dtypes", ())) if hasattr(self.given, "iloc") else []
        if types and all(type(dtype).__name__ == "SparseDtype" for dtype in types):
            return self.given.sparse.to_coo()
        if types and all(getattr(dtype, "kind", "O") in _NUMERIC for dtype in types):
            return self.given.to_numpy(dtype=np.float32, na_value=np.nan)
        columns = []
        for name in self.names if not types else []:
            columns.append(np.asarray(self.given[name] if self.given is not None else self[name]))
            if columns[-1].ndim != 1 or columns[-1].dtype.kind not in _NUMERIC:
                return None
        return np.column_stack(columns) if columns else None


def to_frame(given: Given) -> Frame | None:
    """Return the table that was given, or a list of rows as one; None for anything else."""
    features = getattr(given, "features", None)
    features = features if isinstance(features, Mapping) else {}
    kind = type(given).__name__
    if is_frame(given):
        rows = given.with_format(None) if hasattr(given, "with_format") else given
        keys = {str(key): key for key in getattr(given, "columns", ())} if hasattr(given, "iloc") else {}
        get = lambda name: to_list(rows[keys.get(name, name)], "a column must have one value per row", "")  # noqa: E731
        return Frame(kind, column_names(given), int(given.shape[0]), given, get, features)
    if hasattr(given, "column_names") and features:  # an IterableDataset
        given = list(given)
    if isinstance(given, (list, tuple)) and given and isinstance(given[0], Mapping):
        return _rows_frame(given, kind, features)
    return None


def _rows_frame(rows: Sequence[Any], kind: str, features: Mapping[str, Any]) -> Frame:
    names: dict[str, None] = {}
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            problem = f"row {number} is of type {type(row).__name__}"
            raise DataError(f"either all rows are dicts or none, but {problem}; give dicts")
        names.update(dict.fromkeys(map(str, row)))
    kind = f"{kind} of rows" if isinstance(rows, (list, tuple)) else kind
    return Frame(kind, list(names), len(rows), None, lambda name: [row.get(name) for row in rows], features)


def class_names(feature: Any) -> Sequence[str] | None:  # noqa: ANN401 - of Hugging Face datasets
    """Return the class names of a feature, a ClassLabel or a list of them; None for any other feature."""
    for _ in range(2):  # the feature, or that of its items
        if hasattr(feature, "int2str") and hasattr(feature, "names"):
            names: Sequence[str] = feature.names
            return names
        feature = feature[0] if isinstance(feature, list) and feature else getattr(feature, "feature", None)
    return None


def _class_name(value: Any, names: Sequence[str]) -> Any:  # noqa: ANN401 - an id, or a list of ids
    """Return the names of class ids; -1, as datasets have for what is unknown, is no class."""
    if isinstance(value, (list, tuple)):
        return [names[item] for item in value if item >= 0]
    return None if value is None or value < 0 else names[value]


def named_column(given: Given, listed: Sequence[Any]) -> Sequence[Any]:
    """Return the values of a column; class ids become names if it is a column of Hugging Face datasets."""
    feature = getattr(given, "features", None)
    if feature is None:
        source = getattr(getattr(given, "source", None), "features", None)
        feature = source.get(getattr(given, "column_name", "")) if isinstance(source, Mapping) else None
    names = class_names(feature)
    return listed if names is None else [_class_name(value, names) for value in listed]
