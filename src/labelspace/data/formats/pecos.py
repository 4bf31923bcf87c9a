"""Folders of PECOS: ``X.trn.npz`` and ``Y.trn.npz`` (SciPy), texts in ``X.trn.txt``, names in ``output-items.txt``.

The same with ``tst`` for the test split. The features may be in a folder of their own (``tfidf-attnxml/X.trn.npz``),
and dense (``X.trn.npy``). Texts and names are one per line.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from labelspace.data.archives import is_data_file
from labelspace.data.array_files import read_matrix, write_matrix
from labelspace.data.files import UTF_8, lines, writing_text
from labelspace.data.formats import matrices
from labelspace.data.formats.base import MatrixFormat, on_one_line
from labelspace.data.label_files import with_hierarchy
from labelspace.data.label_mapping import check_rows, distinct_names, in_label_space, label_ones
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Record, is_numbered
from labelspace.data.sparse_rows import check_width
from labelspace.errors import DataError
from labelspace.types import Dataset, LabelSpace

SPLITS = {"train": "trn", "dev": "val", "test": "tst"}
ITEMS = "output-items.txt"
FEATURES_FOLDER = "tfidf-attnxml"
_NAME = r"([XY])\.(trn|val|tst)\.(npz|npy|txt)"


def split_files(folder: Path) -> dict[str, Path]:
    """Return the file to read of each split of a folder: its texts if there are any, else its features."""
    found = {}
    for split, short in SPLITS.items():
        files = [folder / f"X.{short}.txt", *_feature_files(folder, short)]
        existing = [file for file in files if is_data_file(file)]
        if existing and is_data_file(folder / f"Y.{short}.npz"):
            found[split] = existing[0]
    return found


def _feature_files(folder: Path, short: str) -> list[Path]:
    """Return the paths where the features of a split may be."""
    folders = (folder, folder / FEATURES_FOLDER)
    return [place / f"X.{short}.{ending}" for place in folders for ending in ("npz", "npy")]


def read(path: str | Path, labels: LabelSpace | None = None, options: ReadOptions | None = None) -> Dataset:
    """Read a split by its file of features or of texts; see ``read_dataset`` for the label space.

    With the features, the texts in the same folder are read too. Given ``X.trn.txt`` or ``Y.trn.npz``, only the texts
    are read.
    """
    path = Path(path)
    folder, split = _place(path)
    y_path, text_path = folder / f"Y.{split}.npz", folder / f"X.{split}.txt"
    Y = label_ones(read_matrix(y_path), y_path)
    encoding = (options or ReadOptions()).encoding or UTF_8
    X = read_matrix(path) if path.name.startswith("X") and path.suffix != ".txt" else None
    if X is not None:
        check_width(X.shape[1], X.nnz, path)
    elif options is not None and (unread := [name for name in _feature_files(folder, split) if is_data_file(name)]):
        options.say(f"{path}: texts; the features in {unread[0].name} are not read, unless {path.name} is moved away")
    with_texts = X is None or is_data_file(text_path)
    texts = [text for _, text in _lines(text_path, encoding)] if with_texts else None
    n_texts = None if texts is None else len(texts)
    check_rows({y_path.name: Y.shape[0], path.name: None if X is None else X.shape[0], text_path.name: n_texts})
    Y, space = in_label_space(Y, _names(folder, encoding), labels, y_path)
    space = with_hierarchy(path, space)
    Y.resize(Y.shape[0], len(space))
    return Dataset(Y, space, texts, X, name=folder.name)


def documents(path: str | Path, options: ReadOptions | None = None) -> Iterator[Record]:
    """Return the documents without labels, for predictions: rows of features, or texts."""
    path = Path(path)
    if path.suffix != ".txt":
        yield from matrices.documents(path, options)
        return
    for number, text in _lines(path, (options or ReadOptions()).encoding or UTF_8):
        yield Record(str(number - 1), text, line=number)


def _place(path: Path) -> tuple[Path, str]:
    """Return the folder of the labels of a file, and its split: trn, val or tst."""
    match = re.fullmatch(_NAME, path.name)
    if match is None:
        rule = "a file of a PECOS folder must be called X.trn.npz, X.trn.txt or Y.trn.npz, or with tst or val for trn"
        raise DataError(f"{rule}, but is {path.name}; rename it")
    labels = f"Y.{match[2]}.npz"
    for folder in (path.parent, path.parent.parent):
        if is_data_file(folder / labels):
            return folder, match[2]
    raise DataError(f"{path} must have its labels in {labels} next to it, or a folder above, but lacks it; add it")


def _names(folder: Path, encoding: str) -> LabelSpace | None:
    path = folder / ITEMS
    if not is_data_file(path):
        return None
    names = [name for _, name in _lines(path, encoding)]
    return LabelSpace(distinct_names(names, map(str, range(len(names)))))


def _lines(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    for number, line in lines(path, encoding):
        yield number, line.rstrip("\r\n")


def write(path: str | Path, dataset: Dataset) -> None:
    """Write a split by the name of its file of features or of texts; line ends in texts become spaces.

    If features are in the folder ``tfidf-attnxml``, all other files are in the folder above.
    """
    path = Path(path)
    match = re.fullmatch(_NAME, path.name)
    if match is None or match[1] == "Y" or match[3] == "npy":
        raise DataError(f"a split of PECOS must be written to X.trn.npz or X.trn.txt, but it is {path.name}; rename it")
    if match[3] == "txt" and dataset.texts is None or match[3] == "npz" and dataset.X is None:
        has, needs = ("features", "X.trn.npz") if dataset.texts is None else ("texts", "X.trn.txt")
        raise DataError(f"{path.name} must have what the data set has, but that is {has}; write {needs} instead")
    folder = path.parent.parent if path.parent.name == FEATURES_FOLDER else path.parent
    write_matrix(folder / f"Y.{match[2]}.npz", dataset.Y)
    if dataset.X is not None:
        write_matrix(path.with_suffix(".npz"), dataset.X)
    if dataset.texts is not None:
        _write_lines(folder / f"X.{match[2]}.txt", map(on_one_line, dataset.texts))
    if not is_numbered(dataset.labels):
        _write_lines(folder / ITEMS, map(_on_one_line, dataset.labels.names))


def _on_one_line(name: str) -> str:
    if "\n" in name or "\r" in name:
        raise DataError(f"names in {ITEMS} must be on one line, but there is {name!r}; rename the label")
    return name


def _write_lines(path: Path, texts: Iterator[str]) -> None:
    with writing_text(path) as file:
        file.writelines(f"{text}\n" for text in texts)


_SPLITS = {split: f"X.{short}.npz" for split, short in SPLITS.items()}
FORMAT = MatrixFormat(
    "pecos", "PECOS", (), write, read=read, documents=documents, file_names=_NAME, split_names=_SPLITS, streams=False
)
