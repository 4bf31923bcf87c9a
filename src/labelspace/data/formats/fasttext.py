"""fastText: ``__label__a __label__b text``, one document per line; labels may stand anywhere in a line.

A label name is one word: fastText files have ``_`` for the spaces of names, and names are read as they stand. Written
texts have a space for each line end, which makes no difference to fastText.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from labelspace.data.formats.base import RecordFormat, document_lines, names_as_words, on_one_line, write_lines
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Record, distinct_labels, to_records
from labelspace.errors import DataError
from labelspace.types import Dataset

PREFIX = "__label__"
_SPACES = " \t\r\n\v\f\0"  # what separates words for fastText: no others of Unicode do
_SPACE = re.compile(f"[{_SPACES}]")
# No label starts within a word. The pattern checks that after the prefix, since a literal prefix is searched for fast.
_LABEL = re.compile(rf"{PREFIX}(?<![^{_SPACES}]{PREFIX})([^{_SPACES}]*)([{_SPACES}]|$)")


def records(path: str | Path, options: ReadOptions) -> Iterator[Record]:
    """Read the documents; the id is the number of the line, from 0."""
    for location, line in document_lines(path, options):
        names, text = split_line(line)
        yield Record(str(location.line - 1), text, None, distinct_labels(names, location), location.line)


def split_line(line: str) -> tuple[list[str], str]:
    """Return the labels and the text of a line.

    >>> split_line("__label__a __label__b_c red apple"), split_line("red __label__a apple __label__b")
    ((['a', 'b_c'], 'red apple'), (['a', 'b'], 'red apple'))
    """
    found = list(_LABEL.finditer(line))
    text = _LABEL.sub("", line)
    at_end = found and not found[-1][2]  # the space in front of a last label is not of the text
    return [label[1] for label in found], text.rstrip(_SPACES) if at_end else text


def recognizes(head: Sequence[str]) -> bool:
    """Return whether most lines have a label, and one starts with it.

    >>> recognizes(["__label__a red apple", "__label__b green tea"]), recognizes(["red apple"])
    (True, False)
    """
    rows = [line for line in head if line.strip()]
    n_labeled = sum(_LABEL.search(line) is not None for line in rows)
    return 2 * n_labeled > len(rows) and any(line.startswith(PREFIX) for line in rows)


def write(path: str | Path, dataset: Dataset) -> None:
    """Write texts and labels; ids and features are not in this format."""
    write_lines(path, dataset, _rows(path, dataset))


def _rows(path: str | Path, dataset: Dataset) -> Iterator[str]:
    words = names_as_words(dataset.labels, _SPACE, path)
    for number, record in enumerate(to_records(dataset), start=1):
        text = on_one_line(record.text or "")
        if found := _LABEL.search(text):
            rule = f"{path}:{number}: expected a text without words that start with {PREFIX}"
            raise DataError(f"{rule}, but there is {found[0].strip()[:40]!r}; remove it, or write .jsonl")
        yield " ".join([*(PREFIX + words[label] for label in record.labels), text])


FORMAT = RecordFormat(
    "fasttext", "fastText (__label__)", (".ft", ".fasttext", ".txt"), write, recognizes, documents=records
)
