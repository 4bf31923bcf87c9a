r"""LibMultiLabel's texts: ``id<TAB>label1 label2<TAB>text``, or without ids ``label1 label2<TAB>text``.

A label name is one word. Written texts have a space for each tab and line end. LibMultiLabel's format for linear
methods is LIBSVM.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from labelspace.data.formats.annif import are_uris
from labelspace.data.formats.base import RecordFormat, document_lines, names_as_words, on_one_line, write_lines
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Location, Record, distinct_labels, to_records
from labelspace.types import Dataset

_SPACE = re.compile(r"\s|[\x1c-\x1f]")  # what str.split, by which LibMultiLabel separates labels, takes for a space
_HEADER_WORDS = 3  # a cell of a header has at most as many
_WIDTHS = 2, 3


def records(path: str | Path, options: ReadOptions) -> Iterator[Record]:
    """Read the documents; without ids, the id is the number of the line, from 0."""
    width = 0
    for location, line in document_lines(path, options):
        cells = line.split("\t")
        width = width or len(cells)
        if len(cells) != width or width not in _WIDTHS:
            rule = "labels<TAB>text or id<TAB>labels<TAB>text" if location.line == 1 else f"{width} cells, as in line 1"
            problem = f"there are {len(cells)} cells separated by tabs"
            raise location.expected(rule, problem, "replace tabs in the text by spaces")
        id_ = cells[0] if width > min(_WIDTHS) else str(location.line - 1)
        yield Record(id_, cells[-1], None, distinct_labels(cells[-2].split(), location), location.line)


def recognizes(head: Sequence[str]) -> bool:
    r"""Return whether all lines have the same two or three cells: ids that differ, labels that repeat, longer texts.

    If the first text has only a few words, it may be the header of a table.

    >>> recognizes(["a b\tthe red apple pie", "b\tgreen tea with milk"])
    True
    """
    rows = [line.split("\t") for line in head if line]
    if len(rows) < 2 or len({len(row) for row in rows}) > 1 or len(rows[0]) not in _WIDTHS:
        return False
    ids, labels, texts = ([row[0] for row in rows], *([row[at] for row in rows] for at in (-2, -1)))
    if len(texts[0].split()) <= _HEADER_WORDS or any(are_uris(text) for text in texts):
        return False
    if len(rows[0]) > min(_WIDTHS) and (len(set(ids)) < len(ids) or any(len(cell.split()) != 1 for cell in ids)):
        return False
    words = [set(cell.split()) for cell in labels]
    repeat = len(set().union(*words)) < sum(map(len, words))
    return repeat and 2 * sum(map(len, words)) < sum(len(text.split()) for text in texts)


def write(path: str | Path, dataset: Dataset) -> None:
    """Write ids if there are any, labels and texts; features are not in this format."""
    write_lines(path, dataset, _rows(path, dataset))


def _rows(path: str | Path, dataset: Dataset) -> Iterator[str]:
    words = names_as_words(dataset.labels, _SPACE, path)
    for number, record in enumerate(to_records(dataset), start=1):
        if set(record.id) & set("\t\r\n"):
            rule = "an id without tabs and line ends"
            raise Location(path, number).expected(rule, f"it is {record.id!r}", "rename it")
        cells = [" ".join(words[label] for label in record.labels), on_one_line(record.text or "").replace("\t", " ")]
        yield "\t".join(cells if dataset.ids is None else [record.id, *cells])


_TITLE = "LibMultiLabel (labels, tab, text)"
FORMAT = RecordFormat("libmultilabel", _TITLE, (".txt", ".tsv"), write, recognizes, documents=records)
