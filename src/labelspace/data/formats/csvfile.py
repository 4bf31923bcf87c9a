r"""CSV and TSV with a header; delimiter, quotes and encoding are detected if they are not given.

The dialect is the one in which most of the first rows have as many cells as the header. Of equal ones, the one with the
most cells is taken, and then the first of comma, semicolon, tab and pipe. A cell of labels has names separated by one
mark, or is a JSON list of names or ids.
"""

import csv
import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from labelspace.data.archives import is_data_file
from labelspace.data.files import UTF_8, lines, too_long, without_blank_end, writing_text
from labelspace.data.formats.base import RowFormat
from labelspace.data.label_separator import SEPARATORS
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Label, Location, Rows, is_json, record_fields, to_records
from labelspace.types import Dataset
from labelspace.types.limits import MAX_LINE_BYTES

DELIMITERS = (",", ";", "\t", "|")
HEAD_ROWS = 200  # a head of fewer lines is a whole file, so that an unclosed quote in it is an error of the dialect
DELIMITER_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)  # a first line that names the delimiter
_MAX_CELL = 2**31 - 1  # the default is 128 KiB, less than a long document; this fits a C long on all platforms
# From so many the dialect is detected: more cost time, fewer may not show the quotes.
_HEAD_LINES, _HEAD_CHARACTERS = 1000, 2**18
NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe", " ": "space"}


@dataclass(frozen=True)
class Dialect:
    """How the cells of a row are separated and quoted."""

    delimiter: str = ","
    quote: str | None = '"'  # None where quotes are text
    escape: str | None = None  # None where a quote in a quoted cell is doubled

    def reader(self, lines: Iterable[str], strict: bool = True) -> Any:  # noqa: ANN401 - csv has no type for it
        """Return a reader of the cells of lines; unless ``strict``, an unclosed quote swallows the rest of a file."""
        style: dict[str, Any] = {"quotechar": self.quote, "escapechar": self.escape, "doublequote": self.escape is None}
        style["quoting"] = csv.QUOTE_NONE if self.quote is None else csv.QUOTE_MINIMAL
        return csv.reader(lines, delimiter=self.delimiter, strict=strict, **style)

    def __str__(self) -> str:
        parts = [f"{NAMES.get(self.delimiter, repr(self.delimiter))}-separated"]
        if self.quote is None:
            parts.append("quotes are text")
        elif self.quote != '"':
            parts.append(f"cells quoted by {self.quote}")
        if self.escape is not None:
            parts.append("quotes escaped by a backslash")
        return ", ".join(parts)


def detect_dialect(head: Sequence[str], delimiter: str | None = None) -> Dialect:
    r"""Detect the dialect of the first lines of a file; ``delimiter`` is given if it is known.

    >>> detect_dialect(["title;tags\n", "Bread, rye;a,b\n"]).delimiter
    ';'
    """
    best = Dialect(delimiter or ",")
    best_fit = (0.0, 0, 0)
    for mark in DELIMITERS if delimiter is None else (delimiter,):
        for rank, (quote, escape) in enumerate(_quotes(mark, head)):
            found = Dialect(mark, quote, escape)
            share, n_cells = _fit(found, head)
            fit = (share, n_cells, -rank)
            if fit > best_fit and (n_cells > 1 or delimiter is not None):
                best, best_fit = found, fit
    return best


def _quotes(delimiter: str, head: Sequence[str]) -> Iterator[tuple[str | None, str | None]]:
    """Return the quotes and escapes that the first lines may have.

    Only a tab is tried without quotes: cells that may hold the other delimiters need them.
    """
    yield '"', None
    if any('\\"' in line for line in head):
        yield '"', "\\"
    if any(line.startswith("'") for line in head[:2]):
        yield "'", None
    if delimiter == "\t":
        yield None, None


def _fit(dialect: Dialect, head: Sequence[str]) -> tuple[float, int]:
    """Return the share of rows with as many cells as the header, and that number; 0 if the rows cannot be read."""
    rows = list(_head_rows(dialect, head))
    if not rows:
        return 0.0, 0
    width = len(rows[0])
    return sum(len(row) == width for row in rows) / len(rows), width


def _head_rows(dialect: Dialect, head: Sequence[str]) -> Iterator[list[str]]:
    reader = dialect.reader(head)
    reached = 0
    try:
        for row in reader:
            if row:
                yield row
            reached = reader.line_num
    except csv.Error:
        # The head may end within a quoted cell; an error before that is one of the dialect.
        if len(head) - reached > HEAD_ROWS // 2 or len(head) < HEAD_ROWS:
            yield []


def read_dialect(path: str | Path, encoding: str, delimiter: str | None = None) -> Dialect:
    """Detect the dialect of a file from its first lines."""
    head, size = [], 0
    for _, line in islice(lines(path, encoding), _HEAD_LINES):
        head.append(line)
        size += len(line)
        if size > _HEAD_CHARACTERS:
            break
    csv.field_size_limit(_MAX_CELL)
    named = DELIMITER_LINE.fullmatch(head[0]) if head else None
    return detect_dialect(head, delimiter) if named is None else detect_dialect(head[1:], delimiter or named[1])


def rows(path: str | Path, options: ReadOptions) -> AbstractContextManager[Rows]:
    """Open the rows of a file as the options say, or as is detected; the dialect of a pipe is that of its header."""
    encoding = options.encoding or UTF_8
    if is_data_file(Path(path)):
        return open_csv(path, encoding, read_dialect(path, encoding, options.delimiter))
    return open_csv(path, encoding, None if options.delimiter is None else Dialect(options.delimiter))


@contextmanager
def open_csv(path: str | Path, encoding: str = UTF_8, dialect: Dialect | None = None) -> Iterator[Rows]:
    """Open the rows of a file; cells are strings. Without a dialect, that of the header is detected."""
    texts = lines(path, encoding)
    first = next(texts, None)
    named = None if first is None else DELIMITER_LINE.fullmatch(first[1])
    if named is not None:
        first = next(texts, None)
    dialect = dialect or detect_dialect([] if first is None else [first[1]], None if named is None else named[1])
    cells = _cells(path, texts if first is None else chain([first], texts), dialect, 0 if named is None else 1)
    location, names = next(cells, (Location(path, 1), []))
    if not names and any(row for _, row in cells):
        raise location.expected("a header with the names of the columns", "the line is blank", "remove the line")
    header = [name.strip() for name in names]
    mark = NAMES.get(dialect.delimiter, repr(dialect.delimiter))
    remedy = f"quote cells that contain a {mark} or quotes, or name another delimiter"

    def read(columns: Collection[str]) -> Iterator[tuple[Location, dict[str, object]]]:
        duplicates = [name for name in columns if header.count(name) > 1]
        if duplicates:
            raise Location(path, 1).expected("unique columns", f"{duplicates[0]!r} occurs twice", "rename one of them")
        positions = [(name, header.index(name)) for name in dict.fromkeys(columns) if name in header]
        rule = f"{len(header)} cells as in the header"
        for location, row in without_blank_end(cells, lambda row: not row[1]):
            if not row:
                raise location.expected(rule, "the line is blank", "remove the line")
            if len(row) != len(header):
                raise location.expected(rule, f"there are {len(row)}", remedy, options=["delimiter"])
            yield location, {name: row[position] for name, position in positions}

    yield Rows(lambda: header, read)


def _cells(
    path: str | Path, numbered: Iterator[tuple[int, str]], dialect: Dialect, before: int
) -> Iterator[tuple[Location, list[str]]]:
    """Return the cells of each row, with the line on which the row starts; ``before`` lines precede the header."""
    csv.field_size_limit(_MAX_CELL)
    limit = MAX_LINE_BYTES.value
    location = Location(path, before + 1)
    size = 0  # of the row so far

    def texts() -> Iterator[str]:
        nonlocal size
        for _, text in numbered:
            size += len(text)
            if size > limit:
                raise too_long(path, location.line)
            yield text

    reader = dialect.reader(texts())
    while True:
        location = Location(path, before + reader.line_num + 1)
        size = 0
        cells = read_row(reader, location)
        if cells is None:
            return
        yield location, cells


def read_row(reader: Iterator[list[str]], location: Location) -> list[str] | None:
    """Return the next cells of a reader, or None at its end; raise DataError for a malformed row."""
    try:
        return next(reader, None)
    except csv.Error as error:
        problem = f"the row cannot be read ({error})"
        raise location.expected("CSV", problem, "double each quote inside a quoted cell") from error


def format_labels(labels: Sequence[Label]) -> str:
    """Return the cell for some labels: a JSON list if a reader could take plain names for others.

    >>> format_labels(["red", "green"]), format_labels(["a|b"]), format_labels([3])
    ('red|green', '["a|b"]', '[3]')
    """
    names = [name for name in labels if isinstance(name, str)]
    plain = [name for name in names if not is_json(name) and not any(mark in name for mark in SEPARATORS)]
    return "|".join(plain) if len(plain) == len(labels) else json.dumps(list(labels), ensure_ascii=False)


def write(path: str | Path, dataset: Dataset, delimiter: str = ",") -> None:
    """Write the documents of a data set."""
    fields = record_fields(dataset)
    with writing_text(path) as file:
        # The default line end \r\n: only then does every Python version quote a single \r or \n in a cell.
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(fields)
        for record in to_records(dataset):
            cells = {name: getattr(record, name) for name in fields} | {"labels": format_labels(record.labels)}
            writer.writerow(cells.values())


CSV = RowFormat("csv", "CSV", (".csv",), write, rows=rows)
TSV = RowFormat("tsv", "TSV", (".tsv", ".tab"), partial(write, delimiter="\t"), rows=rows)
