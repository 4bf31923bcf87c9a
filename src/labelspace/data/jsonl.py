"""JSON lines: ``{"id": ..., "text": ..., "labels": [...]}`` a line, or ``features`` in place of the text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from labelspace.data.files import lines, without_blank_end, writing_text
from labelspace.data.listing import fields_of, records_of
from labelspace.data.records import Place, Record, to_record
from labelspace.types import Dataset


def iter_jsonl(path: str | Path, with_labels: bool = True) -> Iterator[Record]:
    """The records of a file, one line at a time."""
    kept = without_blank_end(lines(path), lambda numbered: not numbered[1].strip())
    for number, (line, text) in enumerate(kept):
        place = Place(path, line)
        yield to_record(parse_object(text, place), number, place, with_labels)


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
