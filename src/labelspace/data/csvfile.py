"""CSV (RFC 4180, comma, UTF-8) with a header: ``text`` or ``features``, and optionally ``id`` and ``labels``.

The cell of the labels is names with ``|`` between them, or a JSON list of names or ids where it starts with ``[``.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from labelspace.data.files import lines, without_blank_end, writing_text
from labelspace.data.listing import fields_of, records_of
from labelspace.data.records import FIELDS, Place, Record, Rows, distinct_labels, to_record
from labelspace.errors import DataError
from labelspace.types import Dataset

_LARGEST_CELL = 2**31 - 1  # the module's own limit is 128 KiB, less than a long document; this fits a C long everywhere


@contextmanager
def open_csv(path: str | Path) -> Iterator[Rows]:
    """The rows of a file, one at a time; cells are strings."""
    lists = _cells(path)
    header = [name.strip() for name in next(lists, (None, []))[1]]
    yield Rows(lambda: header, partial(_rows, path, header, lists))


def _rows(
    path: str | Path, header: Sequence[str], lists: Iterator[tuple[Place, list[str]]], columns: Collection[str]
) -> Iterator[tuple[Place, dict[str, object]]]:
    twice = [name for name in columns if header.count(name) > 1]
    if twice:
        raise DataError(f"{path}:1: expected each column once, but {twice[0]!r} stands twice; rename one of them")
    wanted = [(name, header.index(name)) for name in columns if name in header]
    for place, cells in without_blank_end(lists, lambda row: not row[1]):
        if not cells:
            raise place.expected(f"{len(header)} cells as in the header", "the line is blank", "remove the line")
        if len(cells) != len(header):
            raise place.expected(
                f"{len(header)} cells as in the header",
                f"there are {len(cells)}",
                "quote cells that hold commas or quotes",
            )
        yield place, {name: cells[at] for name, at in wanted}


def csv_records(path: str | Path, rows: Rows, with_labels: bool = True) -> Iterator[Record]:
    """The records of a file that has the usual columns; others are ignored."""
    names = rows.names()
    if "text" not in names and "features" not in names:
        found = ", ".join(names)[:80] or "nothing"
        raise DataError(
            f"{path}:1: expected a header with a column 'text' or 'features', but it has: {found}; "
            "name the columns in the first line, with commas between them, or say which to use: --inputs, --outputs"
        )
    for number, (place, row) in enumerate(rows.read(FIELDS)):
        if with_labels and "labels" in row:
            row["labels"] = list(parse_labels(str(row["labels"]), place))
        yield to_record(row, number, place, with_labels)


def _cells(path: str | Path) -> Iterator[tuple[Place, list[str]]]:
    """Cells of each row, with the line on which it starts."""
    csv.field_size_limit(_LARGEST_CELL)
    # strict: without it a quote left open would silently swallow the rest of the file.
    reader = csv.reader((text for _, text in lines(path)), strict=True)
    while True:
        place = Place(path, reader.line_num + 1)
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise place.expected(
                "CSV", f"the row cannot be read ({error})", "double each quote inside a quoted cell"
            ) from error
        yield place, cells


def parse_labels(cell: str, place: Place) -> tuple[str | int, ...]:
    """The labels of one cell.

    >>> parse_labels("red | green", Place("a.csv", 2)), parse_labels('["a|b", "c"]', Place("a.csv", 2))
    (('red', 'green'), ('a|b', 'c'))
    """
    if not cell.strip():
        return ()
    if not cell.startswith("["):
        return distinct_labels((name.strip() for name in cell.split("|")), place)
    try:
        values: Any = json.loads(cell)
    except (ValueError, RecursionError) as error:
        raise place.expected(
            "'labels' that start with '[' to be a JSON list", f"they are {cell[:40]!r}", 'write ["name", ...]'
        ) from error
    return distinct_labels(values, place)


def format_labels(labels: Sequence[str | int]) -> str:
    """The cell for some labels, a JSON list where plain names would not read back.

    >>> format_labels(["red", "green"]), format_labels(["a|b"]), format_labels([3])
    ('red|green', '["a|b"]', '[3]')
    """
    plain = [name for name in labels if isinstance(name, str) and _is_plain(name)]
    return "|".join(plain) if len(plain) == len(labels) else json.dumps(list(labels), ensure_ascii=False)


def _is_plain(name: str) -> bool:
    return "|" not in name and not name.startswith("[") and name == name.strip()


def write_csv(path: str | Path, dataset: Dataset) -> None:
    """Write the documents of a data set."""
    fields = fields_of(dataset)
    with writing_text(path) as file:
        # The default line end \r\n is kept: only then does every Python version quote a lone \r or \n in a cell.
        writer = csv.writer(file)
        writer.writerow(fields)
        for record in records_of(dataset):
            cells = {name: getattr(record, name) for name in fields} | {"labels": format_labels(record.labels)}
            writer.writerow(cells.values())
