"""Documents to go on learning from: like training documents, with a column of labels that a person rejected.

The column is called ``rejected``. Its cells are read like those of the labels: names with the same separator, or a
list. A file is read at once, and a stream row by row, as it comes.
"""

import csv
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelspace.data.archives import is_data_file
from labelspace.data.dataset_builder import assemble
from labelspace.data.dataset_file import settle
from labelspace.data.fields import ColumnSample, detect_fields, field_records
from labelspace.data.files import STDIN, UTF_8, lines, too_long
from labelspace.data.formats.base import AnyFormat, RowFormat
from labelspace.data.formats.csvfile import CSV, TSV, Dialect, detect_dialect, read_row
from labelspace.data.formats.json_documents import JSON, JSONL
from labelspace.data.label_mapping import merge_spellings, normalized, ones_of_rows
from labelspace.data.read_options import NO_SEPARATOR, ReadOptions
from labelspace.data.records import Label, Location, Record, Rows, Subject, cell_labels, parse_object
from labelspace.data.sparse_rows import parse_features
from labelspace.data.table import is_table, table_records
from labelspace.errors import DataError
from labelspace.types import Columns, Csr, Dataset, Fields, LabelSpace
from labelspace.types.limits import MAX_LINE_BYTES

REJECTED = "rejected"
SEPARATOR = "|"  # of labels in a stream, where neither the model nor an option says it
POLL_SECONDS = 0.5  # between two looks at a file that may grow
Row = tuple[Location, dict[str, object]]


def read_rejected(path: str | Path, documents: Dataset, options: ReadOptions) -> Csr:
    """Return the rejected labels of documents that were read from a file, as ones of shape (n, n_labels).

    A file without the column ``rejected``, or of a format without columns, has none.
    """
    fmt, options = settle(path, options)
    rows: list[list[int]] = [[] for _ in range(len(documents))]
    if isinstance(fmt, RowFormat):
        with fmt.rows(path, options) as opened:
            if fmt in (JSONL, JSON) or REJECTED in opened.names():  # in JSON, any row may have it
                reader = RejectedReader(documents.labels, _separator(documents.fields, options), options.merges_labels)
                for number, (location, row) in enumerate(opened.read([REJECTED])):
                    given = documents.Y.indices[documents.Y.indptr[number] : documents.Y.indptr[number + 1]]
                    rows[number] = reader.ids(row.get(REJECTED), given.tolist(), location)
    return ones_of_rows(rows, len(documents.labels))


def _separator(fields: Fields | None, options: ReadOptions) -> str | None:
    known = None if fields is None else fields.label_separator
    separator = options.label_separator if known is None else known
    return None if separator == NO_SEPARATOR else separator


class RejectedReader:
    """Reads cells of rejected labels; each must be known, and none may be a label of the same document."""

    def __init__(self, labels: LabelSpace, separator: str | None, merges_spellings: bool) -> None:
        self.labels, self.separator = labels, separator
        self._spellings: dict[str, int] | None = {} if merges_spellings else None
        if self._spellings is not None:
            for label, name in enumerate(labels.names):
                self._spellings.setdefault(normalized(name), label)

    def ids(self, cell: object, given: Sequence[int], location: Location) -> list[int]:
        """Return the ids of the rejected labels of a document that has the labels ``given``."""
        ids = sorted({self._id(label, location) for label in cell_labels(cell, REJECTED, self.separator, location)})
        for label in ids:
            if label in given:
                problem = f"{self.labels.names[label]!r} is both"
                raise location.expected("labels that are not rejected too", problem, "leave one out")
        return ids

    def _id(self, label: Label, location: Location) -> int:
        if isinstance(label, int):
            found = label if label < len(self.labels) else None
        else:
            name = label.uri if isinstance(label, Subject) else label
            found = self.labels.find(name)
            if found is None and isinstance(label, Subject):
                found = self.labels.find(label.name)
            if found is None and self._spellings is not None:
                found = self._spellings.get(normalized(name))
        if found is None:
            shown = str(label.name if isinstance(label, Subject) else label)[:60]
            problem = f"the model has no label {shown!r}"
            raise location.expected("rejected labels that the model has", problem, "correct or remove it")
        return found


class _ReadRow(NamedTuple):
    """A row that was read: its number, its record, and the cell with its rejected labels."""

    number: int
    location: Location
    record: Record
    rejected: object


class StreamSettings(NamedTuple):
    """How the documents of a stream are read: as the training documents of a model were."""

    columns: Columns | None
    options: ReadOptions  # which follow the fields of the training
    n_features: int | None  # None for a model that reads texts


class LearningStream:
    """Reads documents to learn from row by row: JSON lines or CSV, from a file, a pipe or the standard input.

    ``rows`` waits for what comes, and may run in a thread of its own; ``dataset`` checks and joins some of the rows.
    """

    def __init__(self, path: str | Path, settings: StreamSettings, *, waits: bool = False) -> None:
        if settings.options.vectors_file is not None:
            problem = f"vectors are in {settings.options.vectors_file}"
            raise DataError(f"a stream must have the vectors of its documents in a column, but {problem}; add a column")
        self.path, self.settings, self.waits = path, settings, waits
        self.is_stopped = False
        self._names: list[str] = []  # of the columns, once the first row is read
        self._layout: Columns | Fields | None = None
        self._is_json = False
        self._n = 0  # rows so far
        if waits and (str(path) == STDIN or not Path(path).is_file()):
            raise DataError(f"only a plain file can be followed as it grows, but {path} is none; leave --wait out")
        if str(path) != STDIN and not is_data_file(Path(path)) and not Path(path).is_fifo():
            raise DataError(f"a data file must exist, but {path} does not; check the path")

    def stop(self) -> None:
        """Stop waiting for a file to grow."""
        self.is_stopped = True

    def rows(self) -> Iterator[Row | DataError]:
        """Yield each row as it comes; an error in place of a row that cannot be read."""
        fmt, encoding = self._named_format()
        numbered = self._growing(encoding) if self.waits else lines(self.path, encoding)
        first = next(numbered, None)
        if first is None:
            return
        if fmt is None:
            fmt = JSONL if first[1].lstrip().startswith("{") else CSV
        self._is_json = fmt is JSONL
        numbered = chain([first], numbered)
        yield from self._json_rows(numbered) if self._is_json else self._csv_rows(numbered, fmt)

    def _named_format(self) -> tuple[AnyFormat | None, str]:
        """Return the format and encoding by the options or the file; no format if only the first line can tell it."""
        options = self.settings.options
        if options.format is None and (str(self.path) == STDIN or not is_data_file(Path(self.path))):
            return None, options.encoding or UTF_8
        fmt, options = settle(self.path, options)
        if fmt not in (JSONL, CSV, TSV):
            rule = f"a stream must be JSON lines or CSV, but {self.path} is {fmt.title}"
            raise DataError(f"{rule}; convert it: labelspace data convert")
        return fmt, options.encoding or UTF_8

    def _json_rows(self, numbered: Iterator[tuple[int, str]]) -> Iterator[Row | DataError]:
        for line, text in numbered:
            if not text.strip():
                continue  # whoever appends to a file may leave some
            location = Location(self.path, line)
            try:
                yield location, parse_object(text, location)
            except DataError as error:
                yield error

    def _csv_rows(self, numbered: Iterator[tuple[int, str]], fmt: AnyFormat) -> Iterator[Row | DataError]:
        _, header = next(numbered)
        delimiter = self.settings.options.delimiter or ("\t" if fmt is TSV else None)
        dialect = detect_dialect([header], delimiter)
        csv.field_size_limit(min(MAX_LINE_BYTES.value, 2**31 - 1))
        names = [name.strip() for name in next(dialect.reader([header]), [])]
        self._names = names
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise DataError(f"{self.path}:1: expected unique columns, but {twice!r} occurs twice; rename one of them")
        for location, cells in _cells(self.path, numbered, dialect):
            if isinstance(cells, DataError):
                yield cells
            elif len(cells) == len(names):
                yield location, dict(zip(names, cells, strict=True))
            elif cells:
                rule = f"{len(names)} cells as in the header"
                yield location.expected(rule, f"there are {len(cells)}", "quote cells that contain the delimiter")

    def _growing(self, encoding: str) -> Iterator[tuple[int, str]]:
        """Yield the numbered lines of a file, and wait for more; a file that takes its place is read from its start."""
        if len("\n".encode(encoding)) != 1:
            problem = f"{self.path} is in {encoding}"
            raise DataError(f"a file that grows must have one byte per line end, but {problem}; save it as UTF-8")
        while not self.is_stopped:
            try:
                file = open(self.path, "rb")
            except FileNotFoundError:  # between two files, when logs are rotated
                time.sleep(POLL_SECONDS)
                continue
            with file:
                yield from self._growing_lines(file, encoding)

    def _growing_lines(self, file: BinaryIO, encoding: str) -> Iterator[tuple[int, str]]:
        """Yield the lines of one open file until another takes its place."""
        number, pending = 1, b""
        while True:
            part = file.readline(MAX_LINE_BYTES.value + 1)
            pending += part
            if len(pending) > MAX_LINE_BYTES.value:
                raise too_long(self.path, number)
            is_left = not part and _is_replaced(self.path, file.fileno(), file.tell())
            if pending.endswith(b"\n") or (pending and is_left):
                yield number, _decoded(pending, encoding, Location(self.path, number))
                number += 1
                pending = b""
            elif is_left or (not part and self.is_stopped):  # half a line may be one that is being written
                return
            elif not part:
                time.sleep(POLL_SECONDS)

    def dataset(
        self, rows: Sequence[Row | DataError], labels: LabelSpace, skip: Callable[[int, DataError], None]
    ) -> tuple[Dataset | None, Csr]:
        """Return documents with the known labels first, and their rejected labels; None without documents.

        ``skip`` is called with the number of each row that cannot be read, from 0, and its error.
        """
        read = []
        for number, row in enumerate(rows):
            try:
                if isinstance(row, DataError):
                    raise row
                read.append(_ReadRow(number, row[0], self._record(*row, labels), row[1].get(REJECTED)))
            except DataError as error:
                skip(number, error)
        while read:
            documents = self._assembled([each.record for each in read], labels)
            separator = _separator(self._layout if isinstance(self._layout, Fields) else None, self.settings.options)
            reader = RejectedReader(documents.labels, separator, self.settings.options.merges_labels)
            rejected, right = [], []
            for each, given in zip(read, np.split(documents.Y.indices, documents.Y.indptr[1:-1]), strict=True):
                try:
                    rejected.append(reader.ids(each.rejected, given.tolist(), each.location))
                    right.append(each)
                except DataError as error:
                    skip(each.number, error)
            if len(right) == len(read):
                return documents, ones_of_rows(rejected, len(documents.labels))
            read = right  # again without the others: their labels may be new ones that no other document has
        return None, sp.csr_matrix((0, len(labels)), dtype=np.float32)

    def _assembled(self, records: Sequence[Record], labels: LabelSpace) -> Dataset:
        columns = self._layout if isinstance(self._layout, Columns) else None
        documents = assemble(records, self.path, labels, columns)
        if self.settings.options.merges_labels:
            documents, _ = merge_spellings(documents, len(labels))
        return documents

    def _record(self, location: Location, row: dict[str, object], labels: LabelSpace) -> Record:
        """Return a row as a record that the model can learn from."""
        if self._layout is None:
            self._layout = self._found_layout(row)
        one = Rows(lambda: [], lambda names: iter([(location, row)]))
        if isinstance(self._layout, Columns):
            [record] = table_records(self.path, one, self._layout, first=self._n, is_checked=True)
        else:
            [record] = field_records(one, self._layout, first=self._n)
        self._n += 1
        n_features = self.settings.n_features
        if n_features is None and record.text is None:
            raise location.expected("'text', which this model reads", "there is none", "add it")
        if n_features is not None:
            if record.features is None:
                raise location.expected("'features', which this model reads", "there are none", "add them")
            parse_features([record.features], n_features, lambda row: f"{location.path}:{location.line}")
        for label in record.labels:
            if isinstance(label, int) and label >= len(labels):
                rule = f"a label id below {len(labels)}, the number of known labels"
                raise location.expected(rule, f"one is {label}", "correct it, or write a name")
        # Only what the model reads: documents with and without the other may be mixed in a stream.
        return replace(record, features=None) if n_features is None else replace(record, text=None)

    def _found_layout(self, row: dict[str, object]) -> Columns | Fields:
        """Return the columns of the training where the first row has them; else they are detected."""
        columns, options = self.settings.columns, self.settings.options
        names = list(row) if self._is_json else self._names
        if columns is not None and is_table(names, columns, with_labels=False):
            return columns
        known = options.fields
        if self._is_json and not options.labels:  # the first row may have no labels
            names = list(
                dict.fromkeys([*names, *(known.labels if known is not None and known.labels else ("labels",))])
            )
        sample = ColumnSample(self.path, names, lambda columns, n: [[row.get(name) for name in columns]])
        fields = detect_fields(sample, options)
        is_trained = known is not None and fields.labels == known.labels
        if fields.label_separator is None and options.label_separator is None and not is_trained:
            return replace(fields, label_separator=SEPARATOR)  # one row does not show it
        return fields


def _cells(
    path: str | Path, numbered: Iterator[tuple[int, str]], dialect: Dialect
) -> Iterator[tuple[Location, list[str] | DataError]]:
    """Yield the cells of each row below a header; an error in place of a row that cannot be read."""
    reader = dialect.reader(text for _, text in numbered)
    while True:
        location = Location(path, reader.line_num + 2)
        try:
            cells = read_row(reader, location)
        except DataError as error:
            if not isinstance(error.__cause__, csv.Error):  # of the file, which cannot be read on
                raise
            yield location, error
            continue
        if cells is None:
            return
        yield location, cells


def _decoded(line: bytes, encoding: str, location: Location) -> str:
    try:
        text = line.decode(encoding)
    except UnicodeError:
        raise location.expected(f"{encoding} text", "the line cannot be decoded", "correct it") from None
    return text.removeprefix("\ufeff") if location.line == 1 else text


def _is_replaced(path: str | Path, descriptor: int, position: int) -> bool:
    """Return whether another file took the place of an open one, or it was cut off."""
    try:
        at_path, opened = os.stat(path), os.fstat(descriptor)
    except FileNotFoundError:
        return True
    return not os.path.samestat(at_path, opened) or opened.st_size < position
