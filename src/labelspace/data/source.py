"""Data files by format, and data folders with ``train.*``, ``dev.*``, ``test.*``."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from labelspace.data.columns import is_table
from labelspace.data.dataset_builder import assemble
from labelspace.data.formats.csvfile import csv_records, open_csv, write_csv
from labelspace.data.formats.jsonl import json_rows, jsonl_records, open_jsonl, write_jsonl
from labelspace.data.formats.parquet import open_parquet, parquet_records, write_parquet
from labelspace.data.formats.plain_text import iter_lines
from labelspace.data.formats.xmc import iter_xmc, read_xmc, write_xmc
from labelspace.data.labels import LABELS, are_labels, hierarchy_beside, labels_beside, read_labels
from labelspace.data.records import Record, Rows
from labelspace.data.table import table_records
from labelspace.errors import DataError
from labelspace.types import Columns, Dataset, LabelSpace

_XMC = ".txt"
_Open = Callable[[str | Path], AbstractContextManager[Rows]]
_Records = Callable[[str | Path, Rows, bool], Iterator[Record]]
_READERS: dict[str, tuple[_Open, _Records]] = {
    ".jsonl": (open_jsonl, jsonl_records),
    ".csv": (open_csv, csv_records),
    ".parquet": (open_parquet, parquet_records),
}
_WRITERS: dict[str, Callable[[str | Path, Dataset], None]] = {
    _XMC: write_xmc,
    ".jsonl": write_jsonl,
    ".csv": write_csv,
    ".parquet": write_parquet,
}
ENDINGS = tuple(_WRITERS)
_KNOWN = f"{', '.join(ENDINGS)}, each also with .gz"


def read_dataset(path: str | Path, labels: LabelSpace | None = None, columns: Columns | None = None) -> Dataset:
    r"""Read a data file; its extension is the format: .txt, .jsonl, .csv or .parquet, each also with .gz.

    The label space is ``labels``, or else that of its label file, with unknown names appended; without both it is the
    names in alphabetical order, or the numbers 0, 1, ... where labels are ids. The hierarchy is that of ``labels``, or
    else that of its label file; without both, names that are paths (``a > b``) define one. The label files of ``a.csv``
    are ``a.labels.jsonl`` and ``a.hierarchy.tsv``; for ``train.*``, ``dev.*`` and ``test.*`` also ``labels.jsonl`` and
    ``hierarchy.tsv``.

    With ``columns`` the file is a table (.jsonl, .csv or .parquet); label names and hierarchy are taken from its cells,
    or are ``labels`` with unknown names appended. With ``labels`` it may also be a file with the standard fields.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "pets.csv").write_text("text,labels\nit purrs,cat|pet\nit barks,dog|pet\n")
    ...     dataset = read_dataset(f"{folder}/pets.csv")
    >>> dataset.labels.names, dataset.Y.sum(axis=0).tolist()
    (['cat', 'dog', 'pet'], [[1.0, 1.0, 2.0]])
    """
    ending = _checked_format(path)
    if columns is not None and (labels is None or _has_columns(path, ending, columns)):
        if ending == _XMC:
            raise DataError(f"a table must be .jsonl, .csv or .parquet, but is {path}; convert it, or set no columns")
        return _assembled(path, ending, labels, columns)
    file_labels = None if labels is None else labels_beside(path)
    if labels is None or file_labels is None or _is_prefix(file_labels, labels):
        return read_xmc(path, labels) if ending == _XMC else _assembled(path, ending, labels)
    # The file's label ids are those of its label file: read it with those, then map them to ``labels`` by name.
    return _relabeled(read_dataset(path), labels)


def _has_columns(path: str | Path, ending: str, columns: Columns) -> bool:
    if ending == _XMC:
        return False
    with _READERS[ending][0](path) as rows:
        return is_table(rows.names(), columns, with_labels=True)


def _assembled(path: str | Path, ending: str, labels: LabelSpace | None, columns: Columns | None = None) -> Dataset:
    open_rows, to_records = _READERS[ending]
    with open_rows(path) as rows:
        records = to_records(path, rows, True) if columns is None else table_records(path, rows, columns)
        return assemble(records, path, labels, columns)


def _is_prefix(start: LabelSpace, labels: LabelSpace) -> bool:
    return len(start) <= len(labels) and all(a == b for a, b in zip(start.names, labels.names, strict=False))


def _relabeled(dataset: Dataset, labels: LabelSpace) -> Dataset:
    """The same documents with the ids of another label space, matched by name; unknown names are appended to it."""
    used = np.unique(dataset.Y.indices)
    space = labels.extended(dataset.labels.names[i] for i in used)
    new_ids = np.zeros(len(dataset.labels), np.int32)
    new_ids[used] = [space.index[dataset.labels.names[i]] for i in used]
    shape = (len(dataset), len(space))
    Y = sp.csr_matrix((dataset.Y.data, new_ids[dataset.Y.indices], dataset.Y.indptr), shape=shape)
    Y.sort_indices()
    return replace(dataset, Y=Y, labels=space)


def write_dataset(dataset: Dataset, path: str | Path) -> None:
    """Write a data file; its extension is the format, as for ``read_dataset``.

    The names and the hierarchy of the labels are separate files: ``write_labels`` and ``write_hierarchy``.
    """
    _WRITERS[_checked_format(path)](path, dataset)


def iter_records(path: str | Path, ready_made: bool = False, columns: Columns | None = None) -> Iterator[Record]:
    """Stream the documents of a file of any size, without labels; with ``columns`` it may be such a table.

    A ``.txt`` is plain text, one document per line; with ``ready_made`` it has rows of features, as for
    ``read_dataset``. Files without a known extension, and ``-`` (the standard input), are JSON lines where the first
    line starts with a brace, else plain text.
    """
    ending = file_format(path)
    if ready_made and ending == _XMC:
        return iter_xmc(path)
    if ending in _READERS:
        return _streamed(path, *_READERS[ending], columns)
    return iter_lines(path) if ending == _XMC else _lines_or_json(path, columns)


def _streamed(path: str | Path, open_rows: _Open, to_records: _Records, columns: Columns | None) -> Iterator[Record]:
    with open_rows(path) as rows:
        if columns is not None and is_table(rows.names(), columns, with_labels=False):
            yield from table_records(path, rows, columns, with_labels=False)
        else:
            yield from to_records(path, rows, False)


def _lines_or_json(path: str | Path, columns: Columns | None) -> Iterator[Record]:
    plain = iter_lines(path)
    first = next(plain, None)
    records = plain if first is None else chain([first], plain)
    if first is None or not (first.text or "").lstrip().startswith("{"):
        return records
    rows = json_rows(path, ((record.line, record.text or "") for record in records))
    return _streamed(path, lambda _: nullcontext(rows), jsonl_records, columns)


def file_format(path: str | Path) -> str:
    """The file extension without .gz; '' where it is unknown."""
    name = Path(path).name.lower().removesuffix(".gz")
    return next((ending for ending in ENDINGS if name.endswith(ending)), "")


def _checked_format(path: str | Path) -> str:
    ending = file_format(path)
    if not ending:
        name = Path(path).name
        raise DataError(f"the name of a data file must end with {_KNOWN}, but is {name!r}; rename or convert it")
    return ending


@dataclass(frozen=True)
class Source:
    """The files of the splits of a data set; each is read on demand."""

    path: Path
    train_path: Path
    dev_path: Path | None = None
    test_path: Path | None = None
    labels_only: bool = False  # train_path is a file of labels; there are no training documents
    columns: Columns | None = None  # where the files are tables

    @property
    def has_dev(self) -> bool:
        """Whether there is a validation file."""
        return self.dev_path is not None

    @property
    def has_test(self) -> bool:
        """Whether there is a test file."""
        return self.test_path is not None

    def train(self) -> Dataset:
        """The training documents."""
        if self.labels_only:
            raise DataError(
                f"there must be training documents, but {self.path} has labels only; add train.* ({_KNOWN}), or tag "
                "by label names: labelspace train --method lexical"
            )
        return read_dataset(self.train_path, columns=self.columns)

    def labels(self) -> LabelSpace:
        """The labels of a source without documents, with their hierarchy."""
        return hierarchy_beside(self.train_path, read_labels(self.train_path))

    def dev(self, labels: LabelSpace | None = None) -> Dataset | None:
        """The validation documents, or None; ``labels`` are those of the training documents."""
        return None if self.dev_path is None else read_dataset(self.dev_path, labels, self.columns)

    def test(self, labels: LabelSpace | None = None) -> Dataset | None:
        """The test documents, or None; ``labels`` are those of the training documents."""
        return None if self.test_path is None else read_dataset(self.test_path, labels, self.columns)


def open_source(path: str | Path, columns: Columns | None = None) -> Source:
    r"""The splits of a folder; a single file is a training split, or the labels if it is a ``*labels.jsonl``.

    With ``columns`` the splits are tables, and there must be training rows.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "train.jsonl").write_text('{"text": "it purrs", "labels": ["cat"]}\n')
    ...     source = open_source(folder)
    ...     len(source.train()), source.has_test
    (1, False)
    """
    path = Path(path)
    if not path.exists():
        raise DataError(f"DATA must be a file or a folder, but {path} does not exist; check the path")
    if not path.is_dir():
        _checked_format(path)
        return Source(path, path, labels_only=are_labels(path) and columns is None, columns=columns)
    train = split_file(path, "train")
    if train is None and columns is None and (path / LABELS).is_file():
        return Source(path, path / LABELS, split_file(path, "dev"), split_file(path, "test"), labels_only=True)
    if train is None:
        raise DataError(f"a data folder must have train.* ({_KNOWN}), but {path} has none; add it, or give a file")
    return Source(path, train, split_file(path, "dev"), split_file(path, "test"), columns=columns)


def split_file(folder: Path, split: str) -> Path | None:
    """The file of a split in a folder, or None."""
    possible = {f"{split}{ending}{gz}" for ending in ENDINGS for gz in ("", ".gz")}
    existing = sorted(name for name in possible if (folder / name).is_file())
    if len(existing) > 1:
        names = " and ".join(existing)
        raise DataError(f"there must be one {split}.* in {folder}, but there are {names}; remove all but one")
    return folder / existing[0] if existing else None
