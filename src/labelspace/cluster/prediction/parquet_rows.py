"""Rows of a Parquet file by path or URL, copied to a file on this machine."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

from labelspace.cluster.prediction.storage import opened
from labelspace.errors import DataError, require

EXTRA = "parquet"
_BATCH, _BATCH_BYTES = 4096, 2**25  # rows in memory at a time, fewer where they are long


class ParquetRows:
    """An open file whose rows are taken in their order: a row group is read once, however many blocks it has."""

    def __init__(self, path: str, columns: Collection[str] | None = None, first: int = 0) -> None:
        """Open it at the row group with the row ``first``, for some of its columns."""
        self.path, self.columns, self._stack = path, columns, ExitStack()
        parquet = require("pyarrow.parquet", EXTRA)
        with _refusing_damage(path):
            self._file = parquet.ParquetFile(self._stack.enter_context(opened(path)))
            about = self._file.metadata
            groups = [about.row_group(i) for i in range(about.num_row_groups)]
            self.n_rows, self.n_bytes = about.num_rows, sum(group.total_byte_size for group in groups)
            ends = list(accumulate(group.num_rows for group in groups))
            names = [name for name in self._file.schema_arrow.names if columns is None or name in columns]
            self.schema = self._file.schema_arrow.empty_table().select(names).schema
            left = [group for group, end in enumerate(ends) if end > first]
            size = max(min(_BATCH, _BATCH_BYTES * self.n_rows // max(self.n_bytes, 1)), 1)
            self._batches = self._file.iter_batches(size, row_groups=left, columns=names)
        self._batch: Any = self.schema.empty_table()
        self.at = ends[left[0] - 1] if left and left[0] else 0  # the row that the batch begins with

    def take(self, rows: range) -> Iterator[Any]:
        """Batches with these rows, which must not begin before ``at``."""
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


@contextmanager
def _refusing_damage(path: str) -> Iterator[None]:
    arrow = require("pyarrow", EXTRA)
    try:
        yield
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).split("\n")[0]
        raise DataError(
            f"{path} must be a Parquet file, but cannot be read as one ({reason}); write it again"
        ) from error
