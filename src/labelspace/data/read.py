"""``labelspace.read``: read the files and folders that the command line takes as data sets."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Literal, Unpack, get_args, overload

from labelspace.data.columns import name_list, table_columns
from labelspace.data.read_options import FileOptions, ReadOptions
from labelspace.data.source import open_source
from labelspace.errors import DataError, ParameterError
from labelspace.options import check_names
from labelspace.types import Dataset

Split = Literal["train", "dev", "test"]
logger = logging.getLogger("labelspace.data")


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


def parse_options(options: FileOptions, say: Callable[[str], None]) -> ReadOptions:
    """Return the options of reading that are given by name; ``say`` is called with what is detected of a file."""
    check_names(options, FileOptions, " of read")
    names = {key: tuple(name_list(key, options[key])) for key in ("text", "labels") if key in options}
    tables = {key: options[key] for key in ("inputs", "outputs") if key in options}
    others = {key: value for key, value in options.items() if key not in names | tables}
    return ReadOptions(**others, **names, columns=table_columns(options), say=say)  # type: ignore[arg-type]
