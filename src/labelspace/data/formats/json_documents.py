"""Documents as JSON: lines ``{"id": ..., "text": ..., "labels": [...]}``, or one array of such objects.

In place of the text there may be ``features``. The array ``[{"text": ..., "labels": [...]}, ...]`` may also be the only
list of objects of an object.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from labelspace.data.archives import is_data_file
from labelspace.data.files import UTF_8, lines, reading, without_blank_end, writing_text
from labelspace.data.formats import bioasq
from labelspace.data.formats.base import RowFormat
from labelspace.data.formats.json_stream import JsonStream, documents
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Location, Rows, parse_object, record_fields, to_records, with_head
from labelspace.types import Dataset
from labelspace.types.limits import MAX_LINE_BYTES

HEAD, HEAD_CHARACTERS = 1000, 2**18  # from which the columns are taken
_ARRAY = re.compile(r"\[\s*(\{|\]|$)")
_OBJECT = re.compile(r'\{\s*("[^"\\]*"\s*:\s*("[^"\\]*"|[-+.\w]+)\s*,\s*)*"[^"\\]*"\s*:\s*\[\s*\{')


@contextmanager
def open_jsonl(path: str | Path, options: ReadOptions) -> Iterator[Rows]:
    """Open the rows of JSON lines, one per line; the columns of a pipe are those of its first line."""
    numbered = without_blank_end(lines(path, options.encoding or UTF_8), lambda line: not line[1].strip())
    yield json_rows(path, numbered, HEAD if is_data_file(Path(path)) else 1)


def json_rows(path: str | Path, numbered: Iterable[tuple[int, str]], n_head: int = 1) -> Rows:
    """Return the rows of numbered lines, with all fields.

    The columns are those of the first ``n_head`` lines, or of fewer if they are long.
    """
    size = 0  # characters of the lines read so far

    def parsed() -> Iterator[tuple[Location, dict[str, object]]]:
        nonlocal size
        for line, text in numbered:
            size += len(text)
            location = Location(path, line)
            yield location, parse_object(text, location)

    return with_head(parsed(), lambda n: n < n_head and size < min(MAX_LINE_BYTES.value, HEAD_CHARACTERS))


@contextmanager
def open_json(path: str | Path, options: ReadOptions) -> Iterator[Rows]:
    """Open the rows of an array, read as they are needed; the columns are those of the first rows."""
    with reading(path) as file:
        stream = JsonStream(path, file, options.encoding)
        yield with_head(documents(stream), lambda n: n < HEAD and stream.n_read < MAX_LINE_BYTES.value)


def recognizes(head: Sequence[str]) -> bool:
    """Return whether the lines are the start of an array of documents, and not of JSON lines or of BioASQ.

    >>> recognizes(['[{"text": "red apple",', '  "labels": []}]']), recognizes(['{"text": "red apple"}'])
    (True, False)
    """
    text = "\n".join(head).lstrip()
    if bioasq.recognizes(head):
        return False
    return _ARRAY.match(text) is not None or (_OBJECT.match(text) is not None and not _is_row(text))


def _is_row(text: str) -> bool:
    """Return whether the first line is a row of JSON lines, whose labels may be a list of objects too."""
    try:
        row = json.loads(text.split("\n", 1)[0])
    except (ValueError, RecursionError):
        return False
    return "\n" in text.rstrip() or any(isinstance(row.get(key), str) for key in ("text", "title", "abstract"))


def _documents_as_json(dataset: Dataset) -> Iterator[str]:
    fields = record_fields(dataset)
    for record in to_records(dataset):
        yield json.dumps({name: getattr(record, name) for name in fields}, ensure_ascii=False)


def write_jsonl(path: str | Path, dataset: Dataset) -> None:
    """Write the documents of a data set, one per line."""
    with writing_text(path) as file:
        file.writelines(f"{line}\n" for line in _documents_as_json(dataset))


def write_json(path: str | Path, dataset: Dataset) -> None:
    """Write the documents of a data set as an array, one per line."""
    with writing_text(path) as file:
        separator = "["
        for line in _documents_as_json(dataset):
            file.write(f"{separator}\n{line}")
            separator = ","
        file.write("[]\n" if separator == "[" else "\n]\n")


JSONL = RowFormat("jsonl", "JSON lines", (".jsonl", ".ndjson", ".json"), write_jsonl, rows=open_jsonl)
JSON = RowFormat("json", "one JSON list", (".json",), write_json, recognizes, rows=open_json)
