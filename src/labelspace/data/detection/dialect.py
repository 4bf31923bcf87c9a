r"""The delimiter and the quotes of a CSV file, detected from its first rows.

The dialect is the one in which most of the first rows have as many cells as the header. Of equal ones, the one with the
most cells is taken, and then the first of comma, semicolon, tab and pipe.
"""

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

DELIMITERS = (",", ";", "\t", "|")
HEAD_ROWS = 200  # a head of fewer lines is a whole file, so that an unclosed quote in it is an error of the dialect
NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe", " ": "space"}


@dataclass(frozen=True)
class Dialect:
    """How the cells of a row are separated and quoted."""

    delimiter: str = ","
    quote: str | None = '"'  # None where quotes are text
    escape: str | None = None  # None where a quote in a quoted cell is doubled

    def reader(self, lines: Iterable[str], strict: bool = True) -> Any:  # noqa: ANN401 - csv has no type for it
        """Return a reader of the cells of lines; unless ``strict``, an unclosed quote swallows the rest of a file."""
        if self.quote is None:
            return csv.reader(lines, delimiter=self.delimiter, quoting=csv.QUOTE_NONE, strict=strict)
        return csv.reader(
            lines,
            delimiter=self.delimiter,
            quotechar=self.quote,
            escapechar=self.escape,
            doublequote=self.escape is None,
            strict=strict,
        )

    def __str__(self) -> str:
        parts = [f"{NAMES.get(self.delimiter, repr(self.delimiter))}-separated"]
        if self.quote is None:
            parts.append("quotes are text")
        elif self.quote != '"':
            parts.append(f"cells quoted by {self.quote}")
        if self.escape is not None:
            parts.append("quotes escaped by a backslash")
        return ", ".join(parts)


def detect_dialect(head: Sequence[str], delimiter: str | None = None) -> Dialect:
    r"""Detect the dialect of the first lines of a file; ``delimiter`` is given if it is known.

    >>> detect_dialect(["title;tags\n", "Bread, rye;a,b\n"]).delimiter
    ';'
    """
    best = Dialect(delimiter or ",")
    best_fit = (0.0, 0, 0)
    for mark in DELIMITERS if delimiter is None else (delimiter,):
        for rank, (quote, escape) in enumerate(_quotes(mark, head)):
            found = Dialect(mark, quote, escape)
            share, n_cells = _fit(found, head)
            fit = (share, n_cells, -rank)
            if fit > best_fit and (n_cells > 1 or delimiter is not None):
                best, best_fit = found, fit
    return best


def _quotes(delimiter: str, head: Sequence[str]) -> Iterator[tuple[str | None, str | None]]:
    """Return the quotes and escapes that the first lines may have.

    Only a tab is tried without quotes: cells that may hold the other delimiters need them.
    """
    yield '"', None
    if any('\\"' in line for line in head):
        yield '"', "\\"
    if any(line.startswith("'") for line in head[:2]):
        yield "'", None
    if delimiter == "\t":
        yield None, None


def _fit(dialect: Dialect, head: Sequence[str]) -> tuple[float, int]:
    """Return the share of rows with as many cells as the header, and that number; 0 if the rows cannot be read."""
    rows = list(_rows(dialect, head))
    if not rows:
        return 0.0, 0
    width = len(rows[0])
    return sum(len(row) == width for row in rows) / len(rows), width


def _rows(dialect: Dialect, head: Sequence[str]) -> Iterator[list[str]]:
    reader = dialect.reader(head)
    reached = 0
    try:
        for row in reader:
            if row:
                yield row
            reached = reader.line_num
    except csv.Error:
        # The head may end within a quoted cell; an error before that is one of the dialect.
        if len(head) - reached > HEAD_ROWS // 2 or len(head) < HEAD_ROWS:
            yield []
