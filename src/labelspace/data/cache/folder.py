"""The cache folder of a training: its documents, kept for the next training, and its large arrays, which are not.

The documents of a data file are arrays in a folder: what was parsed once is mapped the next time. That folder is
written whole or not at all. Its ``documents.json`` says which files the documents were read from, with which options,
and the size and time of each array's file: an array that was changed or cut off is not used.
"""

import json
import math
import mmap
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace import store
from labelspace.data.archives import zip_archive
from labelspace.data.cache.scratch import ResidencyLimiter, Scratch, write_pieces
from labelspace.data.dataset_file import files_of, read_dataset, streamed_format
from labelspace.data.files import replacing
from labelspace.data.read_options import ReadOptions
from labelspace.data.texts import StoredTexts
from labelspace.errors import DataError
from labelspace.kernels import large_arrays
from labelspace.store import sealed
from labelspace.store.atomic import locked, replacing_folder
from labelspace.store.labels import label_arrays, parse_labels, write_names
from labelspace.types import Columns, Csr, Dataset, Fields, LabelSpace, plain_layout
from labelspace.version import __version__

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
        of_labels = {"line_ends": write_names(work / store.LABELS, documents.labels), **label_arrays(documents.labels)}
        arrays |= {f"labels.{name}": array for name, array in of_labels.items()}
        for name, array in arrays.items():
            flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            with (work / name).open("wb") as file:
                for part in large_arrays.blocks(len(flat), _BLOCK):
                    write_pieces(file, flat[part])
        about = {
            "format": FORMAT,
            "key": key,
            "said": reported,
            "name": documents.name,
            "columns": None if documents.columns is None else plain_layout(documents.columns),
            "fields": None if documents.fields is None else plain_layout(documents.fields),
            "widths": {name: getattr(documents, name).shape[1] for name in MATRICES if f"{name}.data" in arrays},
            "n_characters": {name: stored.n_characters for name, stored in texts.items()},
            "arrays": {name: [str(array.dtype), list(array.shape)] for name, array in arrays.items()},
            "files": {name: _stamp(work / name) for name in [store.LABELS, *arrays]},
        }
        (work / MANIFEST).write_text(json.dumps(sealed(about), ensure_ascii=False, indent=1), encoding="utf-8")


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
    texts: dict[str, Any] = {name: _texts(arrays, name, n) for name, n in about["n_characters"].items()}
    documents = Dataset(
        labels=_labels((folder / store.LABELS).read_bytes(), arrays),
        name=about["name"],
        columns=None if columns is None else Columns(**columns),
        fields=None if fields is None else Fields(**fields),
        **{name: _csr(arrays, name, width) for name, width in about["widths"].items()},
        **texts,
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


def _stamp(path: Path) -> list[int]:
    """Return the size and the time of a file; a write through a map changes the time too."""
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns]


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        about: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        is_whole = sealed(about) == about
    except FileNotFoundError:
        raise UnusableError("it holds none") from None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise UnusableError(f"{MANIFEST} cannot be read") from None
    if not is_whole:
        raise UnusableError(f"{MANIFEST} was changed")
    if about["format"] != FORMAT:
        raise UnusableError("they were written by another version")
    return about


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Describe what differs between two keys."""
    if [path for path, *_ in old["files"]] != [path for path, *_ in new["files"]]:
        return "they are of other files"
    for before, after in zip(old["files"], new["files"], strict=True):
        if before != [*after]:
            return f"{Path(after[0]).name} was changed since"
    return "they were read with other options"


def _mapped(path: Path, dtype: str, shape: list[int], map_file: MapFile) -> Array:
    if dtype not in _DTYPES or path.stat().st_size != math.prod(shape) * np.dtype(dtype).itemsize:
        raise UnusableError(f"{path.name} has another size")
    if not math.prod(shape):
        return np.empty(shape, dtype)
    in_order = path.name not in (f"{name}.{part}" for name in MATRICES for part in ("data", "indices"))
    with path.open("r+b") as file:  # not read-only: kernels are compiled for arrays that can be written to
        if not in_order:  # the system reads it in order: random access would read it from disk in small pieces
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # so that it is not kept in large pieces
            while file.read(_BLOCK):
                pass
        return np.frombuffer(map_file(file, path.stat().st_size, in_order), dtype).reshape(shape)


def _labels(lines: bytes, arrays: Mapping[str, Array]) -> LabelSpace:
    prefix = "labels."
    parts = {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
    space = parse_labels(lines, parts)
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


MARKER, LOCK, DOCUMENTS = "labelspace-cache.json", "lock", "documents"
MIN_MEMORY = 250 * 10**6  # bytes: the program itself needs as much


class CacheFolder:
    """A folder for a training with little memory: within it, large arrays live in memory-mapped files.

    ``memory`` is in bytes: the pages of files that are in memory are dropped when the process gets near it. What a
    model learns must fit into memory, the documents need not.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place:
    ...     _ = Path(place, "pets.jsonl").write_text('{"text": "it purrs", "labels": ["cat"]}')
    ...     with CacheFolder(f"{place}/cache", memory=2**30) as cache:
    ...         documents = cache.read(f"{place}/pets.jsonl")
    >>> documents.texts[0], documents.labels.names
    ('it purrs', ['cat'])
    """

    def __init__(self, folder: str | Path, memory: int) -> None:
        if memory < MIN_MEMORY:
            rule = f"a training must have at least {MIN_MEMORY // 10**6} MB of memory"
            raise DataError(f"{rule}, but has {memory // 10**6} MB; allow more")
        self.folder = Path(folder)
        self.memory = memory
        self.scratch = Scratch(self.folder, memory)
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        with self._opened as opened:
            self._make()
            if not opened.enter_context(locked(self.folder / LOCK)):
                problem = f"{self.folder} is in use"
                raise DataError(f"a cache is for one training at a time, but {problem}; give another folder")
            opened.enter_context(large_arrays.stored_in(self.scratch))
            opened.enter_context(ResidencyLimiter(self.scratch.relieve))
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._opened.close()

    def _make(self) -> None:
        """Make the folder; raise DataError for a path that is no folder, and for a folder with other files."""
        if self.folder.exists() and not self.folder.is_dir():
            raise DataError(f"a cache must be a folder, but {self.folder} is a file; give another name")
        if self.folder.is_dir() and any(self.folder.iterdir()) and not (self.folder / MARKER).is_file():
            problem = f"{self.folder} holds other files"
            raise DataError(f"a cache must be a new or empty folder, but {problem}; give another name")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(self.folder / MARKER) as path:
                path.write_text(json.dumps({"labelspace": __version__}), encoding="utf-8")
        except OSError as error:
            problem = f"{self.folder} is not ({error.strerror or error}); give another folder"
            raise DataError(f"the cache must be a folder that can be written to, but {problem}") from error

    def read(self, path: str | Path, options: ReadOptions | None = None) -> Dataset:
        """Read a data set into the folder; a file that was read before, and did not change, is not read again."""
        options = options or ReadOptions()
        if options.side_columns or options.vectors_file or (options.columns is not None and options.columns.beside):
            raise DataError("a cache keeps texts, but columns stand beside them; leave out these columns, or --cache")
        key = document_key(Path(path), options)
        stored = self.folder / DOCUMENTS
        try:
            documents, reported = open_documents(stored, key, self.scratch.map_file)
        except UnusableError as reason:
            if stored.exists():
                options.say(f"the documents in {self.folder} are read anew: {reason}")
        else:
            for line in reported:
                options.say(line)
            options.say(f"{path} is unchanged: its documents are those in {self.folder}")
            return documents
        for old in (stored, *self.folder.glob(f".{DOCUMENTS}.writing-*")):  # of a process that was killed
            shutil.rmtree(old, ignore_errors=True)  # so that the disk does not hold both
        detected: list[str] = []

        def say(line: str) -> None:
            detected.append(line)
            options.say(line)

        documents = read_dataset(path, options=replace(options, say=say))
        with self.scratch.refusing_full_disk():
            save_documents(stored, documents, key, detected)
        return open_documents(stored, key, self.scratch.map_file)[0]

    @property
    def kept_bytes(self) -> int:
        """The bytes that stay on disk for the next training."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())


def document_key(path: Path, options: ReadOptions) -> dict[str, Any]:
    """Return what the documents of a file depend on: the files that are read for it, and how."""
    read_files = [*files_of(path), *streamed_format(path, options).other_files(path)]
    on_disk = dict.fromkeys((zip_archive(file) or (file, ""))[0] for file in read_files)
    files = [[str(file.resolve()), *_stamp(file)] for file in on_disk]
    return {"files": files, "options": repr(options), "version": __version__}
