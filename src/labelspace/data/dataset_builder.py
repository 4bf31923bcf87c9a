"""Build a Dataset from records: texts, feature rows, and label ids in a label space."""

from array import array
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from labelspace.data.label_files import LABELS, labels_of_file, numbered_labels, own_file, with_hierarchy
from labelspace.data.records import Location, Record, Subject
from labelspace.data.sparse_rows import MAX_COLUMNS, SparseRows, check_width
from labelspace.data.table import describe_labels
from labelspace.data.texts import TextList
from labelspace.errors import DataError
from labelspace.types import NO_CONCEPT, Columns, Concept, Csr, Dataset, LabelSpace

_BATCH = 4096  # feature strings parsed at a time


def assemble(
    records: Iterable[Record], path: str | Path, labels: LabelSpace | None = None, columns: Columns | None = None
) -> Dataset:
    """Return the data set of the records of a file; see ``read_dataset`` for the label space.

    ``columns`` are given if the records are rows of a table.

    >>> records = Record("a", "it purrs", None, ("cat",)), Record("b", "it barks", None, ("dog",))
    >>> dataset = assemble(records, "a.jsonl")
    >>> dataset.labels.names, dataset.Y.toarray().tolist()
    (['cat', 'dog'], [[1.0, 0.0], [0.0, 1.0]])
    """
    documents, column = _Documents(path), LabelColumn(path)
    for record in records:
        documents.add(record)
        column.add(record)
    if not documents.n:
        raise DataError(f"{path} must hold at least one document, but has none; give another file")
    if columns is None:
        space = with_hierarchy(path, column.resolve(labels_of_file(path) if labels is None else labels))
    else:
        space = column.resolve(labels, columns.split_label)
        space = space.with_paths() if labels is None and space.are_paths else space  # a column of paths
    Y = column.matrix(space)
    if columns is not None and labels is None:  # only training rows define the hierarchy
        space = describe_labels(space, Y, columns)
    name = Path(path).name.split(".")[0]
    texts = None if documents.texts is None else documents.texts.finish()
    return Dataset(Y, space, texts, documents.features(), documents.ids.finish(), name, columns)


class _Documents:
    """The ids, texts and features of the records; the first record defines which of the two are required."""

    def __init__(self, path: str | Path) -> None:
        self.ids = TextList()
        self.texts: TextList | None = None
        self._path = path
        self._lines = array("q")
        self._rows: SparseRows | None = None
        self._pending: list[str] = []

    def add(self, record: Record) -> None:
        if not self.n:
            self.texts = None if record.text is None else TextList()
            self._rows = None if record.features is None else SparseRows(MAX_COLUMNS, 0, self._location)
        for field, value, first in (("text", record.text, self.texts), ("features", record.features, self._rows)):
            if (value is None) != (first is None):
                has, had = ("has none", "has") if value is None else ("has", "has none")
                rule, problem = f"{field!r} in all documents or in none", f"this one {has} and the first {had}"
                raise Location(self._path, record.line).expected(rule, problem, "add or remove it")
        self.ids.append(record.id)
        self._lines.append(record.line)
        if self.texts is not None and record.text is not None:
            self.texts.append(record.text)
        if self._rows is not None and record.features is not None:
            self._pending.append(record.features)
            if len(self._pending) == _BATCH:
                self._parse(self._rows)

    @property
    def n(self) -> int:
        return len(self._lines)

    def features(self) -> Csr | None:
        if self._rows is None:
            return None
        self._parse(self._rows)
        X = self._rows.matrices(None, 0)[0]
        check_width(X.shape[1], self._rows.n_values, self._path)
        return X

    def _parse(self, rows: SparseRows) -> None:
        rows.add_features(self._pending)
        self._pending = []

    def _location(self, row: int) -> str:
        return f"{self._path}:{self._lines[row]}"


class LabelColumn:
    """The labels of the records, coded in order of appearance; the label space is resolved at the end.

    A subject is the label with its URI; if no known label has the URI, the label with its name.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._code_of: dict[str | int, int] = {}  # a subject by its URI
        self._name_of: dict[str, str] = {}  # of a URI
        self._first_line: list[int] = []  # per code
        self._codes = array("i")
        self._counts = array("i")

    def add(self, record: Record) -> None:
        """Add the labels of the next document."""
        for label in record.labels:
            if isinstance(label, Subject):
                self._name_of.setdefault(label.uri, label.name)
                label = label.uri
            code = self._code_of.setdefault(label, len(self._first_line))
            if code == len(self._first_line):
                self._first_line.append(record.line)
            self._codes.append(code)
        self._counts.append(len(record.labels))

    def resolve(self, known: LabelSpace | None, order: Callable[[str], tuple[int, str]] | None = None) -> LabelSpace:
        """Return the label space: the known one with new names appended, else the sorted names, else numbers."""
        if self._name_of:
            return self._with_subjects(known)
        names = sorted((label for label in self._code_of if isinstance(label, str)), key=order)
        max_id = max((label for label in self._code_of if isinstance(label, int)), default=-1)
        if known is not None:
            if max_id >= len(known):
                rule, remedy = f"a label id below {len(known)}, the number of known labels", "correct it, or add a line"
                raise self._location(max_id).expected(rule, f"one is {max_id}", f"{remedy} to the labels file")
            return known.extended(name for name in names if known.find(name) is None)
        if max_id < 0:
            return LabelSpace(names)
        if names:
            rule, problem = "all labels to be ids, as in other lines", f"one is the name {names[0]!r}"
            raise self._location(names[0]).expected(rule, problem, f"name them in {own_file(self._path, LABELS)}")
        return numbered_labels(max_id + 1, len(self._codes), self._path, self._location(max_id).line)

    def _with_subjects(self, known: LabelSpace | None) -> LabelSpace:
        """Return the label space of files that name labels by URI and name: new labels have both.

        Of two new labels with one name, or if the name is taken, the name is followed by the URI.
        """
        wrong = next((label for label in self._code_of if not isinstance(label, str)), None)
        if wrong is not None:
            rule, problem = "all labels to have a URI or a name, as in other lines", f"one is the id {wrong}"
            raise self._location(wrong).expected(rule, problem, "write its name")
        space = LabelSpace([]) if known is None else known
        new = [uri for uri in self._code_of if isinstance(uri, str) and self._find(space, uri) is None]
        new.sort(key=lambda uri: (self._name_of.get(uri, uri), uri))
        names, taken = [], set[str]()
        for uri in new:
            name = self._name_of.get(uri, uri)
            names.append(f"{name} <{uri}>" if name in taken or name in space.index else name)
            taken.add(name)
        start, space = len(space), space.extended(names)
        concepts = [NO_CONCEPT] * start if space.concepts is None else list(space.concepts[:start])
        concepts += [Concept(uri) if uri in self._name_of else NO_CONCEPT for uri in new]
        return replace(space, concepts=concepts)

    def _find(self, space: LabelSpace, label: str) -> int | None:
        """Return the id of a label by its URI or name, or by the name that a file gives it if that has no other URI."""
        found = space.find(label)
        if found is None and label in self._name_of:
            found = space.index.get(self._name_of[label])
            found = None if found is not None and space.concept(found).uri not in (None, label) else found
        return found

    def matrix(self, space: LabelSpace) -> Csr:
        """Return Y, 0/1 of shape (n, n_labels)."""
        found = (label if isinstance(label, int) else self._find(space, label) for label in self._code_of)
        columns = np.fromiter(found, np.int32, len(self._code_of))[np.asarray(self._codes)]
        indptr = np.concatenate([[0], np.cumsum(self._counts)])
        Y = sp.csr_matrix((np.ones(len(columns), np.float32), columns, indptr), shape=(len(self._counts), len(space)))
        Y.sum_duplicates()  # a document may have both a name and its id
        Y.data[:] = 1
        return Y

    def _location(self, label: str | int) -> Location:
        return Location(self._path, self._first_line[self._code_of[label]])
