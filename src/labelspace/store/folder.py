"""A saved model is a folder: ``model.json``, ``*.safetensors``, ``labels.jsonl``, maybe ``index.faiss``. Never pickled.

Writing goes to a folder beside the target, which is then renamed: a reader sees the old model or the new, never half.
Reading memory-maps the arrays. A damaged, foreign or newer folder is refused with what to do.
"""

from __future__ import annotations

import json
import mmap
import os
import platform
import secrets
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.errors import ModelError
from labelspace.estimator import Estimator
from labelspace.types import Hierarchy, LabelSpace
from labelspace.version import __version__

FORMAT = 1
MANIFEST = "model.json"
LABELS = "labels.jsonl"
INDEX = "index.faiss"
VERIFY_UP_TO = 256 * 2**20  # bytes; larger files are checked by size alone unless asked, so that loading stays quick
_LIBRARIES = ("numpy", "scipy", "numba", "safetensors")
_DTYPES = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32, "I16": np.int16,
    "I8": np.int8, "U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8, "BOOL": np.bool_,
}  # fmt: skip

Arrays = dict[str, npt.NDArray[Any]]
Writer = Callable[[Path], None]
"""Writes a file at a path; raises OSError where that fails."""


@dataclass(frozen=True)
class Parts:
    """Something taken apart to be saved: plain values for ``model.json``, arrays, and files by name with who writes."""

    values: dict[str, Any]
    arrays: Arrays
    files: dict[str, Writer] = field(default_factory=dict)

    def join(self, name: str, inner: Parts) -> dict[str, Any]:
        """Take in the arrays and files of something inside under a name of its own; its values are returned."""
        self.arrays.update({f"{name}/{key}": value for key, value in inner.arrays.items()})
        self.files.update({f"{name}.{key}": writer for key, writer in inner.files.items()})
        return inner.values


@dataclass(frozen=True)
class Found:
    """The same parts, found in a folder."""

    values: dict[str, Any]
    arrays: Arrays
    path_of: Callable[[str], Path]
    """Where a file of this name lies, checked."""

    def below(self, name: str, values: dict[str, Any]) -> Found:
        """The parts of something inside that ``Parts.join`` took in under this name."""
        prefix = f"{name}/"
        arrays = {key.removeprefix(prefix): value for key, value in self.arrays.items() if key.startswith(prefix)}
        return Found(values, arrays, lambda file: self.path_of(f"{name}.{file}"))


def pack(estimator: Estimator) -> tuple[dict[str, Any], Arrays]:
    """Part an estimator into what goes to JSON and what goes to arrays; a sparse matrix becomes its three arrays."""
    estimator.check_fitted()
    values: dict[str, Any] = {}
    sparse: dict[str, Any] = {}
    arrays: Arrays = {}
    for key in estimator.state:
        value = getattr(estimator, key)
        if sp.issparse(value):
            sparse[key] = {"layout": value.format, "shape": list(value.shape)}
            arrays |= {f"{key}.{part}": getattr(value, part) for part in ("data", "indices", "indptr")}
        elif isinstance(value, np.ndarray):
            arrays[key] = value
        else:
            values[key] = value
    given = estimator.get_params().items()
    params = {key: value.item() if isinstance(value, np.generic) else value for key, value in given}
    return {"name": estimator.name, "params": params, "values": values, "sparse": sparse}, arrays


def unpack(estimator: Estimator, packed: Mapping[str, Any], arrays: Arrays) -> None:
    """Give a fresh estimator the learned state that ``pack`` took."""
    for key in estimator.state:
        if key in packed["sparse"]:
            what = packed["sparse"][key]
            layout = {"csr": sp.csr_matrix, "csc": sp.csc_matrix}[what["layout"]]
            matrix = layout(tuple(what["shape"]), dtype=arrays[f"{key}.data"].dtype)
            # Set, not passed: the constructor would read every index to check it, and so the whole mapped file.
            matrix.data, matrix.indices, matrix.indptr = (arrays[f"{key}.{p}"] for p in ("data", "indices", "indptr"))
            setattr(estimator, key, matrix)
        elif key in arrays:
            setattr(estimator, key, arrays[key])
        else:
            setattr(estimator, key, packed["values"][key])


def write(
    folder: str | Path, manifest: Mapping[str, Any], files: Mapping[str, Arrays | Writer], labels: LabelSpace | None
) -> None:
    """Write a model folder whole or not at all; a file is arrays, or a function that writes it at a path."""
    mode = 0o666 & ~_umask()
    with _beside(Path(folder)) as target:
        listed: dict[str, dict[str, Any]] = {}
        if labels is not None:
            ends = write_names(target / LABELS, labels)
            listed[LABELS] = _fingerprint(target / LABELS)
            files = {**files, "labels.safetensors": {**_label_arrays(labels), "line_ends": ends}}
        for name, content in files.items():
            about = _write_file(target / name, content)
            (target / name).chmod(mode)  # safetensors leaves files to the owner alone
            listed[name] = {**_fingerprint(target / name), **about}
        versions = {"labelspace": __version__, "python": platform.python_version()}
        versions |= {name: installed_version(name) for name in _LIBRARIES}
        whole = sealed({"format": FORMAT, **manifest, "files": listed, "versions": versions})
        (target / MANIFEST).write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _write_file(path: Path, content: Arrays | Writer) -> dict[str, Any]:
    """Write one file; what the manifest is to say about it beside its size is returned."""
    from safetensors.numpy import save_file

    if callable(content):
        content(path)
        return {}
    save_file({key: np.ascontiguousarray(value) for key, value in content.items()}, path)
    return {"arrays": {key: f"{value.dtype} {list(value.shape)}" for key, value in content.items()}}


def read_manifest(folder: str | Path) -> dict[str, Any]:
    """The ``model.json`` of a folder, refused where it is not one of ours or is newer than this library."""
    path = Path(folder) / MANIFEST
    if not path.is_file():
        raise ModelError(
            f"a model is a folder that holds {MANIFEST}, but {str(folder)!r} "
            f"{'holds none' if Path(folder).exists() else 'does not exist'}; give the folder that `train --out` wrote"
        )
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        number = int(manifest["format"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelError(
            f"{path} must be a labelspace model, but cannot be read as one ({error}); train it again"
        ) from error
    if number > FORMAT:
        raise ModelError(
            f"{path} must be of format {FORMAT} or older, but is of format {number}, written by labelspace "
            f"{manifest.get('versions', {}).get('labelspace', '?')}; upgrade: pip install -U labelspace"
        )
    if sealed(manifest) != manifest:
        raise ModelError(
            f"{path} must match its checksum, but does not: it was damaged or edited; copy or train it again"
        )
    return manifest  # type: ignore[no-any-return]


def sealed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest with the checksum of everything else in it."""
    rest = {key: value for key, value in manifest.items() if key != "checksum"}
    return {**rest, "checksum": zlib.crc32(json.dumps(rest, sort_keys=True).encode())}


def read_arrays(folder: str | Path, manifest: Mapping[str, Any], name: str, verify: bool | None = None) -> Arrays:
    """Memory-map one safetensors file of a model, checked against its manifest.

    The map is private and copy-on-write: arrays look writable, so numba compiles one version of a kernel, not two.
    """
    path = Path(folder) / name
    _check_file(path, manifest, verify)
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    try:
        size = int.from_bytes(mapped[:8], "little")
        header = json.loads(mapped[8 : 8 + size])
        header.pop("__metadata__", None)
        arrays = {}
        for key, what in header.items():
            start, stop = what["data_offsets"]
            count = int(np.prod(what["shape"], dtype=np.int64))
            dtype = np.dtype(_DTYPES[what["dtype"]])
            if stop - start != count * dtype.itemsize:
                raise ValueError(f"array {key} has the wrong size")
            arrays[key] = np.frombuffer(mapped, dtype, count, 8 + size + start).reshape(what["shape"])
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"{path} must hold the model's arrays, but is damaged ({error}); train or copy it again"
        ) from error
    return arrays


def checked_path(folder: str | Path, manifest: Mapping[str, Any], name: str, verify: bool | None = None) -> Path:
    """Where a file of a model lies that is not ours to read, checked against the manifest."""
    path = Path(folder) / name
    _check_file(path, manifest, verify)
    return path


def read_labels(folder: str | Path, manifest: Mapping[str, Any], verify: bool | None = None) -> LabelSpace | None:
    """The label space of a model folder, or None where it was saved without."""
    if LABELS not in manifest["files"]:
        return None
    path = Path(folder) / LABELS
    _check_file(path, manifest, verify)
    arrays = read_arrays(folder, manifest, "labels.safetensors", verify)
    lines = path.read_bytes()
    n, edges = len(arrays["line_ends"]), arrays["hierarchy"]
    hierarchy = None
    if len(edges):  # no cycle: that was checked before it was saved
        ones = np.ones(len(edges), np.float32)
        hierarchy = Hierarchy(sp.csr_matrix((ones, (edges[:, 0], edges[:, 1])), shape=(n, n)))
    return LabelSpace(
        JsonColumn(lines, arrays["line_ends"], "label"),
        JsonColumn(lines, arrays["line_ends"], "alt", []) if arrays["has_synonyms"][0] else None,
        arrays.get("counts"),
        int(arrays["n_documents"][0]),
        hierarchy,
    )


class JsonColumn(Sequence[Any]):
    r"""One field of all lines of a JSON-lines file, read when asked for: a million labels load in no time.

    >>> JsonColumn(b'{"a": 1}\n{"a": 2}\n', np.array([9, 18]), "a")[1]
    2
    """

    def __init__(self, lines: bytes, ends: npt.NDArray[np.int64], key: str, default: object = None) -> None:
        self._lines = lines
        self._ends = ends
        self._key = key
        self._default = default

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, place: Any) -> Any:  # noqa: ANN401 - as a list has it: a number or a slice
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        at = range(len(self))[place]
        line = self._lines[self._ends[at - 1] if at else 0 : self._ends[at]]
        return json.loads(line).get(self._key, self._default)

    def __iter__(self) -> Iterator[Any]:
        # One call for all lines: three times faster than one call a line.
        rows = json.loads(b"[" + self._lines.rstrip(b"\n").replace(b"\n", b",") + b"]")
        return (row.get(self._key, self._default) for row in rows)


def folder_bytes(folder: str | Path) -> int:
    """What a model weighs on disk."""
    return sum(path.stat().st_size for path in Path(folder).iterdir() if path.is_file())


def _label_arrays(labels: LabelSpace) -> Arrays:
    edges = np.zeros((0, 2), np.int32) if labels.hierarchy is None else labels.hierarchy.edges
    arrays: Arrays = {"hierarchy": edges, "n_documents": np.array([labels.n_documents], np.int64)}
    arrays["has_synonyms"] = np.array([labels.synonyms is not None])
    return arrays if labels.counts is None else {**arrays, "counts": labels.counts}


def write_names(path: Path, labels: LabelSpace) -> npt.NDArray[np.int64]:
    """Write ``labels.jsonl``: one ``{"label": name, "alt": [synonyms]}`` a line, in the order of the label ids.

    Returns where each line ends, in bytes. Shape (n_labels,).
    """
    synonyms = labels.synonyms or [[]] * len(labels)
    lengths = np.zeros(len(labels), np.int64)
    with path.open("wb") as file:
        for i, (name, alt) in enumerate(zip(labels.names, synonyms, strict=True)):
            row = {"label": name, "alt": list(alt)} if alt else {"label": name}
            lengths[i] = file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
    return np.cumsum(lengths)


def _fingerprint(path: Path) -> dict[str, int]:
    return {"bytes": path.stat().st_size, "crc32": _crc32(path)}


def _crc32(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(2**20):
            checksum = zlib.crc32(block, checksum)
    return checksum


def _check_file(path: Path, manifest: Mapping[str, Any], verify: bool | None) -> None:
    expected = manifest["files"].get(path.name)
    if expected is None or not path.is_file():
        raise ModelError(
            f"the model must hold {path.name}, but {path} is missing; copy the whole folder, or train again"
        )
    size = path.stat().st_size
    if size != expected["bytes"]:
        raise ModelError(
            f"{path} must have {expected['bytes']} bytes, but has {size}: it is truncated or of another model; "
            "copy the whole folder again, or train again"
        )
    if verify is None:
        verify = size <= VERIFY_UP_TO
    if verify and _crc32(path) != expected["crc32"]:
        raise ModelError(f"{path} must match its checksum, but does not: it is damaged; copy it again, or train again")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextmanager
def _beside(folder: Path) -> Iterator[Path]:
    """Give a fresh folder beside the target; put it in the target's place on success, remove it on failure."""
    from safetensors import SafetensorError

    folder = Path(os.path.realpath(folder))
    check_writable(folder)
    token = secrets.token_hex(4)
    work = folder.parent / f".{folder.name}.writing-{token}"
    retired = folder.parent / f".{folder.name}.old-{token}"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        yield work
        if folder.exists():
            folder.rename(retired)
        work.rename(folder)
    except (OSError, SafetensorError) as error:
        if retired.exists() and not folder.exists():
            retired.rename(folder)
        raise ModelError(
            f"the model must be written to {folder}, but that failed ({getattr(error, 'strerror', None) or error}); "
            "free some space or give another folder"
        ) from error
    except UnicodeEncodeError as error:
        raise ModelError(
            f"label names must be valid Unicode, but one holds {error.object[error.start]!r}; rename it"
        ) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if folder.exists():
            shutil.rmtree(retired, ignore_errors=True)


def check_writable(folder: str | Path) -> None:
    """Refuse a target that cannot be written, or that holds anything but a model: it would be replaced."""
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise ModelError(f"--out must be a folder, but {path} is a file; give another name")
    if path.is_dir() and not _is_model_or_empty(path):
        raise ModelError(
            f"--out must be a new folder or an older model, but {path} holds other files; give another folder"
        )
    above = next(parent for parent in Path(os.path.realpath(path)).parents if parent.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise ModelError(f"--out must lie in a folder that can be written, but {above} cannot; give another folder")


def _is_model_or_empty(folder: Path) -> bool:
    names = {path.name for path in folder.iterdir() if not path.name.endswith(INDEX)}
    if not names <= {MANIFEST, LABELS, "labels.safetensors", "model.safetensors", "features.safetensors"}:
        return False
    if not names:
        return True
    try:
        return "kind" in json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError):
        return False
