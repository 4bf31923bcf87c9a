"""Rows of a file as records: the text, the labels and the id are taken from the columns that hold them."""

from collections.abc import Iterator, Mapping, Sequence

from labelspace.data.fields import split_cell
from labelspace.data.records import (
    Label,
    Location,
    Record,
    Rows,
    distinct_labels,
    parsed_list,
    shown,
    subject_label,
    to_record,
    without_brackets,
)
from labelspace.types import Fields

_TRUE = frozenset({"1", "1.0", "true"})


def field_records(rows: Rows, fields: Fields, with_labels: bool = True, first: int = 0) -> Iterator[Record]:
    """Return the documents of an open file, whose first row has the number ``first``; other columns are not read."""
    needed = [*fields.text, *(fields.labels if with_labels else ()), fields.features]
    length: int | None = None
    named = [*needed, *([] if fields.id is None else [fields.id])]
    for number, (location, row) in enumerate(rows.read(named), start=first):
        length = _check_vector(row.get(fields.features), length, location)
        standard = {
            "id": None if fields.id is None else row.get(fields.id),
            **_text(row, fields.text, location),
            **({"features": row[fields.features]} if fields.features in row else {}),
        }
        labels = row_labels(row, fields, location) if with_labels else ()
        yield to_record(standard, number, location, labels)


def _check_vector(value: object, length: int | None, location: Location) -> int | None:
    """Return the length of vectors, which must be equal; None if features are no vectors."""
    if not isinstance(value, list):
        return length
    if length is not None and len(value) != length:
        problem = f"this one has {len(value)} numbers and the first {length}"
        raise location.expected("vectors of one length", problem, "give vectors that one model made")
    return len(value)


def _text(row: Mapping[str, object], columns: Sequence[str], location: Location) -> dict[str, object]:
    """Return the text of a row under ``text``, if there is a column of texts."""
    if len(columns) == 1:
        name = columns[0]
        value = row.get(name)
        if value is not None and not isinstance(value, str):
            raise location.expected(f"{name!r} to be a string", f"it is {shown(value)}", "write it in quotes")
        return {"text": value} if name in row else {}
    parts = [row.get(name) for name in columns]
    for name, value in zip(columns, parts, strict=True):
        if value is not None and not isinstance(value, (str, int, float)):
            raise location.expected(f"{name!r} to be a string", f"it is {shown(value)}", "write it in quotes")
    return {"text": "\n".join(str(value) for value in parts if value not in (None, ""))} if columns else {}


def row_labels(row: Mapping[str, object], fields: Fields, location: Location) -> tuple[Label, ...]:
    """Return the labels of a row, each once.

    >>> row_labels({"tags": "red; green"}, Fields(labels=("tags",), label_separator=";"), Location("a.csv", 2))
    ('red', 'green')
    """
    if fields.indicators:
        return tuple(name for name in fields.labels if str(row.get(name)).strip().lower() in _TRUE)
    found: list[Label] = []
    for name in fields.labels:
        found += cell_labels(row.get(name), name, fields.label_separator, location)
    return tuple(dict.fromkeys(found))


def cell_labels(value: object, name: str, separator: str | None, location: Location) -> tuple[Label, ...]:
    """Return the labels of one cell: a list, a text with some names, an id, or a subject.

    >>> cell_labels("a|b", "labels", "|", Location("a.csv", 2)), cell_labels('["a|b"]', "labels", "|", Location("", 1))
    (('a', 'b'), ('a|b',))
    """
    if value is None or (isinstance(value, float) and value != value):  # NaN, as pandas writes what is missing
        return ()
    if isinstance(value, str):
        text = value.strip()
        if not text.startswith("["):
            names = split_cell(text, separator)
            return distinct_labels([without_brackets(name) if ":" in name else name for name in names], location)
        value = parsed_list(text, name, location)
    if isinstance(value, (int, dict)):  # not Mapping: that check takes as long as all others together
        value = [value]
    if not isinstance(value, list):
        rule = f"{name!r} to be a list or a text"
        raise location.expected(rule, f"it is {shown(value)}", 'write ["name", ...] or [id, ...]')
    return distinct_labels(
        [subject_label(item, location) if isinstance(item, dict) else item for item in value], location
    )
