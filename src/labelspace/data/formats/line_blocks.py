"""A file in blocks of complete lines."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from labelspace.data.files import too_long
from labelspace.limits import MAX_LINE_BYTES

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
