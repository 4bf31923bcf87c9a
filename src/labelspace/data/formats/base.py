"""What a format of data files is: rows with named columns, single documents, or matrices that are read as a whole.

Each module of a format ends with its object, ``FORMAT``; ``registry`` lists them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from labelspace.data.dataset_builder import assemble
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Record, Rows
from labelspace.types import Dataset, LabelSpace

OpenRows = Callable[[str | Path, ReadOptions], AbstractContextManager[Rows]]
Records = Callable[[str | Path, ReadOptions], Iterator[Record]]
Read = Callable[[str | Path, LabelSpace | None, ReadOptions], Dataset]
Write = Callable[[str | Path, Dataset], None]


@dataclass(frozen=True)
class Format:
    """What all formats have: how files of the format are named, recognized and written."""

    name: str  # for --format
    title: str
    endings: tuple[str, ...]
    write: Write
    recognizes: Callable[[Sequence[str]], bool] | None = None  # by the first lines, where endings leave it open
    _: KW_ONLY
    file_names: str | None = None  # pattern; of a split in several files, and a file of label names for all splits
    split_names: Mapping[str, str] | None = None  # the file to write of each split, where it is not train.ENDING
    is_text: bool = True  # whether it has an encoding
    needs_features: bool = False  # whether it holds no texts
    streams: bool = True  # whether it is read piece by piece, so that it may be larger than memory
    other_files: Callable[[Path], list[Path]] = lambda path: []  # that say how to read a file

    def split_name(self, split: str, ending: str) -> str:
        """Return the name of the file of a split in a folder."""
        return f"{split}{ending}" if self.split_names is None else self.split_names[split]


@dataclass(frozen=True, kw_only=True)
class RowFormat(Format):
    """Rows with named columns, some of which hold texts, labels and ids."""

    rows: OpenRows


@dataclass(frozen=True, kw_only=True)
class RecordFormat(Format):
    """Documents with fixed fields, read one by one."""

    documents: Records

    def read(self, path: str | Path, labels: LabelSpace | None, options: ReadOptions) -> Dataset:
        """Read all documents with their labels; see ``read_dataset`` for the label space."""
        return assemble(self.documents(path, options), path, labels)


@dataclass(frozen=True, kw_only=True)
class MatrixFormat(Format):
    """Features and labels that are read as a whole; documents to tag are read one by one, without labels."""

    read: Read
    documents: Records
    is_text: bool = False
    needs_features: bool = True


AnyFormat = RowFormat | RecordFormat | MatrixFormat
