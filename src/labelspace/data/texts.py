"""Texts as Python gives them: checked, and with lists of label names as a data set."""

from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelspace.errors import DataError
from labelspace.types import Dataset, LabelSpace


def is_frame(given: object) -> bool:
    """Whether it is a table of pandas, polars or pyarrow, none of which is imported for that."""
    return hasattr(given, "columns") and len(getattr(given, "shape", ())) == 2


def is_column(given: object) -> bool:
    """Whether it is a column of pandas, polars or pyarrow."""
    return not is_frame(given) and (hasattr(given, "to_pylist") or hasattr(given, "to_list"))


def frame_rows(frame: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - of a package that may not be installed
    """The rows of such a table, by column."""
    for method in ("to_pylist", "to_dicts"):  # pyarrow, polars
        if hasattr(frame, method):
            return list(getattr(frame, method)())
    return list(frame.to_dict("records"))


def to_list(given: Any, what: str, one: str) -> Sequence[Any]:  # noqa: ANN401 - whatever the caller gave
    """A list of what was given: a column of pandas, polars or pyarrow, an array, anything with an order.

    ``what`` it must hold, and what to do with ``one``, are said where it is one value, a table or has no order.

    >>> to_list((text for text in ["a", "b"]), "texts", "give a list")
    ['a', 'b']
    """
    if isinstance(given, (list, tuple)):
        return given
    kind, problem = type(given).__name__, ""
    if is_frame(given):
        names = getattr(given, "column_names", None) or given.columns  # pyarrow has column_names
        first = next(map(str, names), "text")
        problem, remedy = f"is a {kind} with columns", f"give one column: df[{first!r}]"
    elif isinstance(given, (str, bytes, bytearray, Mapping)) or not isinstance(given, Iterable):
        problem, remedy = f"is one {kind}", one
    elif isinstance(given, Set):
        problem, remedy = f"is a {kind}, which has no order", "give a list"
    elif len(getattr(given, "shape", (1,))) != 1:
        problem, remedy = f"is an array of shape {given.shape}", "give one column"  # type: ignore[attr-defined]
    if problem:
        raise DataError(f"{what}, but {problem}; {remedy}")
    for method in ("to_pylist", "tolist", "to_list"):  # pyarrow, NumPy and pandas, polars
        if hasattr(given, method):
            return list(getattr(given, method)())
    return list(given)


def check_texts(texts: Iterable[str]) -> Sequence[str]:
    """The texts as a list; anything but texts is an error that names its row."""
    listed = to_list(texts, "texts must be a sequence of texts", "give a list of texts: [text]")
    for row, text in enumerate(listed):
        if not isinstance(text, str):
            raise DataError(
                f"a text must be a str, but the one of row {row} is of type {type(text).__name__}; "
                "give a str, an empty one for no text"
            )
    return listed


def without_lone_surrogates(text: str) -> str:
    """The text with ``?`` for what is no valid Unicode: tokenizers of other packages refuse that."""
    return text.encode("utf-8", "replace").decode("utf-8")


def check_training_texts(texts: Iterable[str]) -> Sequence[str]:
    """The same, with at least one text."""
    listed = check_texts(texts)
    if not listed:
        raise DataError("features must be fitted on at least one text, but there are 0; give more texts")
    return listed


def _checked_names(row: int, names: Any) -> list[str]:  # noqa: ANN401 - whatever the caller gave
    """The names of one text as a list; an iterator is read once, here."""
    single = isinstance(names, (str, bytes, Mapping)) or not isinstance(names, Iterable)
    listed = None if single else list(names)
    if listed is None or not all(isinstance(name, str) and name for name in listed):
        shown = " ".join(repr(names).split())[:60]
        raise DataError(f"the labels of a text must be a list of names, but row {row} has {shown}; write ['name']")
    return listed


def dataset_from_names(texts: Iterable[str], labels: Iterable[Iterable[str]]) -> Dataset:
    """Texts and lists of names as a Dataset; labels are numbered in alphabetical order."""
    texts = check_texts(texts)
    labels = to_list(labels, "labels must be a sequence of lists of names", "give one list per text: [['name'], ...]")
    if len(texts) != len(labels):
        raise DataError(
            f"there must be one list of labels per text, but there are {len(labels)} for {len(texts)} texts; give all"
        )
    labels = [_checked_names(row, names) for row, names in enumerate(labels)]
    space = LabelSpace(sorted(set(chain.from_iterable(labels))))
    space = space.with_paths() if space.are_paths else space
    rows = [sorted({space.index[name] for name in names}) for names in labels]
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.fromiter(chain.from_iterable(rows), np.int32, int(indptr[-1]))
    Y = sp.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), shape=(len(rows), len(space)))
    return Dataset(Y, space, texts=texts)
