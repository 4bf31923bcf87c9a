"""CSV and TSV with a header; delimiter, quotes and encoding are detected if they are not given.

A cell of labels has names separated by one mark, or is a JSON list of names or ids.
"""

import csv
import json
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path

from labelspace.data.archives import is_data_file
from labelspace.data.detection.dialect import NAMES, Dialect, detect_dialect
from labelspace.data.detection.label_separator import SEPARATORS
from labelspace.data.files import UTF_8, lines, too_long, without_blank_end, writing_text
from labelspace.data.formats.base import RowFormat
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Label, Location, Rows, record_fields, to_records
from labelspace.errors import DataError
from labelspace.types import Dataset
from labelspace.types.limits import MAX_LINE_BYTES

_MAX_CELL = 2**31 - 1  # the default is 128 KiB, less than a long document; this fits a C long on all platforms
DELIMITER_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)  # a first line that names the delimiter
_HEAD_LINES, _HEAD_CHARACTERS = (
    1000,
    2**18,
)  # from which the dialect is detected; more cost time, fewer may not show the quotes


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
    yield Rows(lambda: header, partial(_rows, path, header, cells, dialect))


def _rows(
    path: str | Path,
    header: Sequence[str],
    rows: Iterator[tuple[Location, list[str]]],
    dialect: Dialect,
    columns: Collection[str],
) -> Iterator[tuple[Location, dict[str, object]]]:
    duplicates = [name for name in columns if header.count(name) > 1]
    if duplicates:
        raise DataError(f"{path}:1: expected unique columns, but {duplicates[0]!r} occurs twice; rename one of them")
    positions = [(name, header.index(name)) for name in dict.fromkeys(columns) if name in header]
    for location, cells in without_blank_end(rows, lambda row: not row[1]):
        if not cells:
            raise location.expected(f"{len(header)} cells as in the header", "the line is blank", "remove the line")
        if len(cells) != len(header):
            rule, problem = f"{len(header)} cells as in the header", f"there are {len(cells)}"
            mark = NAMES.get(dialect.delimiter, repr(dialect.delimiter))
            remedy = f"quote cells that contain a {mark} or quotes, or name another delimiter"
            raise location.expected(rule, problem, remedy, options=["delimiter"])
        yield location, {name: cells[position] for name, position in positions}


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
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            problem = f"the row cannot be read ({error})"
            raise location.expected("CSV", problem, "double each quote inside a quoted cell") from error
        yield location, cells


def format_labels(labels: Sequence[Label]) -> str:
    """Return the cell for some labels: a JSON list if a reader could take plain names for others.

    >>> format_labels(["red", "green"]), format_labels(["a|b"]), format_labels([3])
    ('red|green', '["a|b"]', '[3]')
    """
    names = [name for name in labels if isinstance(name, str)]
    plain = [name for name in names if not name.startswith("[") and not any(mark in name for mark in SEPARATORS)]
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


CSV = RowFormat("csv", "CSV", (".csv",), rows=rows, write=write)
TSV = RowFormat("tsv", "TSV", (".tsv", ".tab"), rows=rows, write=partial(write, delimiter="\t"))
