"""``labelspace.read``: the files and folders that the command line takes, as data sets."""

import logging
from pathlib import Path
from typing import Literal, TypedDict, Unpack, get_args, overload

from labelspace.data.objects.document_reader import Names, name_list, table_columns
from labelspace.data.read_options import ReadOptions
from labelspace.data.source import open_source
from labelspace.errors import DataError, ParameterError
from labelspace.types import Dataset

Split = Literal["train", "dev", "test"]
logger = logging.getLogger("labelspace.data")


class FileOptions(TypedDict, total=False):
    """How files are read, as the options of the command line say; what is left out is detected."""

    format: str
    """The format, such as csv or libsvm."""
    encoding: str
    """The encoding of the text."""
    delimiter: str
    """What separates the cells of a row."""
    label_separator: str
    """What separates the labels of a cell; ``none`` where each cell is one label."""
    text: Names
    """The columns with the texts, joined by a line end."""
    labels: Names
    """The columns with the labels."""
    id: str
    """The column with the ids."""
    normalize_labels: bool
    """Merge labels that differ in case or spaces alone."""
    inputs: Names
    """In place of ``text``: columns of any kind, of which a text is made."""
    outputs: Names
    """With ``inputs``: columns whose values are predicted."""


@overload
def read(path: str | Path, split: None = None, **options: Unpack[FileOptions]) -> Dataset | dict[str, Dataset]: ...


@overload
def read(path: str | Path, split: Split, **options: Unpack[FileOptions]) -> Dataset: ...


def read(path: str | Path, split: Split | None = None, **options: Unpack[FileOptions]) -> Dataset | dict[str, Dataset]:
    r"""The documents of a file, or of the splits of a folder by name: train, and dev and test where there are.

    All splits have the label ids of the training documents; labels of others are appended. What is detected
    of a file is logged by ``labelspace.data``, at level INFO.

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
    source = open_source(path, options=_read_options(options))
    train = source.train()
    if split == "train" or (split is None and not Path(path).is_dir()):
        return train
    found = {"train": train}
    for name, documents in (("dev", source.dev), ("test", source.test)):
        if split in (None, name) and (read_in := documents(train.labels)) is not None:
            found[name] = read_in
    if split is None:
        return found
    if split not in found:
        raise DataError(f"{path} must have {split}.*, but has not; add it, or read another split")
    return found[split]


def _read_options(options: FileOptions) -> ReadOptions:
    for name in options.keys() - FileOptions.__annotations__.keys():
        known = ", ".join(FileOptions.__annotations__)
        raise ParameterError(f"an option of read must be one of {known}, but is {name!r}; use one of these")
    names = {key: tuple(name_list(key, options[key])) for key in ("text", "labels") if key in options}
    tables = {key: options[key] for key in ("inputs", "outputs") if key in options}
    others = {key: value for key, value in options.items() if key not in names | tables}
    return ReadOptions(**others, **names, columns=table_columns(tables), say=logger.info)  # type: ignore[arg-type]
