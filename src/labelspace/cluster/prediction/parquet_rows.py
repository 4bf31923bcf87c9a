"""Copy rows of a Parquet file, by path or URL, to a file on this machine."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

from labelspace.cluster.prediction.storage import opened, refusing_failures
from labelspace.errors import DataError, require

EXTRA = "parquet"
_BATCH, _BATCH_BYTES = 4096, 2**25  # rows in memory at a time, fewer where they are long


class ParquetRows:
    """An open file whose rows are read in order: a row group is read once, however many blocks it has."""

    def __init__(self, path: str, columns: Collection[str] | None = None, first: int = 0) -> None:
        """Open a file at the row group with the row ``first``, for some of its columns."""
        self.path = path
        self.columns = columns
        self._stack = ExitStack()
        parquet = require("pyarrow.parquet", EXTRA)
        with _refusing_damage(path):
            self._file = parquet.ParquetFile(self._stack.enter_context(opened(path)))
            about = self._file.metadata
            groups = [about.row_group(i) for i in range(about.num_row_groups)]
            self.n_rows = about.num_rows
            self.n_bytes = sum(group.total_byte_size for group in groups)
            self._ends = list(accumulate(group.num_rows for group in groups))
            self.schema = _selected(path, self._file.schema_arrow, columns)
            left = range(self._group(first), len(groups))
            size = max(min(_BATCH, _BATCH_BYTES * self.n_rows // max(self.n_bytes, 1)), 1)
            self._batches = self._file.iter_batches(
                size, row_groups=left, columns=None if columns is None else self.schema.names
            )
        self._batch: Any = self.schema.empty_table()
        self.at = self._ends[left[0] - 1] if left and left[0] else 0  # the row that the batch begins with

    def _group(self, row: int) -> int:
        return bisect_right(self._ends, row)

    def leads_to(self, row: int) -> bool:
        """Return whether a row is best read from here; a later row group is reached faster in a new file."""
        return self.at <= row and self._group(row) <= self._group(self.at + len(self._batch))

    def take(self, rows: range) -> Iterator[Any]:
        """Yield batches with these rows, which must not begin before ``at``."""
        while rows:
            end = self.at + len(self._batch)
            if end > rows.start:
                yield self._batch.slice(max(rows.start - self.at, 0), min(end, rows.stop) - max(rows.start, self.at))
            if end >= rows.stop:  # the batch is kept: the next rows may begin in it
                return
            batch = next(self._batches, None)
            if batch is None:
                raise DataError(
                    f"{self.path} must have {self.n_rows:,} rows, but ends with row {end:,}; write it again"
                )
            self._batch, self.at = batch, end

    def copy(self, rows: range, target: Path) -> None:
        """Write these rows to a file."""
        parquet = require("pyarrow.parquet", EXTRA)
        with _refusing_damage(self.path), parquet.ParquetWriter(target, self.schema, compression="none") as writer:
            for batch in self.take(rows):
                writer.write_batch(batch)

    def close(self) -> None:
        """Close the file."""
        self._stack.close()


def _selected(path: str, schema: Any, columns: Collection[str] | None) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return the schema of some columns, or of all; a needed column must be there once."""
    if columns is None:
        return schema
    names = [name for name in schema.names if name in columns]
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise DataError(f"{path} must have the column {double!r} once, but has it several times; rename the others")
    return schema.empty_table().select(names).schema


@contextmanager
def _refusing_damage(path: str) -> Iterator[None]:
    arrow = require("pyarrow", EXTRA)
    with refusing_failures(path):
        try:
            yield
        except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
            reason = str(error).split("\n")[0]
            raise DataError(
                f"{path} must be a Parquet file, but cannot be read as one ({reason}); write it again"
            ) from error
