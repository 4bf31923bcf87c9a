"""Documents as they are read from a file, one by one or in batches, and their validation; data sets as records."""

import ast
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from typing import NamedTuple

import numpy as np

from labelspace.data.sparse_rows import format_features, parse_features
from labelspace.errors import DataError
from labelspace.types import Csr, Dataset, LabelSpace
from labelspace.types.limits import MAX_LINE_BYTES

MAX_LABEL_ID = 2**31 - 2
FIELDS = ("id", "text", "features", "labels")
_JSON = re.compile(r"""\s*(\[|\{\s*["'}])""")  # a list, or an object such as {"label": "cat"}
_ENTITY = re.compile(r"&#?\w{1,10};")  # its semicolon separates nothing


class Subject(NamedTuple):
    """A label that a file names by URI and name."""

    uri: str
    name: str


Label = str | int | Subject
"""A label of a document: its name or URI, its id from 0, or both URI and name."""


@dataclass(frozen=True, slots=True)
class Record:
    """One document: a text, or features as ``"3:0.5 17:1"``, or both; labels are names or URIs, ids, or subjects.

    >>> Record("a", "red apple", None, ("fruit",)).labels
    ('fruit',)
    """

    id: str
    text: str | None
    features: str | None = None
    labels: tuple[Label, ...] = ()
    line: int = 0  # of the file, from 1; in Parquet the row


@dataclass(frozen=True, slots=True)
class Location:
    """A line of a file, for error messages."""

    path: str | Path
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"

    def expected(self, rule: str, problem: str, remedy: str, options: Sequence[str] = ()) -> DataError:
        """Return the error for a line that violates the rule; ``options`` are named in the remedy."""
        return DataError(f"{self}: expected {rule}, but {problem}; {remedy}", options=options)


@dataclass(frozen=True)
class Rows:
    """An open file of rows: its column names, and a reader of the requested columns."""

    names: Callable[[], Sequence[str]]
    read: Callable[[Collection[str]], Iterator[tuple[Location, dict[str, object]]]]


def with_head(rows: Iterator[tuple[Location, dict[str, object]]], needs_more: Callable[[int], bool]) -> Rows:
    """Return rows whose columns are those of the first ones, read while ``needs_more(number of rows read)``."""
    head: list[tuple[Location, dict[str, object]]] = []

    def names() -> list[str]:
        while needs_more(len(head)) and (row := next(rows, None)) is not None:
            head.append(row)
        return list(dict.fromkeys(name for _, row in head for name in row))

    return Rows(names, lambda columns: chain(head, rows))


def parse_object(text: str, location: Location) -> dict[str, object]:
    """Return one line as a JSON object.

    >>> parse_object('{"label": "cat"}', Location("labels.jsonl", 1))
    {'label': 'cat'}
    """
    text = text.rstrip("\r\n")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        if not text.strip():
            raise location.expected("a JSON object", "the line is blank", "remove the line") from error
        reason = "it is nested too deeply, or a number is too long"
        if isinstance(error, json.JSONDecodeError):
            reason = f"{error.msg}, column {error.colno}"
        raise location.expected("a JSON object", f"the line is not JSON ({reason})", "correct the line") from error
    if not isinstance(value, dict):
        raise location.expected("a JSON object", f"the line is a {type(value).__name__}", "write {...} on every line")
    if "\\ud" in text or "\\uD" in text:  # perhaps half a character, which cannot be encoded as UTF-8 later
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            problem = f"there is the lone surrogate {error.object[error.start]!r}"
            raise location.expected("valid Unicode", problem, "remove or complete the escape") from error
    return value


def to_record(
    row: Mapping[str, object], number: int, location: Location, labels: tuple[Label, ...] | None = None
) -> Record:
    """Check one row; ``number`` (from 0) is the default id, and null counts as a missing field.

    Its labels are ``labels``, or those of the field.

    >>> to_record({"text": "red apple", "labels": ["fruit"]}, 0, Location("a.jsonl", 1))
    Record(id='0', text='red apple', features=None, labels=('fruit',), line=1)
    """
    text, features = row.get("text"), row.get("features")
    if text is None and features is None:
        problem = next((f"{key!r} is null" for key in ("text", "features") if key in row), "there is neither")
        raise location.expected("'text' (a string) or 'features'", problem, "give every document one of them")
    if text is not None and not isinstance(text, str):
        raise location.expected("'text' to be a string", f"it is {shown(text)}", "write it in quotes")
    if isinstance(features, str) and features.startswith("["):  # a list of numbers in a cell
        features = parsed_list(features, "features", location)
    if features is not None and not isinstance(features, str):
        features = _features_string(features, location)
    if labels is None:
        given = row.get("labels")
        if given is not None and not isinstance(given, list):
            rule = "'labels' to be a list"
            raise location.expected(rule, f"it is {shown(given)}", 'write ["name", ...] or [id, ...]')
        labels = distinct_labels(given or (), location)
    return Record(checked_id(row.get("id"), number, location), text, features, labels, location.line)


def subject_label(item: object, location: Location) -> Label:
    """Return a subject of Annif: ``{"uri": ..., "label": ...}``, only one of the two, or with further fields."""
    given = item if isinstance(item, dict) else {}
    uri, name = given.get("uri"), given.get("label", given.get("name"))
    if isinstance(uri, str) and isinstance(name, str) and uri.strip("<> ") and name.strip():
        return Subject(uri.strip("<> "), name.strip())
    for value in (uri, name):
        if isinstance(value, str) and value.strip():
            return without_brackets(value.strip()) if ":" in value else value.strip()
    remedy = 'write {"uri": "...", "label": "..."}'
    raise location.expected("subjects with a 'uri' or a 'label'", f"one is {str(item)[:60]}", remedy)


def without_brackets(name: str) -> str:
    """Return a URI without the angle brackets around it, if any.

    >>> without_brackets("<http://example.org/p1>")
    'http://example.org/p1'
    """
    return name[1:-1] if name.startswith("<") and name.endswith(">") else name


def parsed_list(text: str, name: str, location: Location) -> object:
    """Return a list written as JSON, or as Python prints it, which pandas writes."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return list(ast.literal_eval(text))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        rule = f"{name!r} that start like JSON to be JSON"
        raise location.expected(rule, f"they are {text[:40]!r}", 'write ["name", ...]') from None


def checked_id(value: object, number: int, location: Location) -> str:
    """Return the id of a row, by default its number."""
    if value is None:
        return str(number)
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise location.expected("'id' to be a string or an integer", f"it is {shown(value)}", "write it as a string")


def _features_string(value: object, location: Location) -> str:
    """Return features by their indices, or a vector of numbers, as ``"3:0.5 17:1"``."""
    if isinstance(value, list):
        value = {str(index): number for index, number in enumerate(value)}
    if not isinstance(value, Mapping):
        rule = '\'features\' as "3:0.5 17:1", {"3": 0.5} or [0.5, 1.5]'
        raise location.expected(rule, f"it is {shown(value)}", "write index:value pairs or a list of numbers")
    for key, number in value.items():
        if not (isinstance(key, str) and key.isascii() and key.isdigit()):
            raise location.expected("integers as keys of 'features'", f"one is {shown(key)}", "write the index")
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise location.expected(f"a number for feature {key}", f"it is {shown(number)}", "write a number")
    return " ".join(f"{key}:{number!r}" for key, number in value.items())


def distinct_labels(values: Iterable[object], location: Location) -> tuple[Label, ...]:
    """Return the labels of one document, each once: names (not empty, without outer spaces), or ids (from 0).

    >>> distinct_labels(["b", "a ", "b"], Location("a.jsonl", 1))
    ('b', 'a')
    """
    distinct: dict[Label, None] = {}
    for value in values:
        if isinstance(value, str):
            value = value.strip()
            if not value:
                raise location.expected("label names", "one is empty", "remove it or give it a name")
        elif isinstance(value, Subject):
            pass
        elif isinstance(value, bool) or not isinstance(value, int):
            problem = f"one is {shown(value)}"
            raise location.expected("labels to be names or ids", problem, "write a string or an integer")
        elif not 0 <= value <= MAX_LABEL_ID:
            rule = f"a label id from 0 to {MAX_LABEL_ID}"
            raise location.expected(rule, f"one is {shown(value)}", "correct it, or write a name")
        distinct[value] = None
    return tuple(distinct)


def cell_labels(value: object, name: str, separator: str | None, location: Location) -> tuple[Label, ...]:
    """Return the labels of one cell: a list, a text with some names, an id, or a subject.

    >>> cell_labels("a|b", "labels", "|", Location("a.csv", 2)), cell_labels('["a|b"]', "labels", "|", Location("", 1))
    (('a', 'b'), ('a|b',))
    """
    if value is None or (isinstance(value, float) and value != value):  # NaN, as pandas writes what is missing
        return ()
    if isinstance(value, str):
        text = value.strip()
        if not is_json(text):
            names = split_cell(text, separator)
            return distinct_labels([without_brackets(name) if ":" in name else name for name in names], location)
        value = parsed_list(text if text.startswith("[") else f"[{text}]", name, location)
    if isinstance(value, (int, dict)):  # not Mapping: that check takes as long as all others together
        value = [value]
    if not isinstance(value, list):
        rule = f"{name!r} to be a list or a text"
        raise location.expected(rule, f"it is {shown(value)}", 'write ["name", ...] or [id, ...]')
    labels = [subject_label(item, location) if isinstance(item, dict) else item for item in value]
    return distinct_labels(labels, location)


def is_json(cell: str) -> bool:
    """Return whether a cell holds a list or an object, as JSON or as Python prints it, and no names.

    >>> is_json('["red"]'), is_json('{"label": "red"}'), is_json("{red}")
    (True, True, False)
    """
    return _JSON.match(cell) is not None


def split_cell(cell: str, separator: str | None) -> list[str]:
    """Return the names in a cell, without spaces around them and without empty ones.

    >>> split_cell("red ; green;", ";"), split_cell("<python><pandas>", "><"), split_cell("R&amp;D; a", ";")
    (['red', 'green'], ['python', 'pandas'], ['R&amp;D', 'a'])
    """
    if separator is None:
        parts = [cell]
    elif separator == "><":
        parts = cell.strip().removeprefix("<").removesuffix(">").split("><")
    elif separator == ";" and "&" in cell:
        entities = [match.end() - 1 for match in _ENTITY.finditer(cell)]
        cuts = [at for at, char in enumerate(cell) if char == ";" and at not in entities]
        parts = [cell[start + 1 : stop] for start, stop in zip([-1, *cuts], [*cuts, len(cell)], strict=True)]
    else:
        parts = cell.split(separator)
    return [part for part in map(str.strip, parts) if part]


def shown(value: object) -> str:
    """Return a value for a message: shortened, and null, true and false as in JSON."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:37] + "..."


def record_fields(dataset: Dataset) -> list[str]:
    """Return the record fields that a data set has."""
    columns = {"id": dataset.ids, "text": dataset.texts, "features": dataset.X, "labels": dataset.Y}
    return [name for name in FIELDS if columns[name] is not None]


def to_records(dataset: Dataset) -> Iterator[Record]:
    """Return the documents as records; labels without names are given as ids, which keeps their order.

    >>> from scipy.sparse import csr_matrix
    >>> dataset = Dataset(csr_matrix([[1, 0]]), LabelSpace(["cat", "dog"]), texts=["it purrs"])
    >>> list(to_records(dataset))
    [Record(id='0', text='it purrs', features=None, labels=('cat',), line=0)]
    """
    n, Y, space = len(dataset), dataset.Y, dataset.labels
    names: np.ndarray = np.array([*(range(len(space)) if is_numbered(space) else space.names)], object)
    ids = map(str, range(n)) if dataset.ids is None else iter(dataset.ids)
    texts = repeat(None, n) if dataset.texts is None else iter(dataset.texts)
    features = repeat(None, n) if dataset.X is None else format_features(dataset.X)
    for row, (id_, text, pairs) in enumerate(zip(ids, texts, features, strict=True)):
        entries = slice(Y.indptr[row], Y.indptr[row + 1])
        yield Record(id_, text, pairs, tuple(names[np.sort(Y.indices[entries][Y.data[entries] != 0])]))


def is_numbered(labels: LabelSpace) -> bool:
    """Return whether the names are '0', '1', ... in order."""
    return all(name == str(i) for i, name in enumerate(labels.names))


def record_batches(records: Iterable[Record], max_records: int) -> Iterator[list[Record]]:
    """Return lists of at most ``max_records``, shorter if documents are long.

    A list ends once its documents have ``MAX_LINE_BYTES`` in all.

    >>> [len(batch) for batch in record_batches([Record("a", "it purrs")] * 5, 2)]
    [2, 2, 1]
    """
    limit = MAX_LINE_BYTES.value
    batch: list[Record] = []
    size = 0
    for record in records:
        if not isinstance(record, Record):
            raise DataError(
                f"records must be of class Record, but one is {type(record).__name__}; write Record(id, text)"
            )
        batch.append(record)
        size += len(record.text or "") + len(record.features or "")
        if len(batch) >= max_records or size >= limit:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def batch_inputs(batch: Sequence[Record], n_features: int | None, source: str) -> Csr | list[str]:
    """Return what a model reads of some records: rows of ``n_features`` features, or texts if that is None."""
    if n_features is None:
        return [_field(record, record.text, "text", source) for record in batch]
    rows = [_field(record, record.features, "features", source) for record in batch]
    return parse_features(rows, n_features, lambda row: f"{source}:{batch[row].line}")


def _field(record: Record, value: str | None, field: str, source: str) -> str:
    if value is None:
        raise Location(source, record.line).expected(f"{field!r}, which this model reads", "there is none", "add it")
    return value
