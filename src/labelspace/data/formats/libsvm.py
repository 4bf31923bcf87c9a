"""LIBSVM's multi-label format, also of LibMultiLabel: ``1,5 3:0.5 7:1``, one document per line, without a header.

Labels are ids from 0, or names; a line without labels starts with a space or with its first feature. Feature indices
count from 1; a file with an index 0 counts from 0, and so do the other splits in its folder. Lines that start with
``#``, and what follows `` #``, are comments.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from labelspace.data.archives import is_data_file
from labelspace.data.dataset_builder import assemble
from labelspace.data.files import writing
from labelspace.data.formats.base import MatrixFormat, document_lines, features_of
from labelspace.data.label_files import SPLIT_NAMES
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Label, Location, Record, distinct_labels, to_records
from labelspace.data.sparse_rows import format_rows
from labelspace.kernels import large_arrays
from labelspace.types import Csr, Dataset, LabelSpace

_ROW = re.compile(r"(?:(?:[^\s,:]+(?:,[^\s,:]+)*)?[ \t]+|(?=\d))(?:\d+:[-+.\deE]+(?:[ \t]+|$))+")
_ID = re.compile("[0-9]{1,10}")  # of a label
_ZERO_BASED = "indices are zero-based"  # in a comment of scikit-learn's files


class _Lines:
    """The records of a file, and whether one has an index 0."""

    def __init__(self, path: str | Path, options: ReadOptions) -> None:
        self.has_zero = False
        self._lines = document_lines(path, options)

    def records(self) -> Iterator[Record]:
        for location, line in self._lines:
            if line.startswith("#"):
                self.has_zero = self.has_zero or _ZERO_BASED in line
                continue
            line = line.partition(" #")[0]
            first = line.split(None, 1)[0] if line[:1].strip() else ""
            labels, features = ("", line) if ":" in first else (first, line[len(first) :])
            self.has_zero = self.has_zero or " 0:" in features or "\t0:" in features or features.startswith("0:")
            yield Record(str(location.line - 1), None, features.strip(), _labels(labels, location), location.line)


def _labels(field: str, location: Location) -> tuple[Label, ...]:
    tokens = field.split(",") if field else []
    return distinct_labels((int(token) if _ID.fullmatch(token) else token for token in tokens), location)


def read(path: str | Path, labels: LabelSpace | None, options: ReadOptions) -> Dataset:
    """Read a file of features; see ``read_dataset`` for the label space."""
    rows = _Lines(path, options)
    dataset = replace(assemble(rows.records(), path, labels), ids=None)
    X = sp.csr_matrix(dataset.X)  # every record has features
    zero_based = rows.has_zero or int(X.indices.min(initial=1)) == 0
    # One split may lack its first feature: another one in the folder may show that indices count from 0.
    zero_based = zero_based or any(_has_zero(other, options) for other in other_splits(Path(path)))
    options.say(f"{path}: feature indices count from {0 if zero_based else 1}")
    return dataset if zero_based else replace(dataset, X=_shifted(X, -1))


def documents(path: str | Path, options: ReadOptions) -> Iterator[Record]:
    """Return the documents to tag, as records of features.

    The whole file is read first, to know whether indices count from 0.
    """
    for record in to_records(read(path, None, options)):
        yield replace(record, labels=())


def _shifted(X: Csr, by: int) -> Csr:
    """Return X with its columns moved to the right, or to the left."""
    indices = np.add(X.indices, by, out=large_arrays.empty(X.nnz, np.int32), casting="unsafe")
    return sp.csr_matrix((X.data, indices, X.indptr), shape=(X.shape[0], max(X.shape[1] + by, 0)))


def other_splits(path: Path) -> list[Path]:
    """Return the other splits in the folder of a file, which say whether its indices count from 0."""
    split, dot, ending = path.name.partition(".")
    others = (path.with_name(other + dot + ending) for other in SPLIT_NAMES if split in SPLIT_NAMES and other != split)
    return [other for other in others if is_data_file(other)]


def _has_zero(path: Path, options: ReadOptions) -> bool:
    rows = _Lines(path, options)
    return any(rows.has_zero for _ in rows.records()) or rows.has_zero


def recognizes(head: Sequence[str]) -> bool:
    """Return whether all lines are labels and features.

    >>> recognizes(["1,5 3:0.5 7:1", " 2:1"]), recognizes(["2 10 5", "1,5 3:0.5 7:1"])
    (True, False)
    """
    rows = [line.partition(" #")[0] for line in head if line.strip() and not line.startswith("#")]
    return bool(rows) and all(_ROW.fullmatch(line) for line in rows)


def write(path: str | Path, dataset: Dataset) -> None:
    """Write features, from index 1, and label ids, from 0; every float32 reads back to the same value."""
    X = features_of(dataset, path).copy()
    Y = dataset.Y.copy()
    X.eliminate_zeros()
    Y.eliminate_zeros()
    empty = np.flatnonzero(np.diff(X.indptr) + np.diff(Y.indptr) == 0)
    if len(empty):
        remedy = "remove it, or write .jsonl"
        raise Location(path, empty[0] + 1).expected("features or labels in every document", "one has neither", remedy)
    with writing(path) as file:
        file.writelines(format_rows(_shifted(X, 1), Y))


_TITLE = "LIBSVM with several labels"
ENDINGS = (".svm", ".libsvm", ".svmlight", ".txt")
FORMAT = MatrixFormat(
    "libsvm", _TITLE, ENDINGS, write, recognizes, read=read, documents=documents, is_text=True, other_files=other_splits
)
