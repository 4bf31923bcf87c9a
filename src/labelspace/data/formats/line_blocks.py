"""A file in blocks of complete lines, and rows of features from such blocks."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from labelspace.data.files import too_long
from labelspace.data.sparse_rows import SparseRows
from labelspace.errors import DataError
from labelspace.types.limits import MAX_LINE_BYTES

BLOCK_BYTES = 16 * 2**20


def line_blocks(file: BinaryIO, path: str | Path, line: int = 1) -> Iterator[bytes]:
    r"""Blocks of complete lines, from line number ``line`` on; a line end is added where the last one has none.

    >>> from io import BytesIO
    >>> list(line_blocks(BytesIO(b"a\nb\nc"), "a.txt"))
    [b'a\nb\n', b'c\n']
    """
    pieces: list[bytes] = []  # of a line that is not complete
    limit = MAX_LINE_BYTES.value
    while read := file.read(BLOCK_BYTES):
        cut = read.rfind(b"\n") + 1
        if cut:
            yield b"".join([*pieces, memoryview(read)[:cut]])
            line += read.count(b"\n")
            pieces = []
        pieces.append(read[cut:])
        if sum(map(len, pieces)) > limit:
            raise too_long(path, line)
    if last := b"".join(pieces):
        yield last + b"\n"


def add_rows(rows: SparseRows, blocks: Iterable[bytes], n: int, path: str | Path) -> None:
    """Add the n rows of a file, as its header says; fewer or more are an error. Blank lines may follow."""
    blank_end = 0  # bytes after the last row
    for block in blocks:
        rest = block[rows.add(block, limit=n - rows.n_rows) :]
        if rest.strip():
            found = rest.strip()[:30].decode(errors="replace")
            raise DataError(
                f"{path}:{n + 2}: expected the end of the file after {n} rows as the header says, but found {found!r}; "
                "correct the header"
            )
        blank_end += len(rest)
        if blank_end > MAX_LINE_BYTES.value:
            raise too_long(path, n + 2)
    if rows.n_rows != n:
        raise DataError(
            f"{path}: expected {n} rows as the header says, but there are {rows.n_rows}; "
            "the file is truncated: download it again, or correct the header"
        )
