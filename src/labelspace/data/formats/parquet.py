"""Parquet with the columns ``text`` or ``features``, and optionally ``id`` and ``labels``, or others; needs pyarrow."""

import os
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

from labelspace.data.archives import compression, zip_archive
from labelspace.data.files import reading, too_long, writing
from labelspace.data.formats.base import RowFormat
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Location, Rows, is_numbered, record_fields, to_records
from labelspace.errors import DataError, require
from labelspace.types import Dataset
from labelspace.types.limits import MAX_LINE_BYTES

EXTRA = "parquet"
Arrow = Any  # pyarrow has no types
_BATCH = 4096  # rows in memory at once, fewer where they are long
_MAX_UNPACKED = 2**30, 100  # bytes of a compressed file on disk, or times its own size


@contextmanager
def open_parquet(path: str | Path, options: ReadOptions | None = None) -> Iterator[Rows]:
    """Open the rows of a file, in batches; only the requested columns are read."""
    parquet = require("pyarrow.parquet", EXTRA)
    with _seekable(path) as file, refusing_damage(path):
        table = parquet.ParquetFile(file)
        yield Rows(lambda: table.schema_arrow.names, partial(_rows, path, table))


@contextmanager
def refusing_damage(path: str | Path) -> Iterator[None]:
    """Turn failures to read Parquet into a DataError."""
    arrow = require("pyarrow", EXTRA)
    try:
        yield
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).split("\n")[0]
        problem = f"cannot be read as one ({reason})"
        raise DataError(f"{path} must be a Parquet file, but {problem}; write it again") from error


def _rows(path: str | Path, table: Arrow, columns: Collection[str]) -> Iterator[tuple[Location, dict[str, object]]]:
    twice = [name for name in columns if table.schema_arrow.names.count(name) > 1]
    if twice:
        raise DataError(f"{path}: expected unique columns, but {twice[0]!r} occurs twice; rename one of them")
    present = [name for name in table.schema_arrow.names if name in columns]
    rows = min(_BATCH, max(MAX_LINE_BYTES.value // max(_row_bytes(path, table.metadata, columns), 1), 1))
    batches = (batch.to_pylist() for batch in table.iter_batches(rows, columns=present))
    for number, row in enumerate(chain.from_iterable(batches), start=1):
        yield Location(path, number), row


def _row_bytes(path: str | Path, metadata: Arrow, columns: Collection[str]) -> int:
    """Return the bytes of a row of some columns, in the row group with the longest rows; too long a row is an error."""
    longest, before = 0, 0
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        chunks = [group.column(i) for i in range(group.num_columns)]
        size = sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema.split(".")[0] in columns)
        mean = size // max(group.num_rows, 1)
        if mean > MAX_LINE_BYTES.value:
            raise too_long(path, before + 1)
        longest = max(longest, mean)
        before = before + group.num_rows
    return longest


@contextmanager
def _seekable(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for Parquet, which needs a seekable one: a compressed file or a pipe is copied to disk first."""
    with reading(path) as file:
        archive = zip_archive(path)
        if archive is None and not compression(path) and file.seekable():
            yield file
            return
        limit = max(_MAX_UNPACKED[0], _MAX_UNPACKED[1] * os.path.getsize(path if archive is None else archive[0]))
        with tempfile.TemporaryFile() as unpacked:
            while block := file.read(2**20):
                if unpacked.tell() > limit:
                    raise DataError(f"{path} must unpack to at most {limit} bytes, but has more; unpack it first")
                unpacked.write(block)
            unpacked.seek(0)
            yield unpacked


def write(path: str | Path, dataset: Dataset) -> None:
    """Write the documents of a data set, in batches."""
    arrow, parquet = require("pyarrow", EXTRA), require("pyarrow.parquet", EXTRA)
    fields = record_fields(dataset)
    label = arrow.int64() if is_numbered(dataset.labels) else arrow.string()
    schema = arrow.schema([(name, arrow.list_(label) if name == "labels" else arrow.string()) for name in fields])
    records = to_records(dataset)
    with writing(path) as file, parquet.ParquetWriter(file, schema) as writer:
        while batch := list(islice(records, _BATCH)):
            columns: list[list[Any]] = [[getattr(record, name) for record in batch] for name in fields]
            writer.write_batch(arrow.record_batch(columns, schema=schema))


FORMAT = RowFormat("parquet", "Parquet", (".parquet",), write, rows=open_parquet, is_text=False)
