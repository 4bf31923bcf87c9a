"""Read the documents of a block: its rows are copied to a file on this machine, which is read like any other."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, Generic, Protocol, TypeVar

from labelspace.cluster.prediction.blocks import Block
from labelspace.cluster.prediction.parquet_rows import ParquetRows
from labelspace.cluster.prediction.storage import check_unchanged, opened, read_range, refusing_failures
from labelspace.data.archives import compression
from labelspace.data.records import Record, Rows
from labelspace.data.source import layout_records
from labelspace.data.table import table_records
from labelspace.errors import DataError
from labelspace.types import Columns

_SKIPPED = 2**20  # bytes at a time


@contextmanager
def block_records(block: Block) -> Iterator[tuple[str, Iterator[Record]]]:
    """Yield the documents of a block, and the file name that messages about them have; errors name the block's file."""
    layout = block.layout
    check_unchanged(block.file)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"block.{layout.format}")
        _copy(block, path)
        try:
            with layout.open_rows(path) as rows:
                yield str(path), _records(path, rows, block)
        except DataError as error:
            raise DataError(_in_file(str(error), str(path), block)) from error


def _records(path: Path, rows: Rows, block: Block) -> Iterator[Record]:
    columns = block.layout.columns
    if isinstance(columns, Columns):  # the file's columns were checked; the rows of a block may lack an optional field
        return table_records(path, rows, columns, with_labels=False, first=block.first_row, is_checked=True)
    return iter(()) if columns is None else layout_records(path, rows, columns, first=block.first_row)


def _in_file(message: str, copy: str, block: Block) -> str:
    """Turn a message about the copy of a block into one about its file."""
    before = block.first_row if block.layout.format == "parquet" else block.line - block.header_lines

    def line(found: re.Match[str]) -> str:
        number = int(found[1])
        return f"{block.file.path}:{number + before if number > block.header_lines else number}"

    return re.sub(re.escape(copy) + r":(\d+)", line, message).replace(copy, block.file.path)


def _copy(block: Block, target: Path) -> None:
    path = block.file.path
    if block.layout.format == "parquet":
        columns = block.layout.needed
        with _parquet.opened(
            (path, columns), block.first_row, lambda: ParquetRows(path, columns, block.first_row)
        ) as rows:
            rows.copy(block.rows, target)
    elif compression(path):
        with _unpacked.opened((path,), block.start, lambda: UnpackedFile(path)) as file:
            target.write_bytes(block.header + file.read(block.start, block.stop))
    else:
        target.write_bytes(block.header + read_range(path, block.start, block.stop))


class UnpackedFile:
    """An open compressed file whose bytes are read in order."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.at = 0
        self._stack = ExitStack()
        self._file: BinaryIO = self._stack.enter_context(opened(path))

    def read(self, start: int, stop: int) -> bytes:
        """Return some of the unpacked bytes, which must not begin before ``at``."""
        with refusing_failures(self.path):
            while self.at < start and (skipped := len(self._file.read(min(_SKIPPED, start - self.at)))):
                self.at += skipped
            found = self._file.read(stop - start)
        self.at += len(found)
        return found

    def leads_to(self, position: int) -> bool:
        """Return whether a position can still be reached."""
        return self.at <= position

    def close(self) -> None:
        """Close the file."""
        self._stack.close()


class _Forward(Protocol):
    def leads_to(self, position: int, /) -> bool: ...

    def close(self) -> None: ...


F = TypeVar("F", bound=_Forward)


class _LastFile(Generic[F]):
    """The last file of this process, kept open: the next block is further on in it, and reopening takes long."""

    def __init__(self) -> None:
        self._last: tuple[object, F] | None = None

    @contextmanager
    def opened(self, key: object, position: int, open_new: Callable[[], F]) -> Iterator[F]:
        """Yield an open file from which a position can be reached."""
        last, self._last = self._last, None  # after an error it is not used again
        if last is not None and last[0] == key and last[1].leads_to(position):
            file = last[1]
        else:
            if last is not None:
                last[1].close()
            file = open_new()
        yield file
        self._last = key, file


_parquet = _LastFile[ParquetRows]()
_unpacked = _LastFile[UnpackedFile]()
