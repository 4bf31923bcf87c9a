"""Data as the command line takes it: a file of a known format, or a folder with ``train.*``, ``dev.*``, ``test.*``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from labelspace.data.assemble import assemble
from labelspace.data.csvfile import iter_csv, write_csv
from labelspace.data.jsonl import iter_jsonl, write_jsonl
from labelspace.data.parquet import iter_parquet, write_parquet
from labelspace.data.plain import iter_lines
from labelspace.data.records import Record
from labelspace.data.xmc import iter_xmc, read_xmc, write_xmc
from labelspace.errors import DataError
from labelspace.types import Dataset, LabelSpace

_XMC = ".txt"
_READERS: dict[str, Callable[..., Iterator[Record]]] = {
    ".jsonl": iter_jsonl,
    ".csv": iter_csv,
    ".parquet": iter_parquet,
}
_WRITERS: dict[str, Callable[[str | Path, Dataset], None]] = {
    _XMC: write_xmc,
    ".jsonl": write_jsonl,
    ".csv": write_csv,
    ".parquet": write_parquet,
}
ENDINGS = tuple(_WRITERS)
_KNOWN = f"{', '.join(ENDINGS)}, each also with .gz"


def read_dataset(path: str | Path, labels: LabelSpace | None = None) -> Dataset:
    r"""Read a data file; the format goes by the name: .txt, .jsonl, .csv or .parquet, each also with .gz.

    The label space is ``labels``, or else ``labels.jsonl`` beside the file, with names unknown to it appended; without
    both it is the names in alphabetical order, or the numbers 0, 1, ... where labels are ids. A ``hierarchy.tsv``
    beside the file is read too, unless ``labels`` has a hierarchy.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "pets.csv").write_text("text,labels\nit purrs,cat|pet\nit barks,dog|pet\n")
    ...     dataset = read_dataset(f"{folder}/pets.csv")
    >>> dataset.labels.names, dataset.Y.sum(axis=0).tolist()
    (['cat', 'dog', 'pet'], [[1.0, 1.0, 2.0]])
    """
    ending = _checked_format(path)
    return read_xmc(path, labels) if ending == _XMC else assemble(_READERS[ending](path), path, labels)


def write_dataset(dataset: Dataset, path: str | Path) -> None:
    """Write a data file, whole or not at all; the format goes by the name, as for ``read_dataset``.

    The names and the hierarchy of the labels are files of their own: ``write_labels`` and ``write_hierarchy``.
    """
    _WRITERS[_checked_format(path)](path, dataset)


def iter_records(path: str | Path, ready_made: bool = False) -> Iterator[Record]:
    """Stream the documents of a file of any size, labels left aside.

    Names other than .jsonl, .csv and .parquet (each also with .gz), ``.txt`` and ``-`` (the standard input) among them,
    are plain text, a document a line; with ``ready_made`` a ``.txt`` holds rows of features, as for ``read_dataset``.
    """
    ending = file_format(path)
    if ready_made and ending == _XMC:
        return iter_xmc(path)
    return _READERS[ending](path, with_labels=False) if ending in _READERS else iter_lines(path)


def file_format(path: str | Path) -> str:
    """The ending that names the format, without .gz; '' where it is unknown."""
    name = Path(path).name.lower().removesuffix(".gz")
    return next((ending for ending in ENDINGS if name.endswith(ending)), "")


def _checked_format(path: str | Path) -> str:
    ending = file_format(path)
    if not ending:
        raise DataError(
            f"the name of a data file must end with {_KNOWN}, but is {Path(path).name!r}; rename or convert it"
        )
    return ending


@dataclass(frozen=True)
class Source:
    """Where the splits of a data set are; each is read when asked for, and only its own file is opened."""

    path: Path
    train_path: Path
    dev_path: Path | None = None
    test_path: Path | None = None

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
        return read_dataset(self.train_path)

    def dev(self, labels: LabelSpace | None = None) -> Dataset | None:
        """The validation documents, or None; ``labels`` are those of the training documents."""
        return None if self.dev_path is None else read_dataset(self.dev_path, labels)

    def test(self, labels: LabelSpace | None = None) -> Dataset | None:
        """The test documents, or None; ``labels`` are those of the training documents."""
        return None if self.test_path is None else read_dataset(self.test_path, labels)


def open_source(path: str | Path) -> Source:
    r"""Find the splits of a folder; a single file is a training split.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "train.jsonl").write_text('{"text": "it purrs", "labels": ["cat"]}\n')
    ...     source = open_source(folder)
    ...     len(source.train()), source.has_test
    (1, False)
    """
    path = Path(path)
    if not path.exists():
        raise DataError(f"DATA must be a file or a folder, but {path} does not exist; check the name")
    if not path.is_dir():
        _checked_format(path)
        return Source(path, path)
    train = _split_file(path, "train")
    if train is None:
        raise DataError(f"a data folder must hold train.* ({_KNOWN}), but {path} holds none; add it, or give a file")
    return Source(path, train, _split_file(path, "dev"), _split_file(path, "test"))


def _split_file(folder: Path, split: str) -> Path | None:
    """The one file of a folder that is a split, or None."""
    names = {f"{split}{ending}{packed}" for ending in ENDINGS for packed in ("", ".gz")}
    found = sorted(name for name in names if (folder / name).is_file())
    if len(found) > 1:
        raise DataError(
            f"there must be one {split}.* in {folder}, but there are {' and '.join(found)}; remove all but one"
        )
    return folder / found[0] if found else None
