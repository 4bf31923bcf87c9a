"""Parquet with the columns ``text`` or ``features``, and optionally ``id`` and ``labels`` (a list); needs pyarrow."""

import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

from labelspace.data.dataset_records import is_numbered, record_fields, to_records
from labelspace.data.files import is_gzipped, reading, writing
from labelspace.data.records import FIELDS, Location, Record, Rows, to_record
from labelspace.errors import DataError, require
from labelspace.types import Dataset

EXTRA = "parquet"
_BATCH = 4096  # rows in memory at once


@contextmanager
def open_parquet(path: str | Path) -> Iterator[Rows]:
    """The rows of a file, in batches; only the requested columns are read."""
    arrow, parquet = require("pyarrow", EXTRA), require("pyarrow.parquet", EXTRA)
    with _seekable(path) as file:
        try:
            table = parquet.ParquetFile(file)
            yield Rows(lambda: table.schema_arrow.names, partial(_rows, path, table))
        except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
            reason = str(error).split("\n")[0]
            problem = f"cannot be read as one ({reason})"
            raise DataError(f"{path} must be a Parquet file, but {problem}; write it again") from error


def _rows(
    path: str | Path,
    table: Any,  # noqa: ANN401 - pyarrow has no types
    columns: Collection[str],
) -> Iterator[tuple[Location, dict[str, object]]]:
    present = [name for name in table.schema_arrow.names if name in columns]
    batches = (batch.to_pylist() for batch in table.iter_batches(_BATCH, columns=present))
    for number, row in enumerate(chain.from_iterable(batches), start=1):
        yield Location(path, number), row


@contextmanager
def _seekable(path: str | Path) -> Iterator[BinaryIO]:
    """Parquet needs a seekable file, so a gzipped file is unpacked to disk first."""
    with reading(path) as file:
        if not is_gzipped(path):
            yield file
            return
        with tempfile.TemporaryFile() as unpacked:
            shutil.copyfileobj(file, unpacked, 2**20)
            unpacked.seek(0)
            yield unpacked


def parquet_records(path: str | Path, rows: Rows, with_labels: bool = True) -> Iterator[Record]:
    """The records of a file with the standard columns; others are ignored."""
    names = rows.names()
    if "text" not in names and "features" not in names:
        raise DataError(
            f"{path}: expected a column 'text' or 'features', but there are: {', '.join(names)[:80]}; rename one, "
            "or choose columns with --inputs and --outputs"
        )
    for number, (location, row) in enumerate(rows.read([name for name in FIELDS if with_labels or name != "labels"])):
        yield to_record(row, number, location, with_labels)


def write_parquet(path: str | Path, dataset: Dataset) -> None:
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
