"""Matrices of NumPy and SciPy: features in ``train.X.npz`` or ``X_train.npy``, their labels in ``train.Y.npz``.

A file of features has ``X`` as a part of its name, between dots, underscores or hyphens; the file of its labels
has ``Y`` or ``y`` in its place, and ends with .npz or .npy. One .npz may hold both: the arrays ``X`` and ``Y`` (or
``y``), and optionally ``ids`` and ``label_names``. Labels are a matrix with a column per label, in which values above
0 mark the labels of a document; or, of .npy and ``y``, one number or name per document.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.data.archives import is_data_file
from labelspace.data.array_files import array_names, dense_rows, read_array, read_arrays, read_matrix, write_matrix
from labelspace.data.formats.base import MatrixFormat
from labelspace.data.label_files import labels_of_file, with_hierarchy
from labelspace.data.label_mapping import check_rows, in_label_space, label_ones
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import MAX_LABEL_ID, Record
from labelspace.data.sparse_rows import check_width, format_features
from labelspace.errors import DataError
from labelspace.types import Csr, Dataset, LabelSpace

ENDINGS = (".npy", ".npz")
_X = re.compile(r"(?<![^._-])[Xx](?=[._-])")  # as a part of a file name


def read(path: str | Path, labels: LabelSpace | None = None, options: ReadOptions | None = None) -> Dataset:
    """Read features with their labels; see ``read_dataset`` for the label space.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/a.npz", X=np.eye(2), y=np.array(["tea", "cup"]))
    ...     dataset = read(f"{folder}/a.npz")
    >>> dataset.labels.names, dataset.Y.toarray().tolist()
    (['cup', 'tea'], [[0.0, 1.0], [1.0, 0.0]])
    """
    path = Path(path)
    if _is_joint(path):
        return _read_joint(path, labels)
    beside = labels_file(path)
    X = _features(read_matrix(path), path)
    Y, own = _labels(beside, read_array(beside) if beside.suffix.lower() == ".npy" else read_matrix(beside))
    own = labels_of_file(_without_x(path)) if own is None else own
    return _dataset(_without_x(path), X, *in_label_space(Y, own, labels, beside))


def documents(path: str | Path, options: ReadOptions | None = None) -> Iterator[Record]:
    """Return the rows of features as records without labels, for predictions."""
    path = Path(path)
    arrays = read_arrays(path) if _is_joint(path) else {}
    X = _features(dense_rows(arrays["X"], f"{path}, array 'X'") if arrays else read_matrix(path), path)
    ids = _texts(arrays["ids"], f"{path}, array 'ids'") if "ids" in arrays else map(str, range(X.shape[0]))
    for row, (id_, features) in enumerate(zip(ids, format_features(X), strict=True)):
        yield Record(id_, None, features, line=row + 1)


def labels_file(path: Path) -> Path:
    """Return the file with the labels of a file of features."""
    if not _X.search(path.name):
        rule = "a file of features must have X in its name, and the labels in a file next to it"
        remedy = f"name them {path.stem}.X{path.suffix} and {path.stem}.Y{path.suffix}, or save X and Y in one .npz"
        raise DataError(f"{rule}, but is {path.name}; {remedy}")
    stem = path.name[: -len(path.suffix)]
    possible = [path.with_name(_X.sub(y, stem + ".", count=1)[:-1] + ending) for y in "Yy" for ending in ENDINGS]
    existing = list(dict.fromkeys(file for file in possible if is_data_file(file)))
    if len(existing) != 1:
        found = " and ".join(file.name for file in existing) or "none"
        expected = " or ".join(file.name for file in possible[:2])
        raise DataError(f"{path} must have one file of labels next to it, {expected}, but there is {found}; add it")
    return existing[0]


def _without_x(path: Path) -> Path:
    """Return the name of a file without its part X, as its label files have it: ``train.X.npz`` -> ``train.npz``."""
    name = re.sub(r"^[._-]|(?<=[._-])[._-]", "", _X.sub("", path.name, count=1), count=1)
    return path.with_name(name) if "." in name else path


def _is_joint(path: Path) -> bool:
    """Return whether a file holds both features and labels."""
    return path.suffix.lower() == ".npz" and "X" in array_names(path)


def _read_joint(path: Path, labels: LabelSpace | None) -> Dataset:
    arrays = read_arrays(path)
    names = {"Y", "y"}.intersection(arrays)
    unknown = sorted(set(arrays) - {"X", "Y", "y", "ids", "label_names"})
    if len(names) != 1 or unknown:
        problem = f"there is {unknown[0]!r} too" if unknown else f"there are {', '.join(sorted(arrays))}"
        rule = f"{path} must hold the arrays X and Y (or y), and may hold ids and label_names"
        raise DataError(f"{rule}, but {problem}; save it again with numpy.savez")
    X = _features(dense_rows(arrays["X"], f"{path}, array 'X'"), path)
    Y, own = _labels(f"{path}, array {(name := names.pop())!r}", arrays[name])
    if "label_names" in arrays:
        if own is not None:
            raise DataError(f"{path} must name its labels once, but has names in y and in label_names; remove one")
        own = LabelSpace(_texts(arrays["label_names"], f"{path}, array 'label_names'"))
    own = labels_of_file(path) if own is None else own
    ids = _texts(arrays["ids"], f"{path}, array 'ids'") if "ids" in arrays else None
    return _dataset(path, X, *in_label_space(Y, own, labels, path), ids)


def _dataset(path: Path, X: Csr, Y: Csr, space: LabelSpace, ids: list[str] | None = None) -> Dataset:
    check_rows({"X": X.shape[0], "Y": Y.shape[0], "ids": None if ids is None else len(ids)})
    space = with_hierarchy(path, space)
    Y.resize(Y.shape[0], len(space))
    return Dataset(Y, space, X=X, ids=ids, name=path.name.split(".")[0])


def _features(X: Csr, path: Path) -> Csr:
    check_width(X.shape[1], X.nnz, path)
    return X


def _labels(where: str | Path, array: npt.NDArray[Any] | Csr) -> tuple[Csr, LabelSpace | None]:
    """Return a matrix of labels, and their names if there is one name per document."""
    if sp.issparse(array):
        return label_ones(array, where), None
    if array.ndim == 1:
        return _one_per_document(array, where)
    return label_ones(dense_rows(array, str(where)), where), None


def _one_per_document(array: npt.NDArray[Any], where: str | Path) -> tuple[Csr, LabelSpace | None]:
    own = None
    if array.dtype.kind in "SU":
        names, columns = np.unique(np.array(_texts(array, str(where))), return_inverse=True)
        own = LabelSpace(names.tolist())
    elif array.dtype.kind in "iu" and (not len(array) or (array.min() >= 0 and array.max() <= MAX_LABEL_ID)):
        columns = array
    else:
        problem = f"has type {array.dtype}" if array.dtype.kind not in "iu" else f"has {array.min()} to {array.max()}"
        rule = f"{where} must be a matrix with a column per label, or one name or number from 0 per document"
        raise DataError(f"{rule}, but {problem}; save one of these")
    n_labels = int(columns.max(initial=-1)) + 1
    parts = np.ones(len(array), np.float32), columns.astype(np.int32), np.arange(len(array) + 1)
    return sp.csr_matrix(parts, shape=(len(array), n_labels)), own


def _texts(array: npt.NDArray[Any], where: str) -> list[str]:
    """Return a 1-d array of texts or integers as texts."""
    if array.ndim != 1 or array.dtype.kind not in "SUiu":
        problem = f"has shape {array.shape} and type {array.dtype}"
        raise DataError(f"{where} must be a 1-d array of texts, but {problem}; save such an array")
    values = array.tolist()
    return [value.decode(errors="replace") if isinstance(value, bytes) else str(value) for value in values]


def write(path: str | Path, dataset: Dataset) -> None:
    """Write features and labels: ``a.X.npz`` and ``a.Y.npz``, sparse matrices of SciPy."""
    path = Path(path)
    if dataset.X is None:
        raise DataError(f"{path} must have features, but the data set has texts only; write .jsonl, .csv or .parquet")
    if path.suffix.lower() != ".npz" or not _X.search(path.name):
        raise DataError(f"features must be written to a file such as train.X.npz, but it is {path.name}; name it so")
    write_matrix(path, dataset.X)
    write_matrix(path.with_name(_X.sub("Y", path.name, count=1)), dataset.Y)


FORMAT = MatrixFormat(
    "matrices", "NumPy or SciPy matrices", ENDINGS, write, read=read, documents=documents, streams=False
)
