"""Folders of the Extreme Classification Repository with a file per matrix, and texts as JSON lines.

``trn_X_Xf.txt`` has the features and ``trn_X_Y.txt`` the labels (``pair_rows``); ``trn.json.gz`` the texts, as lines
``{"uid", "title", "content", "target_ind": [label ids], "target_rel": [values]}``; ``lbl.json.gz`` the names of the
labels, as lines ``{"uid", "title"}``, or ``Y.txt``, one per line. ``filter_labels_train.txt`` has lines ``document
label``: pairs that do not count in an evaluation. For the test split, the names have ``tst`` and ``test``.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from labelspace.data.archives import is_data_file, without_compression
from labelspace.data.files import UTF_8, lines, writing_text
from labelspace.data.formats.base import MatrixFormat
from labelspace.data.label_files import with_hierarchy
from labelspace.data.label_mapping import check_rows, distinct_names, in_label_space, label_ones
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import MAX_LABEL_ID, Location, Record, checked_id, is_numbered, parse_object
from labelspace.data.sparse_rows import check_width, pair_lines, read_pairs, write_pairs
from labelspace.data.texts import TextList
from labelspace.errors import DataError
from labelspace.types import Csr, Dataset, LabelSpace

SPLITS = {"train": "trn", "dev": "val", "test": "tst"}
NAMES = "lbl.json"
_FILTERS = {"trn": "filter_labels_train.txt", "val": "filter_labels_val.txt", "tst": "filter_labels_test.txt"}
_NAME = r"(trn|val|tst)(_X_Xf\.txt|_X_Y\.txt|\.json)"


def split_files(folder: Path) -> dict[str, Path]:
    """Return the file to read of each split of a folder: its texts if there are any, else its features."""
    found = {
        split: (_file(folder, f"{short}.json") or _file(folder, f"{short}_X_Xf.txt")) for split, short in SPLITS.items()
    }
    return {split: path for split, path in found.items() if path is not None}


def read(path: str | Path, labels: LabelSpace | None = None, options: ReadOptions | None = None) -> Dataset:
    """Read a split by its file of texts or of features; see ``read_dataset`` for the label space.

    With the features, the texts in the folder are read too; given the texts, the features are not read. A value above 0
    marks a label.
    """
    path = Path(path)
    split = _split(path)
    folder = path.parent
    text_path, y_path = _file(folder, f"{split}.json"), _file(folder, f"{split}_X_Y.txt")
    x_path = path if "_X_Xf." in path.name else None
    unread = None if x_path is not None else _file(folder, f"{split}_X_Xf.txt")
    if unread is not None and options is not None:
        options.say(f"{path}: texts; the features in {unread.name} are not read, unless {path.name} is moved away")
    if x_path is None and text_path is None:
        raise DataError(f"{path} must have texts or features next to it, but has neither; add {split}.json.gz")
    encoding = (options or ReadOptions()).encoding or UTF_8
    texts = None if text_path is None else _read_texts(text_path, encoding, with_labels=y_path is None)
    X = None if x_path is None else read_pairs(x_path)
    if X is not None:
        check_width(X.shape[1], X.nnz, path)
    Y = _labels(y_path, texts, folder, split)
    sizes = {"labels": Y.shape[0], path.name: None if X is None else X.shape[0]}
    check_rows({**sizes, "texts": None if texts is None else texts.n})
    own = _names(folder, encoding)
    filtered = _read_filter(folder / _FILTERS[split], Y.shape)
    Y, space = in_label_space(Y, own, labels, y_path or text_path or path)
    if filtered is not None:
        filtered, space = in_label_space(filtered, own, space, path)
    space = with_hierarchy(path, space)
    for matrix in (Y, filtered):
        if matrix is not None:
            matrix.resize(matrix.shape[0], len(space))
    some = (None, None) if texts is None else (texts.texts.finish(), texts.ids.finish())
    return Dataset(Y, space, some[0], X, some[1], folder.name, filtered=filtered)


def documents(path: str | Path, options: ReadOptions | None = None) -> Iterator[Record]:
    """Return the documents without labels, for predictions: texts, or rows of features."""
    path = Path(path)
    _split(path)
    if ".json" in path.name:
        for number, (location, row) in enumerate(_rows(path, (options or ReadOptions()).encoding or UTF_8)):
            yield Record(checked_id(row.get("uid"), number, location), _text(row, location), line=location.line)
        return
    for number, pairs in pair_lines(path):
        yield Record(str(number - 2), None, pairs, line=number)


def _split(path: Path) -> str:
    match = re.fullmatch(_NAME, without_compression(path.name))
    if match is None:
        rule = "a file of the repository must be called trn.json.gz, trn_X_Xf.txt or trn_X_Y.txt, or with tst for trn"
        raise DataError(f"{rule}, but is {path.name}; rename it")
    return match[1]


def _file(folder: Path, name: str) -> Path | None:
    """Return a file of a folder, which may be compressed; None if there is none."""
    return next(filter(is_data_file, (folder / (name + end) for end in ("", ".gz", ".zst"))), None)


@dataclass
class _Texts:
    """The texts of a split, and its labels if they are read."""

    texts: TextList = field(default_factory=TextList)
    ids: TextList = field(default_factory=TextList)
    labels: array[int] = field(default_factory=lambda: array("i"))
    counts: array[int] = field(default_factory=lambda: array("i"))
    n: int = 0

    def matrix(self) -> Csr:
        """Return the labels of the documents, with as many columns as the largest id needs."""
        columns = np.array(self.labels, np.int32)
        indptr = np.concatenate([[0], np.cumsum(np.array(self.counts, np.int64))])
        shape = len(self.counts), int(columns.max(initial=-1)) + 1
        matrix = sp.csr_matrix((np.ones(len(columns), np.float32), columns, indptr), shape=shape)
        matrix.sum_duplicates()
        return matrix


def _read_texts(path: Path, encoding: str, with_labels: bool) -> _Texts:
    found = _Texts()
    for number, (location, row) in enumerate(_rows(path, encoding)):
        found.n += 1
        found.texts.append(_text(row, location))
        found.ids.append(checked_id(row.get("uid"), number, location))
        if with_labels:
            ids = _target_ids(row, location)
            found.labels.extend(ids)
            found.counts.append(len(ids))
    return found


def _rows(path: Path, encoding: str) -> Iterator[tuple[Location, dict[str, object]]]:
    for number, line in lines(path, encoding):
        if line.strip():
            yield (location := Location(path, number)), parse_object(line, location)


def _text(row: Mapping[str, object], location: Location) -> str:
    """Return title and content, each on lines of its own."""
    parts = [row.get(key) for key in ("title", "content")]
    wrong = next((part for part in parts if part is not None and not isinstance(part, str)), None)
    if wrong is not None or parts == [None, None]:
        problem = f"one is {str(wrong)[:40]!r}" if wrong is not None else "there is neither"
        raise location.expected("'title' or 'content' to be texts", problem, "write them in quotes")
    return "\n".join(part for part in parts if isinstance(part, str) and part)


def _target_ids(row: Mapping[str, object], location: Location) -> list[int]:
    ids, values = row.get("target_ind"), row.get("target_rel")
    is_ids = isinstance(ids, list) and all(type(id_) is int and 0 <= id_ <= MAX_LABEL_ID for id_ in ids)
    if not isinstance(ids, list) or not is_ids:
        problem = f"it is {str(ids)[:40]}"
        raise location.expected("'target_ind' to be a list of label ids from 0", problem, "write [3, 17]")
    if values is None:
        return ids
    if not isinstance(values, list) or len(values) != len(ids) or not all(type(v) in (int, float) for v in values):
        problem = f"it is {str(values)[:40]}"
        raise location.expected("'target_rel' to have a number for each of 'target_ind'", problem, "write 1 for each")
    return [id_ for id_, value in zip(ids, values, strict=True) if value > 0]


def _labels(y_path: Path | None, texts: _Texts | None, folder: Path, split: str) -> Csr:
    if y_path is not None:
        return label_ones(read_pairs(y_path), y_path)
    if texts is None:
        raise DataError(f"{folder} must have the labels of its documents, but has none; add {split}_X_Y.txt")
    return texts.matrix()


def _names(folder: Path, encoding: str) -> LabelSpace | None:
    """Return the names of the labels, or None; a name that several labels have is followed by the uid."""
    path = _file(folder, NAMES)
    if path is not None:
        rows = [
            (_text(row, at).split("\n")[0], checked_id(row.get("uid"), i, at))
            for i, (at, row) in enumerate(_rows(path, encoding))
        ]
        return LabelSpace(distinct_names([name for name, _ in rows], [uid for _, uid in rows]))
    path = _file(folder, "Y.txt")
    if path is None:
        return None
    names = [line.strip() for _, line in lines(path, encoding)]
    return LabelSpace(distinct_names(names, map(str, range(len(names)))))


def _read_filter(path: Path, shape: tuple[int, int]) -> Csr | None:
    """Return the pairs of a document and a label that do not count, as a matrix of ones."""
    if not is_data_file(path):
        return None
    pairs: array[int] = array("q")
    for number, line in lines(path):
        fields = line.split()
        if not fields:
            continue
        is_pair = len(fields) == 2 and all(text.isascii() and text.isdigit() and len(text) < 18 for text in fields)
        if not is_pair or int(fields[0]) >= shape[0] or int(fields[1]) >= shape[1]:
            rule = f"a document below {shape[0]} and a label below {shape[1]}"
            raise Location(path, number).expected(rule, f"found {line.strip()[:40]!r}", "correct the line")
        pairs.extend(map(int, fields))
    rows, columns = np.array(pairs, np.int64).reshape(-1, 2).T
    return label_ones(sp.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=shape), path)


def write(path: str | Path, dataset: Dataset) -> None:
    """Write all files of a split by the name of one: texts as ``trn.json.gz``, features as ``trn_X_Xf.txt``.

    The first line of a text is its title. Names of labels are ``lbl.json.gz``, their URIs the ``uid``.
    """
    path = Path(path)
    split = _split(path)
    folder = path.parent
    write_pairs(folder / f"{split}_X_Y.txt", dataset.Y)
    if dataset.X is not None:
        write_pairs(folder / f"{split}_X_Xf.txt", dataset.X)
    if dataset.texts is not None:
        _write_texts(folder / f"{split}.json.gz", dataset)
    if not is_numbered(dataset.labels):
        with writing_text(folder / f"{NAMES}.gz") as file:
            for label, name in enumerate(dataset.labels.names):
                uid = dataset.labels.concept(label).uri or str(label)
                file.write(json.dumps({"uid": uid, "title": name}, ensure_ascii=False) + "\n")
    if dataset.filtered is not None:
        pairs = dataset.filtered.tocoo()
        with writing_text(folder / _FILTERS[split]) as file:
            file.writelines(f"{row} {label}\n" for row, label in zip(pairs.row, pairs.col, strict=True))


def _write_texts(path: Path, dataset: Dataset) -> None:
    Y, ids = dataset.Y, dataset.ids
    with writing_text(path) as file:
        for row, text in enumerate(dataset.texts or ()):
            labels = Y.indices[Y.indptr[row] : Y.indptr[row + 1]].tolist()
            title, _, content = text.partition("\n")
            uid = str(row) if ids is None else ids[row]
            target = {"target_ind": labels, "target_rel": [1.0] * len(labels)}
            line = {"uid": uid, "title": title, "content": content, **target}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


_SPLITS = {split: f"{short}_X_Xf.txt" for split, short in SPLITS.items()}
_TITLE = "XMC repository format, a file per matrix"
FORMAT = MatrixFormat(
    "xmc_pairs", _TITLE, (), write, read=read, documents=documents, file_names=_NAME, split_names=_SPLITS
)
