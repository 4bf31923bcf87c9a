"""JSON lines: ``{"id": ..., "text": ..., "labels": [...]}`` per line, or ``features`` instead of the text."""

import json
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from labelspace.data.archives import is_data_file
from labelspace.data.files import UTF_8, lines, without_blank_end, writing_text
from labelspace.data.formats.base import RowFormat
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Location, Rows, parse_object, record_fields, to_records, with_head
from labelspace.types import Dataset
from labelspace.types.limits import MAX_LINE_BYTES

HEAD, HEAD_CHARACTERS = 1000, 2**18  # from which the columns are taken


def rows(path: str | Path, options: ReadOptions) -> AbstractContextManager[Rows]:
    """Open the rows of a file as the options say."""
    return open_jsonl(path, options.encoding or UTF_8)


@contextmanager
def open_jsonl(path: str | Path, encoding: str = UTF_8) -> Iterator[Rows]:
    """Open the rows of a file, one per line; the columns of a pipe are those of its first line."""
    head = HEAD if is_data_file(Path(path)) else 1
    yield json_rows(path, without_blank_end(lines(path, encoding), lambda numbered: not numbered[1].strip()), head)


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


def write(path: str | Path, dataset: Dataset) -> None:
    """Write the documents of a data set, one per line."""
    fields = record_fields(dataset)
    with writing_text(path) as file:
        for record in to_records(dataset):
            row = {name: getattr(record, name) for name in fields}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


FORMAT = RowFormat("jsonl", "JSON lines", (".jsonl", ".ndjson", ".json"), rows=rows, write=write)
