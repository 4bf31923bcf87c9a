r"""Annif's document corpus: ``text<TAB><uri> <uri>``, one document per line (.tsv, .tsv.gz), without a header.

Labels are URIs. Written texts have a space for each tab and line end.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from labelspace.data.formats.base import RecordFormat, document_lines, on_one_line, write_lines
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Record, distinct_labels, to_records, without_brackets
from labelspace.errors import DataError
from labelspace.types import Dataset, LabelSpace

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>]+")


def records(path: str | Path, options: ReadOptions) -> Iterator[Record]:
    """Read the documents; the id is the number of the line, from 0."""
    for location, line in document_lines(path, options):
        text, tab, uris = line.partition("\t")
        if not tab:
            remedy = "end the text with a tab, with nothing after it if there are no subjects"
            raise location.expected("text<TAB><uri> <uri>", "there is no tab", remedy)
        labels = distinct_labels(map(without_brackets, uris.split()), location)
        yield Record(str(location.line - 1), text, None, labels, location.line)


def is_uri(text: str) -> bool:
    """Return whether a text is a URI: a scheme, a colon, and neither spaces nor angle brackets."""
    return _URI.fullmatch(text) is not None


def are_uris(cell: str) -> bool:
    """Return whether a cell holds only URIs, and at least one."""
    words = cell.split()
    return bool(words) and all(is_uri(without_brackets(word)) for word in words)


def recognizes(head: Sequence[str]) -> bool:
    r"""Return whether all lines are a text, a tab and URIs or nothing, and one has URIs.

    >>> recognizes(["red apple\t<http://example.org/p1>", "green tea\t"]), recognizes(["red apple\tfruit"])
    (True, False)
    """
    rows = [line.partition("\t") for line in head if line]
    return all(tab and (not uris.strip() or are_uris(uris)) for _, tab, uris in rows) and any(row[2] for row in rows)


def write(path: str | Path, dataset: Dataset) -> None:
    """Write texts and the URIs of their labels; names, ids and features are not in this format."""
    write_lines(path, dataset, _rows(path, dataset))


def _rows(path: str | Path, dataset: Dataset) -> Iterator[str]:
    for record in to_records(dataset):
        uris = (f"<{_uri(label, dataset.labels, path)}>" for label in record.labels)
        yield on_one_line(record.text or "").replace("\t", " ") + "\t" + " ".join(uris)


def _uri(label: object, space: LabelSpace, path: str | Path) -> str:
    """Return the URI of a label: that of its concept, or its name if the name is one."""
    number = label if isinstance(label, int) else space.index[str(label)]
    uri = space.concept(number).uri or space.names[number]
    if not is_uri(uri):
        remedy = "import the vocabulary with its URIs, or write .jsonl or a folder of texts"
        raise DataError(f"labels in {path} must have URIs, but {uri!r} has none; {remedy}")
    return uri


FORMAT = RecordFormat(
    "annif", "Annif's document corpus (text, tab, URIs)", (".tsv",), write, recognizes, documents=records
)
