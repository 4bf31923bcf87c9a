"""The documents of a data file as arrays in a folder: what was parsed once is mapped the next time.

The folder is written whole or not at all. Its ``documents.json`` says which files the documents were read from, with
which options, and the size and time of each array's file: an array that was changed or cut off is not used.
"""

import json
import math
import mmap
import os
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace import store
from labelspace.data.cache.scratch import write_pieces
from labelspace.data.texts import StoredTexts
from labelspace.kernels import large_arrays
from labelspace.store.atomic import replacing_folder
from labelspace.store.labels import label_arrays, parse_labels, write_names
from labelspace.types import Columns, Csr, Dataset, Fields, LabelSpace

Array = npt.NDArray[Any]
MapFile = Callable[[IO[bytes], int, bool], mmap.mmap]
"""Maps the first bytes of an open file; the flag says whether they are read in order."""

FORMAT = 1
MANIFEST = "documents.json"
MATRICES, TEXTS = ("Y", "X", "filtered"), ("texts", "ids")
_BLOCK = 2**24  # bytes after which memory is relieved
_DTYPES = {"float32", "int32", "int64", "uint8", "bool"}


class UnusableError(Exception):
    """Stored documents are missing, of other files or settings, changed or damaged; the message says which."""


def save_documents(folder: Path, documents: Dataset, key: Mapping[str, Any], reported: list[str]) -> None:
    """Write documents to a folder in place of those that are there.

    ``key`` says what they were read from, and ``reported`` what was detected.
    """
    texts = {name: StoredTexts.of(given) for name in TEXTS if (given := getattr(documents, name)) is not None}
    with replacing_folder(folder, lambda target: None) as work:
        arrays = _arrays(documents, texts)
        line_ends = write_names(work / store.LABELS, documents.labels)
        arrays |= {f"labels.{name}": array for name, array in label_arrays(documents.labels).items()}
        arrays["labels.line_ends"] = line_ends
        for name, array in arrays.items():
            _write(work / name, np.ascontiguousarray(array))
        about = {
            "format": FORMAT,
            "key": key,
            "said": reported,
            "name": documents.name,
            "columns": None if documents.columns is None else asdict(documents.columns),
            "fields": None if documents.fields is None else asdict(documents.fields),
            "widths": {name: getattr(documents, name).shape[1] for name in MATRICES if f"{name}.data" in arrays},
            "n_characters": {name: stored.n_characters for name, stored in texts.items()},
            "arrays": {name: [str(array.dtype), list(array.shape)] for name, array in arrays.items()},
            "files": {name: _stamp(work / name) for name in [store.LABELS, *arrays]},
        }
        text = json.dumps({"checksum": _checksum(about), **about}, ensure_ascii=False, indent=1)
        (work / MANIFEST).write_text(text, encoding="utf-8")


def open_documents(folder: Path, key: Mapping[str, Any], map_file: MapFile) -> tuple[Dataset, list[str]]:
    """Return the documents of a folder, mapped, and what was reported when they were read.

    Raise UnusableError if they are missing, or differ from those of ``key``.
    """
    about = _manifest(folder)
    if about["key"] != json.loads(json.dumps(key)):
        raise UnusableError(_difference(about["key"], key))
    for name, stamp in about["files"].items():
        if not (folder / name).is_file() or _stamp(folder / name) != stamp:
            raise UnusableError(f"{name} was changed since it was written")
    arrays = {name: _mapped(folder / name, dtype, shape, map_file) for name, (dtype, shape) in about["arrays"].items()}
    columns, fields = about["columns"], about["fields"]
    documents = Dataset(
        labels=_labels((folder / store.LABELS).read_bytes(), arrays),
        name=about["name"],
        columns=None if columns is None else Columns(**columns),
        fields=None if fields is None else Fields(**fields),
        **{name: _csr(arrays, name, width) for name, width in about["widths"].items()},
        **{name: _texts(arrays, name, n) for name, n in about["n_characters"].items()},
    )
    return documents, about["said"]


def _arrays(documents: Dataset, texts: Mapping[str, StoredTexts]) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for name in MATRICES:
        matrix: Csr | None = getattr(documents, name)
        if matrix is not None:
            matrix.sum_duplicates()  # nothing is done where its format is canonical, which is noted when it is opened
            arrays |= {f"{name}.{part}": getattr(matrix, part) for part in ("data", "indices", "indptr")}
    for name, stored in texts.items():
        arrays |= {f"{name}.content": stored.content, f"{name}.ends": stored.ends}
    return arrays


def _write(path: Path, array: Array) -> None:
    flat = array.reshape(-1).view(np.uint8)
    with path.open("wb") as file:
        for part in large_arrays.blocks(len(flat), _BLOCK):
            write_pieces(file, flat[part])


def _stamp(path: Path) -> list[int]:
    """Return the size and the time of a file; a write through a map changes the time too."""
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns]


def _checksum(about: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(about, sort_keys=True).encode())


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        about: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        checksum = about.pop("checksum")
    except FileNotFoundError:
        raise UnusableError("it holds none") from None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise UnusableError(f"{MANIFEST} cannot be read") from None
    if checksum != _checksum(about):
        raise UnusableError(f"{MANIFEST} was changed")
    if about["format"] != FORMAT:
        raise UnusableError("they were written by another version")
    return about


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Describe what differs between two keys."""
    if [path for path, *_ in old["files"]] != [path for path, *_ in new["files"]]:
        return "they are of other files"
    changed = [
        Path(after[0]).name for before, after in zip(old["files"], new["files"], strict=True) if before != [*after]
    ]
    return f"{changed[0]} was changed since" if changed else "they were read with other options"


def _mapped(path: Path, dtype: str, shape: list[int], map_file: MapFile) -> Array:
    if dtype not in _DTYPES or path.stat().st_size != math.prod(shape) * np.dtype(dtype).itemsize:
        raise UnusableError(f"{path.name} has another size")
    if not math.prod(shape):
        return np.empty(shape, dtype)
    in_order = path.name not in (f"{name}.{part}" for name in MATRICES for part in ("data", "indices"))
    with path.open("r+b") as file:  # not read-only: kernels are compiled for arrays that can be written to
        if not in_order:
            _read_through(file)
        return np.frombuffer(map_file(file, path.stat().st_size, in_order), dtype).reshape(shape)


def _read_through(file: IO[bytes]) -> None:
    """Have the system read a file in order: random access would read it from disk in small pieces."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # so that it is not kept in large pieces
    while file.read(_BLOCK):
        pass


def _labels(lines: bytes, arrays: Mapping[str, Array]) -> LabelSpace:
    prefix = "labels."
    space = parse_labels(
        lines, {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
    )
    synonyms = None if space.synonyms is None else list(space.synonyms)
    concepts = None if space.concepts is None else list(space.concepts)
    return replace(space, names=list(space.names), synonyms=synonyms, concepts=concepts)


def _csr(arrays: Mapping[str, Array], name: str, width: int) -> Csr:
    data, indices, indptr = (arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
    _check_ends(indptr, len(indices), name)
    matrix = sp.csr_matrix((len(indptr) - 1, width), dtype=np.float32)
    # Set, not passed: SciPy's constructor would read every index.
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    matrix.has_canonical_format = True  # as the readers make it
    return matrix


def _texts(arrays: Mapping[str, Array], name: str, n_characters: int) -> StoredTexts:
    content, ends = arrays[f"{name}.content"], arrays[f"{name}.ends"]
    _check_ends(np.append(0, ends), len(content), name)
    return StoredTexts(content, ends, n_characters)


def _check_ends(ends: Array, size: int, name: str) -> None:
    if ends[0] != 0 or ends[-1] != size or (ends[1:] < ends[:-1]).any():
        raise UnusableError(f"{name} is damaged")
