"""CSV (RFC 4180, comma, UTF-8) with a header: ``text`` or ``features``, and optionally ``id`` and ``labels``.

The labels are names separated by ``|``, or a JSON list of names or ids.
"""

import csv
import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from labelspace.data.dataset_records import record_fields, to_records
from labelspace.data.files import lines, too_long, without_blank_end, writing_text
from labelspace.data.records import FIELDS, Label, Location, Record, Rows, distinct_labels, to_record
from labelspace.errors import DataError
from labelspace.limits import MAX_LINE_BYTES
from labelspace.types import Dataset

_MAX_CELL = 2**31 - 1  # the default is 128 KiB, less than a long document; this fits a C long on all platforms


@contextmanager
def open_csv(path: str | Path) -> Iterator[Rows]:
    """The rows of a file; cells are strings."""
    cells = _cells(path)
    header = [name.strip() for name in next(cells, (None, []))[1]]
    yield Rows(lambda: header, partial(_rows, path, header, cells))


def _rows(
    path: str | Path, header: Sequence[str], rows: Iterator[tuple[Location, list[str]]], columns: Collection[str]
) -> Iterator[tuple[Location, dict[str, object]]]:
    duplicates = [name for name in columns if header.count(name) > 1]
    if duplicates:
        raise DataError(f"{path}:1: expected unique columns, but {duplicates[0]!r} occurs twice; rename one of them")
    positions = [(name, header.index(name)) for name in columns if name in header]
    for location, cells in without_blank_end(rows, lambda row: not row[1]):
        if not cells:
            raise location.expected(f"{len(header)} cells as in the header", "the line is blank", "remove the line")
        if len(cells) != len(header):
            rule, problem = f"{len(header)} cells as in the header", f"there are {len(cells)}"
            raise location.expected(rule, problem, "quote cells that contain commas or quotes")
        yield location, {name: cells[position] for name, position in positions}


def csv_records(path: str | Path, rows: Rows, with_labels: bool = True) -> Iterator[Record]:
    """The records of a file with the standard columns; others are ignored."""
    names = rows.names()
    if "text" not in names and "features" not in names:
        listed = ", ".join(names)[:80] or "nothing"
        raise DataError(
            f"{path}:1: expected a header with a column 'text' or 'features', but it has: {listed}; "
            "name the columns in the first line, separated by commas, or choose columns with --inputs and --outputs"
        )
    for number, (location, row) in enumerate(rows.read(FIELDS)):
        if with_labels and "labels" in row:
            row["labels"] = list(parse_labels(str(row["labels"]), location))
        yield to_record(row, number, location, with_labels)


def _cells(path: str | Path) -> Iterator[tuple[Location, list[str]]]:
    """Cells of each row, with the line on which it starts."""
    csv.field_size_limit(_MAX_CELL)
    limit, location, size = MAX_LINE_BYTES.value, Location(path, 1), 0  # size: of the row so far

    def texts() -> Iterator[str]:
        nonlocal size
        for _, text in lines(path):
            size += len(text)
            if size > limit:
                raise too_long(path, location.line)
            yield text

    # strict: otherwise an unclosed quote would silently swallow the rest of the file.
    reader = csv.reader(texts(), strict=True)
    while True:
        location, size = Location(path, reader.line_num + 1), 0
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            problem = f"the row cannot be read ({error})"
            raise location.expected("CSV", problem, "double each quote inside a quoted cell") from error
        yield location, cells


def parse_labels(cell: str, location: Location) -> tuple[str | int, ...]:
    """The labels of one cell.

    >>> parse_labels("red | green", Location("a.csv", 2)), parse_labels('["a|b", "c"]', Location("a.csv", 2))
    (('red', 'green'), ('a|b', 'c'))
    """
    if not cell.strip():
        return ()
    if not cell.startswith("["):
        return distinct_labels((name.strip() for name in cell.split("|")), location)
    try:
        values: Any = json.loads(cell)
    except (ValueError, RecursionError) as error:
        rule = "'labels' that start with '[' to be a JSON list"
        raise location.expected(rule, f"they are {cell[:40]!r}", 'write ["name", ...]') from error
    return distinct_labels(values, location)


def format_labels(labels: Sequence[Label]) -> str:
    """The cell for some labels, a JSON list where plain names would be ambiguous.

    >>> format_labels(["red", "green"]), format_labels(["a|b"]), format_labels([3])
    ('red|green', '["a|b"]', '[3]')
    """
    names = [name for name in labels if isinstance(name, str)]
    plain = [name for name in names if "|" not in name and not name.startswith("[") and name == name.strip()]
    return "|".join(plain) if len(plain) == len(labels) else json.dumps(list(labels), ensure_ascii=False)


def write_csv(path: str | Path, dataset: Dataset) -> None:
    """Write the documents of a data set."""
    fields = record_fields(dataset)
    with writing_text(path) as file:
        # The default line end \r\n: only then does every Python version quote a single \r or \n in a cell.
        writer = csv.writer(file)
        writer.writerow(fields)
        for record in to_records(dataset):
            cells = {name: getattr(record, name) for name in fields} | {"labels": format_labels(record.labels)}
            writer.writerow(cells.values())
