r"""Files of label edits: CSV or TSV with a header, or JSON lines; a row is an edit.

The columns are ``label``; ``new`` for a new name; ``into`` for the label that it is merged into; ``alt`` for synonyms,
in CSV with ``|`` between several; ``description``; and ``action``, where a file has edits of several kinds.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from labelspace.data.archives import without_compression
from labelspace.data.files import lines
from labelspace.data.formats import csvfile
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Location
from labelspace.errors import DataError

COLUMNS = ("action", "label", "new", "into", "alt", "description")
SEPARATOR = "|"


class EditRow(NamedTuple):
    """A row of a file of edits: the text of each column that is not empty, and the synonyms."""

    where: Location
    given: Mapping[str, str]
    alt: tuple[str, ...]


def read_edit_rows(path: Path) -> list[EditRow]:
    """Return the edits of a file, which may be compressed."""
    ending = Path(without_compression(path.name)).suffix.lower()
    if ending not in (".csv", ".tsv", ".jsonl"):
        raise DataError(f"a file of label edits must be .csv, .tsv or .jsonl, but is {path.name!r}; convert it")
    rows = list(_json_rows(path) if ending == ".jsonl" else _table_rows(path))
    if not rows:
        raise DataError(f"a file of label edits must have a row, but {path} has none; write one edit per row")
    return rows


def _table_rows(path: Path) -> Iterator[EditRow]:
    with csvfile.rows(path, ReadOptions()) as table:
        header = list(table.names())
        _check_columns(Location(path, 1), header)
        for where, cells in table.read(header):
            given = {name: " ".join(str(cell).split()) for name, cell in cells.items()}
            alt = (name.strip() for name in given.pop("alt", "").split(SEPARATOR))
            yield _row(where, given, tuple(filter(None, alt)))


def _json_rows(path: Path) -> Iterator[EditRow]:
    for number, line in lines(path):
        if not line.strip():
            continue
        where = Location(path, number)
        fields = _parsed(where, line)
        _check_columns(where, fields)
        alt = fields.pop("alt", None) or []
        for value in (*fields.values(), *(alt if isinstance(alt, list) else [0])):
            if value is not None and not isinstance(value, str):
                raise where.expected("texts, and a list of texts as 'alt'", f"found {str(value)[:60]!r}", "correct it")
        yield _row(where, {name: value or "" for name, value in fields.items()}, tuple(alt))


def _parsed(where: Location, line: str) -> dict[str, Any]:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise where.expected("a JSON object", f"found {line.strip()[:60]!r}", "write one edit per line")
    return fields


def _check_columns(where: Location, names: object) -> None:
    listed = ", ".join(COLUMNS)
    found = list(map(str, names)) if isinstance(names, (list, dict)) else []
    if "label" not in found:
        raise where.expected("'label'", f"there is: {', '.join(found)[:80] or 'nothing'}", f"name the columns {listed}")
    unknown = [name for name in found if name not in COLUMNS]
    if unknown:
        raise where.expected(f"only {listed}", f"there is {unknown[0][:60]!r}", "rename it, or leave it out")


def _row(where: Location, given: Mapping[str, str], alt: tuple[str, ...]) -> EditRow:
    return EditRow(where, {name: value for name, value in given.items() if value}, alt)
