"""Plain text, a document a line: what a stream of texts to tag looks like where no other format is named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from labelspace.data.files import lines
from labelspace.data.records import Record


def iter_lines(path: str | Path) -> Iterator[Record]:
    """Each line as the text of a record, its number from 0 as the id; ``-`` is the standard input."""
    for line, text in lines(path):
        yield Record(str(line - 1), text.removesuffix("\n").removesuffix("\r"), line=line)
