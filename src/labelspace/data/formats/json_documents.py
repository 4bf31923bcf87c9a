"""One JSON array of documents, ``[{"text": ..., "labels": [...]}, ...]``, or an object with such a list."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from labelspace.data.files import reading, writing_text
from labelspace.data.formats import bioasq
from labelspace.data.formats.base import RowFormat
from labelspace.data.formats.json_stream import JsonStream, documents
from labelspace.data.formats.jsonl import HEAD
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Rows, record_fields, to_records, with_head
from labelspace.types import Dataset
from labelspace.types.limits import MAX_LINE_BYTES

_ARRAY = re.compile(r"\[\s*(\{|\]|$)")
_OBJECT = re.compile(r'\{\s*("[^"\\]*"\s*:\s*("[^"\\]*"|[-+.\w]+)\s*,\s*)*"[^"\\]*"\s*:\s*\[\s*\{')


@contextmanager
def rows(path: str | Path, options: ReadOptions) -> Iterator[Rows]:
    """Open the rows of a file, one per document, read as they are needed; the columns are those of the first rows."""
    with reading(path) as file:
        stream = JsonStream(path, file, options.encoding)
        yield with_head(documents(stream), lambda n: n < HEAD and stream.n_read < MAX_LINE_BYTES.value)


def recognizes(head: Sequence[str]) -> bool:
    """Return whether the lines are the start of such a file, and not of JSON lines or of BioASQ.

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


def write(path: str | Path, dataset: Dataset) -> None:
    """Write the documents of a data set, one per line."""
    fields = record_fields(dataset)
    with writing_text(path) as file:
        separator = "["
        for record in to_records(dataset):
            row = {name: getattr(record, name) for name in fields}
            file.write(f"{separator}\n{json.dumps(row, ensure_ascii=False)}")
            separator = ","
        file.write("[]\n" if separator == "[" else "\n]\n")


FORMAT = RowFormat("json", "one JSON list", (".json",), rows=rows, write=write, recognizes=recognizes)
