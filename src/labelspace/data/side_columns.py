"""Read what stands beside the texts: numbers, categories and vectors, in columns of a table or in a file of vectors."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from labelspace.data.array_files import Array, read_array, read_tensor
from labelspace.data.cells import cell_values
from labelspace.data.objects.frames import is_missing
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Record, shown
from labelspace.errors import DataError
from labelspace.types import Dataset, Fields, Floats, SideColumns, TextWithValues

VECTORS = "vectors"  # the column that a file of vectors stands for
LARGEST = float(np.finfo(np.float32).max)
VECTOR_FILES = (".npy", ".safetensors")


def with_values(text: str, row: Mapping[str, Any], columns: SideColumns, where: str) -> str:
    """Return a text with the values of its row; ``where`` names the row in messages.

    >>> with_values("Rye", {"price": "3.5", "tags": ["a", "b"]}, SideColumns(["price"], ["tags"]), "row 0").values
    {'price': 3.5, 'tags': ['a', 'b']}
    """
    if not columns:
        return text
    values: dict[str, Any] = {name: _number(row.get(name), name, where) for name in columns.numeric}
    values |= {name: cell_values(row.get(name)) for name in columns.categorical}
    if columns.vectors is not None:
        values[columns.vectors] = _vector(row.get(columns.vectors), columns.vectors, where)
    return TextWithValues(text, values)


def check_values(row: Mapping[str, Any], columns: SideColumns) -> None:
    """Raise DataError unless a row has the columns beside the text."""
    for name in columns.names:
        if name not in row:
            problem = f"one has: {', '.join(map(str, row))[:80]}; add it, as None where it is missing"
            raise DataError(f"a row must have the column {name!r}, which the model reads, but {problem}")


def reading_vectors(options: ReadOptions) -> tuple[str, ReadOptions]:
    """Return the column that a file of vectors stands for, and the options for all else."""
    columns, fields, beside = options.columns, options.fields, options.side_columns
    known = beside if columns is None else columns.beside
    if fields is not None:
        fields = replace(fields, beside=replace(fields.beside, vectors=None))
    if columns is not None:
        columns = replace(columns, beside=replace(columns.beside, vectors=None))
    beside = replace(beside, vectors=None)
    return known.vectors or VECTORS, replace(options, vectors_file=None, beside=beside, columns=columns, fields=fields)


def plain_row(text: str) -> dict[str, Any]:
    """Return the values beside a text as JSON has them; ``with_values`` reads them back.

    >>> plain_row(TextWithValues("Rye", {"price": float("nan"), "emb": np.ones(2)}))
    {'price': None, 'emb': [1.0, 1.0]}
    """
    values = text.values if isinstance(text, TextWithValues) else {}
    plain = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}
    return {name: None if value != value else value for name, value in plain.items()}  # NaN is no JSON


def _number(value: Any, name: str, where: str) -> float:  # noqa: ANN401 - of any table
    """Return a number, NaN for a missing one."""
    try:
        number = float("nan") if not cell_values(value) else float(value)
    except (TypeError, ValueError):
        problem = f"that of {where} is {shown(value)}; write a number such as 12.5, or nothing where it is missing"
        raise DataError(f"{name!r} must hold numbers, but {problem}") from None
    if abs(number) > LARGEST:
        problem = f"that of {where} is {shown(value)}; correct it, or leave it empty"
        raise DataError(f"{name!r} must hold finite numbers (float32), but {problem}")
    return number


def _vector(value: Any, name: str, where: str) -> Floats | None:  # noqa: ANN401 - of any table
    """Return a vector, None for a missing one."""
    if is_missing(value) or (isinstance(value, str) and not value.strip()):
        return None
    try:
        array = np.asarray(json.loads(value) if isinstance(value, str) else value)
        is_list = array.ndim == 1 and len(array) > 0 and array.dtype.kind in "iuf"
    except (ValueError, RecursionError):  # no JSON, or lists of different lengths
        is_list = False
    with np.errstate(over="ignore"):  # what overflows is refused next
        vector = array.astype(np.float32) if is_list else None
    if vector is None or not np.isfinite(vector).all():
        problem = f"that of {where} is {shown(value)}; write a list such as [0.5, 1.5]"
        raise DataError(f"{name!r} must hold lists of finite numbers (float32), but {problem}")
    return vector


def is_vector_file(name: str) -> bool:
    """Return whether this names a file of vectors, or a folder of them, and not a column."""
    return name.lower().endswith(VECTOR_FILES) or Path(name).is_dir()


def read_vectors(given: str, data: str | Path) -> Floats:
    """Read the vectors of the documents of a file: a file, or in a folder that with the name of the data file.

    Shape (n, dim), finite.
    """
    path = Path(given)
    if path.is_dir():
        stem = Path(data).name.split(".")[0]
        found = [path / f"{stem}{ending}" for ending in VECTOR_FILES if (path / f"{stem}{ending}").is_file()]
        if not found:
            raise DataError(f"{path} must have the vectors of {data}, but has no {stem}.npy; add it")
        path = found[0]
    if not path.is_file():
        raise DataError(f"a file of vectors must exist, but {path} does not; check the path, or name a column")
    return check_vectors(read_array(path) if path.suffix.lower() == ".npy" else read_tensor(path), str(path))


def check_vectors(array: Array, where: str) -> Floats:
    """Return a matrix of vectors as float32, (n, dim); raise DataError unless it is one, of finite numbers."""
    if array.ndim != 2 or array.dtype.kind not in "iuf" or not array.shape[1]:
        problem = f"has shape {array.shape} and type {array.dtype}"
        rule = f"{where} must hold a vector of numbers for each document, (n, dim)"
        raise DataError(f"{rule}, but {problem}; save such an array")
    with np.errstate(over="ignore"):  # what overflows is refused next
        vectors = array.astype(np.float32, copy=False)
    wrong = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(wrong):
        problem = f"row {wrong[0]} has NaN or infinity"
        raise DataError(f"{where} must hold finite numbers (float32), but {problem}; drop or fill those values")
    return vectors


def dataset_with_vectors(documents: Dataset, vectors: Floats, name: str, where: str) -> Dataset:
    """Return documents with a vector beside each text; ``where`` names the vectors in messages."""
    if documents.texts is None:
        raise DataError("vectors stand beside texts, but the data holds ready-made features; give a file with texts")
    if len(vectors) != len(documents):
        rule = f"{where} must have one row per document, but has {len(vectors):,} for {len(documents):,}"
        raise DataError(f"{rule}; give the vectors of these documents")
    texts = [_with_vector(text, vector, name) for text, vector in zip(documents.texts, vectors, strict=True)]
    columns, fields = documents.columns, documents.fields
    if columns is not None:
        return replace(documents, texts=texts, columns=replace(columns, beside=replace(columns.beside, vectors=name)))
    fields = Fields(label_separator=None) if fields is None else fields
    return replace(documents, texts=texts, fields=replace(fields, beside=replace(fields.beside, vectors=name)))


def records_with_vectors(records: Iterable[Record], vectors: Floats, name: str, where: str) -> Iterator[Record]:
    """Yield documents with a vector beside each text; raise DataError unless there are as many vectors."""
    n = 0
    for n, record in enumerate(records, start=1):
        if n > len(vectors):
            break
        yield record if record.text is None else replace(record, text=_with_vector(record.text, vectors[n - 1], name))
    if n != len(vectors):
        has = f"{len(vectors):,} for {'more' if n > len(vectors) else f'{n:,}'}"
        raise DataError(f"{where} must have one row per document, but has {has}; give the vectors of these documents")


def _with_vector(text: str, vector: Floats, name: str) -> TextWithValues:
    values = text.values if isinstance(text, TextWithValues) else {}
    return TextWithValues(text, {**values, name: vector})
