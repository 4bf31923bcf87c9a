"""Plain text, one document per line: the default format of texts to tag."""

from collections.abc import Iterator
from pathlib import Path

from labelspace.data.files import UTF_8, lines
from labelspace.data.records import Record


def iter_lines(path: str | Path, encoding: str = UTF_8) -> Iterator[Record]:
    """Each line as a record, with the line number from 0 as id; ``-`` is the standard input."""
    for line, text in lines(path, encoding):
        yield Record(str(line - 1), text.removesuffix("\n").removesuffix("\r"), line=line)
