"""Cut files into blocks of rows, the same at each restart, and read the documents of a block.

Blocks are small enough for all CPUs to work. The rows of a block are copied to a file on this machine, which is read
like any other.
"""

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

from labelspace.cluster.prediction.input_files import InputFile, check_unchanged, opened, read_range, refusing_failures
from labelspace.cluster.prediction.layout import FileLayout, ParquetRows, find_layout
from labelspace.data.archives import compression
from labelspace.data.files import too_long
from labelspace.data.formats.csvfile import DELIMITER_LINE, Dialect, read_row
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Location, Record, Rows
from labelspace.data.source import layout_records
from labelspace.data.table import table_records
from labelspace.errors import DataError
from labelspace.types import Columns
from labelspace.types.limits import MAX_LINE_BYTES

PER_CPU = 8  # blocks, if documents are few: more even out the work, but each has a cost of its own
MIN_ROWS, MAX_ROWS = 100, 20_000  # documents of a block; a lost machine loses at most one block per CPU
MAX_BYTES = 2**25  # of a block
PACKED = 4  # times the size of a compressed file; a guess, since blocks are cut before it is decompressed


@dataclass(frozen=True)
class Block:
    """Some rows of a file; in a text file, by their (decompressed) bytes."""

    file: InputFile
    layout: FileLayout
    first_row: int
    n_rows: int
    start: int = 0  # bytes
    stop: int = 0
    line: int = 0  # lines before it
    header: bytes = b""  # of the file, which each block needs
    output: str = ""  # the name of the file of its predictions, once all blocks are known


class Scan(NamedTuple):
    """The blocks of a file, and notes on how it is read."""

    blocks: list[Block]
    notes: list[str]


class Row(NamedTuple):
    """A row of a text file: its end, and whether it is blank."""

    end: int  # in bytes
    lines: int  # up to its end
    is_blank: bool = False


NO_ROW = Row(0, 0)


def block_bytes(files: Sequence[InputFile], n_cpus: int) -> int:
    """Return the bytes of a block: a few blocks per CPU, but no large ones.

    >>> block_bytes([InputFile("in.csv", 80_000_000, "")], n_cpus=2)
    5000000
    """
    total = sum(file.size * (PACKED if compression(file.path) else 1) for file in files)
    return max(min(total // (PER_CPU * n_cpus), MAX_BYTES), 1)


def scan_file(shared: tuple[ReadOptions, int], file: InputFile) -> Scan:
    """Cut a file into blocks; a task of its own, since a text file is read to its end for it."""
    reading, size = shared
    notes: list[str] = []
    check_unchanged(file)
    layout = find_layout(file, replace(reading, say=notes.append))
    if layout.columns is None:
        return Scan([], notes)
    cut = _parquet_blocks if layout.format == "parquet" else _text_blocks
    return Scan(list(cut(file, layout, size)), notes)


def _parquet_blocks(file: InputFile, layout: FileLayout, size: int) -> Iterator[Block]:
    with ParquetRows(file.path, layout.needed) as rows:
        n = rows.n_rows
    step = min(max(n * size // max(file.size, 1), MIN_ROWS), MAX_ROWS, n * MAX_BYTES // max(rows.n_bytes, 1))
    for first in range(0, n, max(step, 1)):
        yield Block(file, layout, first, min(max(step, 1), n - first))


def _text_blocks(file: InputFile, layout: FileLayout, size: int) -> Iterator[Block]:
    with opened(file.path) as unpacked:
        rows = _lines(file.path, layout.encoding, unpacked)
        last = NO_ROW
        if layout.dialect is not None:
            rows = _csv_rows(file.path, layout.encoding, layout.dialect, unpacked)
            last = next(rows, NO_ROW)
        with opened(file.path) as again:
            header = again.read(last.end)
        block = Block(file, layout, 0, 0, last.end, last.end, last.lines, header)
        n = 0
        for row in rows:
            if row.is_blank:  # part of the next row's block, where it is refused; at the end of a file it is allowed
                continue
            if _is_full(n, last.end - block.start, size):
                yield replace(block, n_rows=n, stop=last.end)
                block = replace(block, first_row=block.first_row + n, start=last.end, line=last.lines)
                n = 0
            last = row
            n += 1
        if n:
            yield replace(block, n_rows=n, stop=last.end)


def _is_full(n_rows: int, n_bytes: int, size: int) -> bool:
    return n_rows >= MAX_ROWS or n_bytes >= MAX_BYTES or (n_rows >= MIN_ROWS and n_bytes >= size)


def _lines(path: str, encoding: str, file: BinaryIO) -> Iterator[Row]:
    for number, end, raw in _raw_lines(path, file):
        text = raw.strip()
        is_blank = not text or (text[:1] != b"{" and not text.decode(encoding, "replace").strip())
        yield Row(end, number, is_blank)


def _csv_rows(path: str, encoding: str, dialect: Dialect, file: BinaryIO) -> Iterator[Row]:
    """Yield the rows, the header first; errors in cells are left to the reader of the block."""
    end = n_lines = start = before = 0  # the last two: where the row starts, in bytes and lines

    def texts() -> Iterator[str]:
        nonlocal end, n_lines
        for n_lines, end, raw in _raw_lines(path, file):
            if end - start > MAX_LINE_BYTES.value:
                raise too_long(path, before + 1)
            text = raw.decode(encoding, "replace")
            text = text.removeprefix("\ufeff") if n_lines == 1 else text
            # For spreadsheets the first line may name the delimiter; the header is the second one then.
            if n_lines > 1 or not DELIMITER_LINE.fullmatch(text):
                yield text

    reader = dialect.reader(texts(), strict=False)
    while True:
        start, before = end, n_lines
        cells = read_row(reader, Location(path, before + 1))
        if cells is None:
            return
        yield Row(end, n_lines, not cells)


def _raw_lines(path: str, file: BinaryIO) -> Iterator[tuple[int, int, bytes]]:
    """Yield the number of each line, its end in bytes, and the line."""
    limit, end = MAX_LINE_BYTES.value, 0
    for number, raw in enumerate(iter(partial(file.readline, limit + 1), b""), start=1):
        if len(raw) > limit:
            raise too_long(path, number)
        end += len(raw)
        yield number, end, raw


_SKIPPED = 2**20  # bytes at a time
F = TypeVar("F", ParquetRows, "UnpackedFile")


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
    n_header = block.header.count(b"\n")
    before = block.first_row if block.layout.format == "parquet" else block.line - n_header

    def line(found: re.Match[str]) -> str:
        number = int(found[1])
        return f"{block.file.path}:{number + before if number > n_header else number}"

    return re.sub(re.escape(copy) + r":(\d+)", line, message).replace(copy, block.file.path)


def _copy(block: Block, target: Path) -> None:
    path = block.file.path
    if block.layout.format == "parquet":
        columns, first = block.layout.needed, block.first_row
        with _reopened((path, columns), first, lambda: ParquetRows(path, columns, first)) as rows:
            rows.copy(range(first, first + block.n_rows), target)
    elif compression(path):
        with _reopened(path, block.start, lambda: UnpackedFile(path)) as file:
            target.write_bytes(block.header + file.read(block.start, block.stop))
    else:
        target.write_bytes(block.header + read_range(path, block.start, block.stop))


class UnpackedFile(ExitStack):
    """An open compressed file whose bytes are read in order."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
        self.at = 0
        self._file: BinaryIO = self.enter_context(opened(path))

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


_last: dict[object, ParquetRows | UnpackedFile] = {}  # the last file of this process, if any


@contextmanager
def _reopened(key: object, position: int, open_new: Callable[[], F]) -> Iterator[F]:
    """Yield a file from which a position can be reached: the last one, kept open, or a new one.

    The next block is mostly further on in the last file, and reopening takes long.
    """
    last: Any = _last.pop(key, None)  # after an error it is not used again
    if last is None or not last.leads_to(position):
        for file in (*_last.values(), *filter(None, [last])):
            file.close()
        _last.clear()
        last = open_new()
    yield last
    _last[key] = last
