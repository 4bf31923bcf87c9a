"""What a format of data files is: rows with named columns, single documents, or matrices that are read as a whole.

Each module of a format ends with its object, ``FORMAT``; ``registry`` lists them. Formats with one document per line,
such as plain text, share how lines are read and written.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from labelspace.data.dataset_builder import assemble
from labelspace.data.files import UTF_8, lines, without_blank_end, writing_text
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Label, Location, Record, Rows
from labelspace.errors import DataError
from labelspace.types import Csr, Dataset, LabelSpace

Records = Callable[[str | Path, ReadOptions], Iterator[Record]]


@dataclass(frozen=True)
class Format:
    """What all formats have: how files of the format are named, recognized and written."""

    name: str  # for --format
    title: str
    endings: tuple[str, ...]
    write: Callable[[str | Path, Dataset], None]
    recognizes: Callable[[Sequence[str]], bool] | None = None  # by the first lines, where endings leave it open
    _: KW_ONLY
    file_names: str | None = None  # pattern; of a split in several files, and a file of label names for all splits
    split_names: Mapping[str, str] | None = None  # the file to write of each split, where it is not train.ENDING
    is_text: bool = True  # whether it has an encoding
    needs_features: bool = False  # whether it holds no texts
    streams: bool = True  # whether it is read piece by piece, so that it may be larger than memory
    other_files: Callable[[Path], list[Path]] = lambda path: []  # that say how to read a file


@dataclass(frozen=True, kw_only=True)
class RowFormat(Format):
    """Rows with named columns, some of which hold texts, labels and ids."""

    rows: Callable[[str | Path, ReadOptions], AbstractContextManager[Rows]]


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

    read: Callable[[str | Path, LabelSpace | None, ReadOptions], Dataset]
    documents: Records
    is_text: bool = False
    needs_features: bool = True


AnyFormat = RowFormat | RecordFormat | MatrixFormat


BOM = "\ufeff"
_LINE_ENDS = re.compile(r"\r\n|[\r\n]")


def document_lines(path: str | Path, options: ReadOptions) -> Iterator[tuple[Location, str]]:
    """Return the lines of a file without their ends; a blank line is an error, except at the end of the file."""
    numbered = lines(path, options.encoding or UTF_8)
    stripped = ((line, text.removesuffix("\n").removesuffix("\r")) for line, text in numbered)
    for line, text in without_blank_end(stripped, lambda numbered: not numbered[1]):
        location = Location(path, line)
        if not text:
            raise location.expected("a document on every line", "the line is blank", "remove the line")
        yield location, text


def write_lines(path: str | Path, dataset: Dataset, rows: Iterable[str]) -> None:
    """Write the texts of a data set as lines that ``document_lines`` reads back: none is blank, or has a line end."""
    check_has_texts(dataset, path)
    with writing_text(path) as file:
        for number, row in enumerate(rows, start=1):
            if not row:
                rule = "a text or labels in every document"
                raise Location(path, number).expected(rule, "one has neither", "remove it")
            if number == 1 and row.startswith(BOM):
                rule = "a first character that is no byte order mark"
                raise Location(path, 1).expected(rule, "it is U+FEFF", "remove it")
            file.write(row + "\n")


def on_one_line(text: str) -> str:
    r"""Return the text with a space for each line end.

    >>> on_one_line("a\r\nb\n\nc")
    'a b  c'
    """
    return _LINE_ENDS.sub(" ", text)


def check_has_texts(dataset: Dataset, path: str | Path) -> None:
    """Raise DataError for a data set without texts."""
    if dataset.texts is None:
        problem = "the data set has features only"
        raise DataError(f"{path} must have texts, but {problem}; write .svm, .txt, .jsonl, .csv or .parquet")


def features_of(dataset: Dataset, path: str | Path) -> Csr:
    """Return the features of a data set; raise DataError if it has none."""
    if dataset.X is None:
        remedy = "write .jsonl, .csv or .parquet, or compute features first"
        raise DataError(f"{path} must have features, but the data set has texts only; {remedy}")
    return dataset.X


def names_as_words(labels: LabelSpace, spaces: re.Pattern[str], path: str | Path) -> Mapping[Label, str]:
    """Return each label, by name and by id, as one word: every match of ``spaces`` in its name becomes ``_``.

    >>> names_as_words(LabelSpace(["apple pie"]), re.compile(" "), "a.txt")[0]
    'apple_pie'
    """
    words: dict[Label, str] = {}
    name_of: dict[str, str] = {}
    for label, name in enumerate(labels.names):
        word = spaces.sub("_", name)
        other = name_of.setdefault(word, name)
        if not word.strip() or word != word.strip() or other != name:
            problem = f"{other!r} and {name!r} both become {word!r}" if other != name else f"one is {name!r}"
            rule = f"label names in {path} must be words, and differ with _ for spaces"
            raise DataError(f"{rule}, but {problem}; rename one, or write .jsonl")
        words[label] = words[name] = word
    return words


def iter_lines(path: str | Path, encoding: str = UTF_8) -> Iterator[Record]:
    """Return each line of plain text as a record whose id is the line number from 0; ``-`` is the standard input."""
    for line, text in lines(path, encoding):
        yield Record(str(line - 1), text.removesuffix("\n").removesuffix("\r"), line=line)
