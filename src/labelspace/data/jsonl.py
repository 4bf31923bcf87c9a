"""JSON lines: ``{"id": ..., "text": ..., "labels": [...]}`` a line, or ``features`` in place of the text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path

from labelspace.data.files import lines, without_blank_end, writing_text
from labelspace.data.listing import fields_of, records_of
from labelspace.data.records import FIELDS, Place, Record, Rows, to_record
from labelspace.types import Dataset

HEAD = 1000  # lines that say which columns there are


@contextmanager
def open_jsonl(path: str | Path) -> Iterator[Rows]:
    """The rows of a file, one line at a time."""
    yield json_rows(path, without_blank_end(lines(path), lambda numbered: not numbered[1].strip()))


def json_rows(path: str | Path, numbered: Iterable[tuple[int, str]]) -> Rows:
    """The rows of numbered lines, all fields of each; the columns are those of the first ``HEAD`` lines."""
    places = ((Place(path, line), text) for line, text in numbered)
    rows = ((place, parse_object(text, place)) for place, text in places)
    head: list[tuple[Place, dict[str, object]]] = []

    def names() -> list[str]:
        head.extend(islice(rows, HEAD - len(head)))
        return list(dict.fromkeys(name for _, row in head for name in row))

    return Rows(names, lambda columns: chain(head, rows))


def jsonl_records(path: str | Path, rows: Rows, with_labels: bool = True) -> Iterator[Record]:
    """The records of a file whose rows have the usual fields."""
    for number, (place, row) in enumerate(rows.read(FIELDS)):
        yield to_record(row, number, place, with_labels)


def parse_object(text: str, place: Place) -> dict[str, object]:
    """One line as a JSON object.

    >>> parse_object('{"label": "cat"}', Place("labels.jsonl", 1))
    {'label': 'cat'}
    """
    text = text.rstrip("\r\n")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        if not text.strip():
            raise place.expected("a JSON object", "the line is blank", "remove the line") from error
        reason = f"{error.msg}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else error
        raise place.expected("a JSON object", f"the line is not JSON ({reason})", "correct the line") from error
    if not isinstance(value, dict):
        raise place.expected("a JSON object", f"the line holds a {type(value).__name__}", "write {...} on every line")
    if "\\ud" in text or "\\uD" in text:
        _refuse_lone_surrogates(value, place)
    return value


def _refuse_lone_surrogates(value: object, place: Place) -> None:
    """JSON can write half a character as an escape, which no text file can hold and no later step could encode."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        found = f"there is the lone surrogate {error.object[error.start]!r}"
        raise place.expected("valid Unicode", found, "remove or complete the escape") from error


def write_jsonl(path: str | Path, dataset: Dataset) -> None:
    """Write the documents of a data set, one line each."""
    fields = fields_of(dataset)
    with writing_text(path) as file:
        for record in records_of(dataset):
            row = {name: getattr(record, name) for name in fields}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
