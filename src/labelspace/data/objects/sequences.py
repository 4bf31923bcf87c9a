"""Columns as lists: those of pandas, polars, pyarrow, NumPy and Hugging Face datasets; lists, tuples and generators."""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from labelspace.errors import DataError

_MISSING_TYPES = ("NAType", "NaTType")  # of pandas


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


def column_names(frame: Any) -> list[str]:  # noqa: ANN401 - of a package that may not be installed
    """Return the names of the columns of a table."""
    names = getattr(frame, "column_names", None)  # pyarrow and Hugging Face
    return [str(name) for name in (frame.columns if names is None else names)]


def is_missing(value: object) -> bool:
    """Return whether a value stands for none: None, NaN, or NA of pandas.

    >>> is_missing(None), is_missing(float("nan")), is_missing("")
    (True, True, False)
    """
    if value is None or type(value).__name__ in _MISSING_TYPES:
        return True
    return isinstance(value, float) and value != value


def to_list(given: Any, what: str, one: str) -> Sequence[Any]:  # noqa: ANN401 - a caller may pass anything
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


def _problem(given: Any, one: str) -> str:  # noqa: ANN401 - a caller may pass anything
    """Say why this is no sequence, and what to do; empty if it is one."""
    kind = type(given).__name__
    if is_frame(given):
        first = next(iter(column_names(given)), "text")
        return f"is a {kind} with columns; give one column: df[{first!r}]"
    if isinstance(given, Mapping) and given and all(map(is_frame, given.values())):
        return f"is a {kind} of {', '.join(map(str, given))[:80]}; give one of them: data[{next(iter(given))!r}]"
    if hasattr(given, "collect") and hasattr(given, "collect_schema"):
        return f"is a {kind} of polars, which has no rows yet; give df.collect()"
    if isinstance(given, (str, bytes, bytearray, Mapping)) or not isinstance(given, Iterable):
        return f"is one {kind}; {one}"
    if isinstance(given, Set):
        return f"is a {kind}, which has no order; give a list"
    if len(getattr(given, "shape", (1,))) != 1:
        return f"is an array of shape {tuple(given.shape)}; give one column"  # type: ignore[attr-defined]
    return ""
