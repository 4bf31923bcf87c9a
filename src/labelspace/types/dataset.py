"""Documents with their labels, and the columns of a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from labelspace.errors import DataError
from labelspace.types.arrays import Bools, Csr, Doubles
from labelspace.types.label_space import LabelSpace
from labelspace.types.side_columns import SideColumns


@dataclass(frozen=True)
class Columns:
    """The input and output columns of a table; a label of an output column is called ``column: value``.

    ``outputs`` are groups of columns: one column, or the levels of a category path, root first.

    >>> columns = Columns(("title", "price"), (("brand",), ("L0", "L1")))
    >>> columns.output_names, columns.split_label("L1: Tea"), columns.split_label("Tea")
    (('brand', 'L0', 'L1'), (2, 'Tea'), (-1, 'Tea'))
    """

    inputs: tuple[str, ...]
    outputs: tuple[tuple[str, ...], ...]
    beside: SideColumns = SideColumns()

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", tuple(self.inputs))
        object.__setattr__(self, "outputs", tuple(map(tuple, self.outputs)))
        names = self.inputs + self.output_names + self.beside.names
        if not all(isinstance(name, str) for name in names):
            raise DataError(f"columns must be named by texts, but are {names}; write for example title")
        for what, given in (("inputs", self.inputs), ("outputs", self.outputs)):
            if not given or not all(given):
                raise DataError(f"{what} must name at least one column, but one is empty; write for example title")
        duplicates = [name for name in names if names.count(name) > 1]
        if duplicates:
            rule = "each column must be named once, as input or output"
            raise DataError(f"{rule}, but {duplicates[0]!r} is named twice; remove one")
        for name in self.output_names:  # else a label's column would be ambiguous
            longer = [other for other in self.output_names if other.startswith(name + ": ")]
            if longer:
                rule = f"no output may start with another and ': ', but {longer[0]!r} starts with {name!r}"
                raise DataError(f"{rule}; rename one")

    @cached_property
    def output_names(self) -> tuple[str, ...]:
        """Return the output columns of all groups."""
        return tuple(name for group in self.outputs for name in group)

    def split_label(self, label: str) -> tuple[int, str]:
        """Return the index of the output column of a label, -1 for none, and the value."""
        for index, column in enumerate(self.output_names):
            if label.startswith(column + ": "):
                return index, label[len(column) + 2 :]
        return -1, label

    def masks(self, labels: Iterable[str]) -> dict[str, Bools]:
        """Return which labels belong to each output column. Shape (n_labels,) each.

        >>> Columns(("title",), (("brand",), ("L0",))).masks(["brand: Tata", "L0: Tea"])["L0"].tolist()
        [False, True]
        """
        indices = np.array([self.split_label(label)[0] for label in labels])
        return {name: indices == index for index, name in enumerate(self.output_names)}


@dataclass(frozen=True)
class Fields:
    """The columns of a file that hold the texts, the labels and the ids of its documents.

    ``label_separator`` separates the labels of a cell; None if a cell is a list, or one label. With ``indicators`` the
    label columns have the names of the labels, and contain 0 or 1.
    """

    text: tuple[str, ...] = ("text",)
    labels: tuple[str, ...] = ("labels",)
    id: str | None = "id"
    label_separator: str | None = "|"
    indicators: bool = False
    normalize_labels: bool = False  # labels that differ in case or spaces only are one label
    features: str = "features"  # the column of ready-made features, if any
    beside: SideColumns = SideColumns()

    def __post_init__(self) -> None:
        for key in ("text", "labels"):
            names = tuple(getattr(self, key))
            if not all(isinstance(name, str) and name for name in names):
                raise DataError(f"columns must be named by texts, but {key} are {names}; write for example title")
            object.__setattr__(self, key, names)
        twice = next((name for name in self.beside.names if name in (*self.text, *self.labels, self.id)), None)
        if twice is not None:
            rule = f"each column must be named once, but {twice!r} stands beside the text and is text, labels or id too"
            raise DataError(f"{rule}; remove one")


def plain_layout(layout: Columns | Fields) -> dict[str, Any]:
    """Return what columns hold as plain values, without columns beside the texts where there are none."""
    plain = asdict(layout)
    return plain if layout.beside else {key: value for key, value in plain.items() if key != "beside"}


@dataclass(frozen=True)
class Dataset:
    """Documents with their labels: texts, or ready-made features X, or both; Y is 0/1 of shape (n, n_labels)."""

    Y: Csr
    labels: LabelSpace
    texts: Sequence[str] | None = None
    X: Csr | None = None
    ids: Sequence[str] | None = None
    name: str = ""
    columns: Columns | None = None  # if the documents are rows of a table
    fields: Fields | None = None  # the columns that were read, if the documents are rows of a file
    filtered: Csr | None = None  # (n, n_labels): labels that do not count for a document, neither right nor wrong
    sample_weight: Doubles | None = None  # (n,): how much each document counts in training; None if all count the same

    def __post_init__(self) -> None:
        if self.texts is None and self.X is None:
            raise DataError("a data set must have texts or features, but has neither; pass texts=... or X=...")
        if self.Y.shape[1] != len(self.labels):
            rule = f"Y must have one column per label, but has {self.Y.shape[1]} for {len(self.labels)} labels"
            raise DataError(f"{rule}; pass the LabelSpace that Y was built with")
        n = self.Y.shape[0]
        parts = {"texts": self.texts, "feature rows": self.X, "rows of filtered labels": self.filtered, "ids": self.ids}
        parts["weights"] = self.sample_weight
        for what, part in parts.items():
            if part is None:
                continue
            size = len(part) if isinstance(part, Sequence) else part.shape[0]
            if size != n:
                rule = f"there must be as many {what} as documents, but there are {size} for {n}"
                raise DataError(f"{rule}; give one per document")

    def __len__(self) -> int:
        return int(self.Y.shape[0])

    @property
    def beside(self) -> SideColumns:
        """Return the columns that stand beside the texts."""
        layout = self.columns or self.fields
        return SideColumns() if layout is None else layout.beside

    @property
    def inputs(self) -> Csr | Sequence[str]:
        """Return the input of a model: ready-made features if any, else the texts."""
        return self.X if self.X is not None else (self.texts or [])

    def weighty(self) -> Dataset:
        """Return the documents of a weight above 0, which keep their ids, or the numbers of their rows, from 1."""
        if self.sample_weight is None or self.sample_weight.all():
            return self
        ids = list(map(str, range(1, len(self) + 1))) if self.ids is None else self.ids
        return replace(self, ids=ids).rows(np.flatnonzero(self.sample_weight))

    def rows(self, index: npt.ArrayLike) -> Dataset:
        """Return the documents with these row numbers, in this order."""
        at = np.asarray(index, dtype=np.int64)
        texts, ids = (None if values is None else [values[i] for i in at] for values in (self.texts, self.ids))
        arrays = (self.X, self.filtered, self.sample_weight)
        X, filtered, weights = (None if array is None else array[at] for array in arrays)
        return replace(self, Y=self.Y[at], texts=texts, X=X, ids=ids, filtered=filtered, sample_weight=weights)
