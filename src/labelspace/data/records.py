"""A document as the text formats give it, held against what a record may be."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from labelspace.errors import DataError

LARGEST_ID = 2**31 - 2
FIELDS = ("id", "text", "features", "labels")


@dataclass(frozen=True, slots=True)
class Record:
    """One document: a text, or ready-made features as ``"3:0.5 17:1"``, or both; labels are names or ids.

    >>> Record("a", "red apple", None, ("fruit",)).labels
    ('fruit',)
    """

    id: str
    text: str | None
    features: str | None = None
    labels: tuple[str | int, ...] = ()
    line: int = 0  # of the file, from 1; in Parquet the row


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a file something stands, for messages."""

    path: str | Path
    line: int

    def expected(self, rule: str, found: str, remedy: str) -> DataError:
        """The error for something else than the rule asks for."""
        return DataError(f"{self.path}:{self.line}: expected {rule}, but {found}; {remedy}")


@dataclass(frozen=True)
class Rows:
    """An open file of rows: what its columns are called, and the rows with those of them that are asked for."""

    names: Callable[[], Sequence[str]]
    read: Callable[[Collection[str]], Iterator[tuple[Place, dict[str, object]]]]


def to_record(row: Mapping[str, object], number: int, place: Place, with_labels: bool = True) -> Record:
    """Check one row of fields; ``number`` (from 0) is its id where it has none, a missing field and null are the same.

    >>> to_record({"text": "red apple", "labels": ["fruit"]}, 0, Place("a.jsonl", 1))
    Record(id='0', text='red apple', features=None, labels=('fruit',), line=1)
    """
    text, features = row.get("text"), row.get("features")
    if text is None and features is None:
        found = next((f"{key!r} is null" for key in ("text", "features") if key in row), "there is neither")
        raise place.expected("'text' (a string) or 'features'", found, "give every document one of them")
    if text is not None and not isinstance(text, str):
        raise place.expected("'text' to be a string", f"it is {_shown(text)}", "write it in quotes")
    if features is not None and not isinstance(features, str):
        features = _features_string(features, place)
    labels = _checked_labels(row.get("labels"), place) if with_labels else ()
    return Record(checked_id(row.get("id"), number, place), text, features, labels, place.line)


def checked_id(value: object, number: int, place: Place) -> str:
    """The id of a row; its number where it has none."""
    if value is None:
        return str(number)
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise place.expected("'id' to be a string or a whole number", f"it is {_shown(value)}", "write it as a string")


def _features_string(value: object, place: Place) -> str:
    if not isinstance(value, Mapping):
        raise place.expected(
            '\'features\' as "3:0.5 17:1" or {"3": 0.5}', f"it is {_shown(value)}", "write index:value pairs"
        )
    for key, number in value.items():
        if not (isinstance(key, str) and key.isascii() and key.isdigit()):
            raise place.expected("whole numbers as keys of 'features'", f"one is {_shown(key)}", "write the index")
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise place.expected(f"a number for feature {key}", f"it is {_shown(number)}", "write a number")
    return " ".join(f"{key}:{number!r}" for key, number in value.items())


def _checked_labels(value: object, place: Place) -> tuple[str | int, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise place.expected("'labels' to be a list", f"it is {_shown(value)}", 'write ["name", ...] or [id, ...]')
    return distinct_labels(value, place)


def distinct_labels(values: Iterable[object], place: Place) -> tuple[str | int, ...]:
    """The labels of one document, each once: names (not empty) or ids (from 0).

    >>> distinct_labels(["b", "a", "b"], Place("a.jsonl", 1))
    ('b', 'a')
    """
    kept: dict[str | int, None] = {}
    for value in values:
        if isinstance(value, str):
            if not value:
                raise place.expected("label names", "one is empty", "remove it or give it a name")
        elif isinstance(value, bool) or not isinstance(value, int):
            raise place.expected(
                "labels to be names or ids", f"one is {_shown(value)}", "write a string or a whole number"
            )
        elif not 0 <= value <= LARGEST_ID:
            raise place.expected(f"a label id from 0 to {LARGEST_ID}", f"one is {value}", "correct it, or write a name")
        kept[value] = None
    return tuple(kept)


def _shown(value: object) -> str:
    """A value for a message: short, in JSON's words where they differ from Python's."""
    words = {None: "null", True: "true", False: "false"}
    if value is None or isinstance(value, bool):
        return words[value]
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:37] + "..."
