"""Data folders with ``train.*``, ``dev.*``, ``test.*``, single files, and streams of documents to tag.

``labelspace.read`` reads the files and folders that the command line takes as data sets.
"""

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Unpack, get_args, overload

from labelspace.data.archives import check_no_pipe, files_in, is_data_file, is_folder, without_compression
from labelspace.data.cache.folder import CacheFolder
from labelspace.data.dataset_file import (
    KNOWN,
    detect_format,
    labeled_layout,
    layout_of_names,
    read_dataset,
    read_head,
    settle,
)
from labelspace.data.fields import ColumnSample, describe_fields, detect_fields, field_records
from labelspace.data.files import STDIN, detect_encoding
from labelspace.data.formats import fasttext, matrices, pecos, text_folder, xmc_pairs
from labelspace.data.formats.base import AnyFormat, RowFormat, iter_lines
from labelspace.data.formats.json_documents import json_rows
from labelspace.data.formats.registry import FORMATS, file_format, format_named, formats_of
from labelspace.data.label_files import LABELS, SPLITS, are_labels, read_labels, with_hierarchy
from labelspace.data.read_options import FileOptions, ReadOptions, say_nothing
from labelspace.data.records import Record, Rows
from labelspace.data.sample_weights import with_weights
from labelspace.data.side_columns import is_vector_file, read_vectors, reading_vectors, records_with_vectors
from labelspace.data.table import is_table, name_list, side_columns, table_columns, table_records
from labelspace.errors import DataError, ParameterError
from labelspace.options import check_names
from labelspace.types import Columns, Dataset, Fields, LabelSpace

__all__ = ["Source", "iter_records", "open_source", "read_dataset", "split_file", "test_file", "writable_format"]
_XMC = ".txt"
Split = Literal["train", "dev", "test"]
logger = logging.getLogger("labelspace.data")


def write_dataset(dataset: Dataset, path: str | Path, format: str | None = None) -> None:
    """Write a data file; its extension is the format, unless that is named.

    The names and the hierarchy of the labels are separate files: ``write_labels`` and ``write_hierarchy``.
    """
    writable_format(path, format).write(path, dataset)


def writable_format(path: str | Path, name: str | None = None) -> AnyFormat:
    """Return the format of a file to write, by its name or as named; raise DataError for an unknown name."""
    possible = [format_named(name)] if name is not None else formats_of(path)
    if name is None and file_format(path) == ".json":  # JSON lines may have that ending too; a list is valid JSON
        return FORMATS["json"]
    if not possible:
        known = ", ".join(ending for fmt in FORMATS.values() for ending in fmt.endings)
        rule = f"the name of a data file must end with {known}, each also with .gz or .zst"
        raise DataError(f"{rule}, but is {Path(path).name!r}; rename it")
    return possible[-1]


def iter_records(
    path: str | Path,
    ready_made: bool = False,
    columns: Columns | None = None,
    options: ReadOptions | None = None,
    known: LabelSpace | None = None,
) -> Iterator[Record]:
    """Stream the documents of a file of any size, without labels; with ``columns`` it may be such a table.

    With the labels ``known`` of a model, documents of a file with labels have them.

    A ``.txt`` is plain text, one document per line; with ``ready_made`` it has rows of features, as for
    ``read_dataset``. Files without a known extension, and ``-`` (the standard input), are JSON lines if the first line
    starts with a brace, else plain text.
    """
    options = options or ReadOptions()
    options = options if columns is None else replace(options, columns=columns)
    if options.vectors_file is not None:
        name, rest = reading_vectors(options)
        vectors = read_vectors(options.vectors_file, path)
        records = iter_records(path, ready_made, options=rest, known=known)
        return records_with_vectors(records, vectors, name, options.vectors_file)
    if options.format is None and _is_plain(path, ready_made, options):
        encoding = options.encoding or detect_encoding(path)
        return (
            iter_lines(path, encoding) if file_format(path) == _XMC else _lines_or_json(path, encoding, options, known)
        )
    fmt, options = settle(path, options)
    return _streamed(path, fmt, options, known) if isinstance(fmt, RowFormat) else fmt.documents(path, options)


def _is_plain(path: str | Path, ready_made: bool, options: ReadOptions) -> bool:
    """Return whether a file has one text per line, or JSON lines without saying so by its name."""
    if str(path) == STDIN or (not file_format(path) and not formats_of(path) and not Path(path).is_dir()):
        return True
    if ready_made or file_format(path) != _XMC or Path(path).is_dir():
        return False
    by_name = formats_of(path)[0].file_names is not None
    return not by_name and not fasttext.recognizes(read_head(path, options.encoding))


def _streamed(path: str | Path, fmt: RowFormat, options: ReadOptions, known: LabelSpace | None) -> Iterator[Record]:
    labeled = None
    if known is not None and is_data_file(Path(path)):
        labeled = labeled_layout(path, fmt, known, options)
    with fmt.rows(path, options) as rows:
        if known is not None and not is_data_file(Path(path)):
            labeled = layout_of_names(path, rows.names(), options)
        yield from _records(path, rows, options, labeled)


def _records(
    path: str | Path, rows: Rows, options: ReadOptions, labeled: Columns | Fields | None = None
) -> Iterator[Record]:
    """Return the documents of open rows; ``labeled`` says what the columns of documents with labels hold."""
    if labeled is not None:
        return layout_records(path, rows, labeled, with_labels=True)
    layout = document_layout(path, rows.names(), options)
    return iter(()) if layout is None else layout_records(path, rows, layout)


def document_layout(path: str | Path, names: Sequence[str], options: ReadOptions) -> Columns | Fields | None:
    """Return what columns hold of documents to tag, by their names only: a pipe is read once. None without columns."""
    if options.columns is not None and is_table(names, options.columns, with_labels=False):
        return options.columns
    if not names:
        return None
    fields = detect_fields(ColumnSample(path, names), options, with_labels=False)
    described = describe_fields(fields)
    if described and (options.fields is None or fields.text != options.fields.text):
        options.say(f"{path}: {described}")
    return fields


def layout_records(
    path: str | Path, rows: Rows, layout: Columns | Fields, first: int = 0, with_labels: bool = False
) -> Iterator[Record]:
    """Return the documents to tag of open rows; ``first`` is the number of the first row, by default its id."""
    if isinstance(layout, Columns):
        return table_records(path, rows, layout, with_labels=with_labels, first=first)
    return field_records(rows, layout, with_labels=with_labels, first=first)


def _lines_or_json(path: str | Path, encoding: str, options: ReadOptions, known: LabelSpace | None) -> Iterator[Record]:
    plain = iter_lines(path, encoding)
    first = next(plain, None)
    records = plain if first is None else chain([first], plain)
    if first is None or not (first.text or "").lstrip().startswith("{"):
        yield from records
        return
    rows = json_rows(path, ((record.line, record.text or "") for record in records))
    labeled = None
    if known is not None:
        usual = options.labels or (() if options.fields is None else options.fields.labels) or ("labels",)
        names = [*rows.names(), *usual]  # the first document may have no labels
        labeled = layout_of_names(path, list(dict.fromkeys(names)), options)
    yield from _records(path, rows, options, labeled)


@dataclass
class Source:
    """The files of the splits of a data set; each is read on demand.

    Validation and test files are read as the training file was, with its columns and label separator.
    """

    path: Path
    train_path: Path
    dev_path: Path | None = None
    test_path: Path | None = None
    labels_only: bool = False  # train_path is a file of labels; there are no training documents
    options: ReadOptions = field(default_factory=ReadOptions)
    cache: CacheFolder | None = None  # that the training documents are read into
    weights: str | None = None  # the column with the weights of the training documents

    @property
    def columns(self) -> Columns | None:
        """Inputs and outputs if the files are tables, else None."""
        return self.options.columns

    def read_as(self, columns: Columns | None, fields: Fields | None) -> "Source":
        """Return this source, to be read as the training file of a model was."""
        return replace(self, options=replace(self.options, columns=columns, fields=fields))

    @property
    def has_test(self) -> bool:
        """True if there is a test file."""
        return self.test_path is not None

    def train(self) -> Dataset:
        """Read the training documents."""
        if self.labels_only:
            remedy = f"add train.* ({KNOWN}), or tag by label names with the method lexical"
            raise DataError(f"there must be training documents, but {self.path} has labels only; {remedy}")
        read = read_dataset if self.cache is None else self.cache.read
        documents = read(self.train_path, options=self.options)
        if self.weights is not None:
            documents = with_weights(documents, self.train_path, self.weights, self.options)
        self.options = self.options.following(documents.fields)
        return documents

    def labels(self) -> LabelSpace:
        """Return the labels of a source without documents, with their hierarchy."""
        return with_hierarchy(self.train_path, read_labels(self.train_path))

    def dev(self, labels: LabelSpace | None = None) -> Dataset | None:
        """Read the validation documents, if any; ``labels`` are those of the training documents."""
        return None if self.dev_path is None else read_dataset(self.dev_path, labels, options=self.options)

    def test(self, labels: LabelSpace | None = None) -> Dataset | None:
        """Read the test documents, if any; ``labels`` are those of the training documents."""
        return None if self.test_path is None else read_dataset(self.test_path, labels, options=self.options)

    def splits(self) -> dict[str, Dataset]:
        """Read the documents of all splits by name: train, and dev and test if there are any."""
        train = self.train()
        others = {"dev": self.dev(train.labels), "test": self.test(train.labels)}
        return {"train": train, **{name: part for name, part in others.items() if part is not None}}


def open_source(path: str | Path, options: ReadOptions | None = None) -> Source:
    r"""Return the splits of a folder; a single file is a training split, or the labels if it is a ``*labels.jsonl``.

    With ``columns`` among the options the splits are tables, and there must be training rows.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "train.jsonl").write_text('{"text": "it purrs", "labels": ["cat"]}\n')
    ...     source = open_source(folder)
    ...     len(source.train()), source.has_test
    (1, False)
    """
    try:
        path = Path(path)
    except TypeError as error:
        remedy = "write what it holds to a file, or give a data frame or lists to Tagger.fit"
        kind = type(path).__name__
        raise DataError(f"DATA must be the path of a file or folder, but is of type {kind}; {remedy}") from error
    options = options or ReadOptions()
    if not path.exists() and not is_data_file(path):
        raise DataError(f"DATA must be a file or a folder, but {path} does not exist; check the path")
    check_no_pipe(path)
    if not is_folder(path):
        labels_only = are_labels(path) and options.columns is None
        if not labels_only:
            # Refuses an unknown format before anything is done; what is detected is reported when the file is read.
            detect_format(path, replace(options, say=say_nothing))
        return Source(path, path, labels_only=labels_only, options=options)
    train, dev, test = (split_file(path, split) for split in SPLITS)
    if train is None and options.columns is None and is_data_file(path / LABELS):
        return Source(path, path / LABELS, dev, test, labels_only=True, options=options)
    if train is None and _holds_texts(path):
        return Source(path, path, dev, test, options=options)
    if train is None:
        raise DataError(f"a data folder must have train.* ({KNOWN}), but {path} has none; add it, or give a file")
    return Source(path, train, dev, test, options=options)


def _holds_texts(folder: Path) -> bool:
    """Return whether a folder has documents, each in a .txt of its own."""
    return folder.is_dir() and text_folder.recognizes_folder(folder)


def split_file(folder: Path, split: str) -> Path | None:
    """Return the file of a split in a folder or an archive, or None; a folder of that name with texts is one too."""
    for files in (xmc_pairs.split_files(folder), pecos.split_files(folder)):
        if "train" in files or split in files:
            return files.get(split)
    stems = SPLITS[split]
    found = [file for file in files_in(folder) if _is_split(file, stems)]
    found += [folder / stem for stem in stems if (folder / stem).is_dir() and _holds_texts(folder / stem)]
    if len(found) > 1:
        names = " and ".join(file.name for file in found)
        raise DataError(f"there must be one {split}.* in {folder}, but there are {names}; remove all but one")
    return found[0] if found else None


def test_file(folder: Path) -> Path | None:
    """Return the test file of a folder; of a folder of texts without splits, the folder."""
    file = split_file(folder, "test")
    return folder if file is None and split_file(folder, "train") is None and _holds_texts(folder) else file


def _is_split(file: Path, stems: tuple[str, ...]) -> bool:
    stem = without_compression(file.name.lower()).removesuffix(file_format(file))
    if file_format(file) in matrices.ENDINGS:  # train.X.npz, X_train.npy
        stem = re.sub(r"^x[._-]|[._-]x$", "", stem)
    return bool(file_format(file)) and stem in stems


@overload
def read(path: str | Path, split: None = None, **options: Unpack[FileOptions]) -> Dataset | dict[str, Dataset]: ...


@overload
def read(path: str | Path, split: Split, **options: Unpack[FileOptions]) -> Dataset: ...


def read(path: str | Path, split: Split | None = None, **options: Unpack[FileOptions]) -> Dataset | dict[str, Dataset]:
    r"""Return the documents of a file, or those of a folder by split: train, and dev and test if it has them.

    All splits share the label ids of the training documents; labels that only other splits have are appended. What is
    detected of a file is logged by ``labelspace.data``, at level INFO. ``FileOptions`` says what the options mean.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "train.csv").write_text("title,tags\nit purrs,cat;pet\nit barks,dog;pet\n")
    ...     _ = Path(folder, "test.csv").write_text("title,tags\nit sings,bird;pet\n")
    ...     splits = read(folder)
    ...     single = read(f"{folder}/train.csv", text="title", labels="tags", label_separator=";")
    >>> list(splits), splits["test"].labels.names, single.texts
    (['train', 'test'], ['cat', 'dog', 'pet', 'bird'], ['it purrs', 'it barks'])
    """
    if split is not None and split not in get_args(Split):
        raise ParameterError(f"split must be one of {', '.join(get_args(Split))}, but is {split!r}; use one of these")
    source = open_source(path, options=parse_options(options, logger.info))
    if split is None and Path(path).is_dir():
        return source.splits()
    train = source.train()
    if split in (None, "train"):
        return train
    documents = source.dev(train.labels) if split == "dev" else source.test(train.labels)
    if documents is None:
        raise DataError(f"{path} must have {split}.*, but has not; add it, or read another split")
    return documents


def parse_options(options: FileOptions, say: Callable[[str], None]) -> ReadOptions:
    """Return the options of reading that are given by name; ``say`` is called with what is detected of a file."""
    check_names(options, FileOptions, " of read")
    names: dict[str, Any] = {key: tuple(name_list(key, options[key])) for key in ("text", "labels") if key in options}
    file = options["vectors"] if "vectors" in options and is_vector_file(options["vectors"]) else None
    given: Any = {key: value for key, value in options.items() if file is None or key != "vectors"}
    used = {*names, "inputs", "outputs", "numeric", "categorical", "vectors"}
    others = {key: value for key, value in given.items() if key not in used}
    columns, beside = table_columns(given), side_columns(given)
    return ReadOptions(**others, **names, beside=beside or None, vectors_file=file, columns=columns, say=say)
