"""Records of one file to a data set: texts, feature rows, and labels looked up in a label space."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from labelspace.data.labels import LABELS, hierarchy_beside, labels_beside, numbered_labels
from labelspace.data.records import Place, Record
from labelspace.data.sparse_rows import LARGEST_SIZE, SparseRows
from labelspace.data.table import describe_labels
from labelspace.errors import DataError
from labelspace.types import Columns, Csr, Dataset, LabelSpace

_BATCH = 4096  # feature strings kept before they are parsed


def assemble(
    records: Iterable[Record], path: str | Path, labels: LabelSpace | None = None, columns: Columns | None = None
) -> Dataset:
    """Build the data set of the records of a file; see ``read_dataset`` for the label space.

    ``columns`` are those of the table that the records are rows of.

    >>> records = Record("a", "it purrs", None, ("cat",)), Record("b", "it barks", None, ("dog",))
    >>> dataset = assemble(records, "a.jsonl")
    >>> dataset.labels.names, dataset.Y.toarray().tolist()
    (['cat', 'dog'], [[1.0, 0.0], [0.0, 1.0]])
    """
    documents, column = _Documents(path), LabelColumn(path)
    for record in records:
        documents.add(record)
        column.add(record)
    if not documents.ids:
        raise DataError(f"{path} must hold at least one document, but holds none; give a file with some")
    if columns is None:
        space = hierarchy_beside(path, column.resolve(labels_beside(path) if labels is None else labels))
    else:
        space = column.resolve(labels, columns.parted)
        space = space.with_paths() if labels is None and space.are_paths else space  # of a column with whole paths
    Y = column.matrix(space)
    if columns is not None and labels is None:  # training rows alone say what the labels are
        space = describe_labels(space, Y, columns)
    name = Path(path).name.split(".")[0]
    return Dataset(Y, space, documents.texts, documents.features(), documents.ids, name, columns)


class _Documents:
    """The ids, texts and features of the records; the first record says which of the two all must have."""

    def __init__(self, path: str | Path) -> None:
        self.ids: list[str] = []
        self.texts: list[str] | None = None
        self._path = path
        self._lines = array("q")
        self._rows: SparseRows | None = None
        self._waiting: list[str] = []

    def add(self, record: Record) -> None:
        if not self.ids:
            self.texts = None if record.text is None else []
            self._rows = None if record.features is None else SparseRows(LARGEST_SIZE, 0, self._place)
        for what, mine, first in (("text", record.text, self.texts), ("features", record.features, self._rows)):
            if (mine is None) != (first is None):
                has, had = ("has none", "has") if mine is None else ("has", "has none")
                raise Place(self._path, record.line).expected(
                    f"{what!r} in every document or in none", f"this one {has} and the first {had}", "make them alike"
                )
        self.ids.append(record.id)
        self._lines.append(record.line)
        if self.texts is not None and record.text is not None:
            self.texts.append(record.text)
        if record.features is not None:
            self._waiting.append(record.features)
            if len(self._waiting) == _BATCH:
                self._parse()

    def features(self) -> Csr | None:
        if self._rows is None:
            return None
        self._parse()
        return self._rows.matrices(None, 0)[0]

    def _parse(self) -> None:
        if self._rows is not None:
            self._rows.add_features(self._waiting)
        self._waiting = []

    def _place(self, row: int) -> str:
        return f"{self._path}:{self._lines[row]}"


class LabelColumn:
    """The labels of the records, numbered as they come; the label space is settled at the end."""

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._code: dict[str | int, int] = {}
        self._first_line: list[int] = []  # of each code
        self._codes = array("i")
        self._counts = array("i")

    def add(self, record: Record) -> None:
        """Note the labels of the next document."""
        for label in record.labels:
            code = self._code.setdefault(label, len(self._first_line))
            if code == len(self._first_line):
                self._first_line.append(record.line)
            self._codes.append(code)
        self._counts.append(len(record.labels))

    def resolve(self, known: LabelSpace | None, order: Callable[[str], tuple[int, str]] | None = None) -> LabelSpace:
        """The label space: the known one with new names appended in order, else the sorted names, else numbers."""
        names = sorted((label for label in self._code if isinstance(label, str)), key=order)
        largest = max((label for label in self._code if isinstance(label, int)), default=-1)
        if known is not None:
            if largest >= len(known):
                raise self._place(largest).expected(
                    f"a label id below {len(known)}, the number of known labels",
                    f"one is {largest}",
                    f"correct it, or add a line to {LABELS}",
                )
            return known.extended(names)
        if largest < 0:
            return LabelSpace(names)
        if names:
            raise self._place(names[0]).expected(
                "all labels to be ids as on other lines",
                f"one is the name {names[0]!r}",
                f"put {LABELS} beside the file",
            )
        return numbered_labels(largest + 1, f"{self._path}:{self._place(largest).line}")

    def matrix(self, space: LabelSpace) -> Csr:
        """Y, 0/1 of shape (n, n_labels)."""
        target = np.array([label if isinstance(label, int) else space.index[label] for label in self._code], np.int32)
        codes = np.frombuffer(self._codes, np.int32) if self._codes else np.empty(0, np.int32)
        indptr = np.concatenate([[0], np.cumsum(np.frombuffer(self._counts, np.int32))])
        ones = np.ones(len(codes), np.float32)
        Y = sp.csr_matrix((ones, target[codes], indptr), shape=(len(self._counts), len(space)))
        Y.sum_duplicates()  # a name and its id may both stand in one document
        Y.data[:] = 1
        return Y

    def _place(self, label: str | int) -> Place:
        return Place(self._path, self._first_line[self._code[label]])
