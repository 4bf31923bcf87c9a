"""Save and load a model folder: ``model.json``, ``*.safetensors``, ``labels.jsonl``, maybe ``index.faiss``. No pickle.

A folder is replaced atomically: a reader sees the old model or the new model, never half. Reading memory-maps the
arrays. A damaged, foreign or newer folder is refused with a remedy.
"""

import json
import math
import mmap
import os
import platform
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from importlib.metadata import version as installed_version
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from labelspace.errors import LabelspaceError, ModelError
from labelspace.estimator import Stateful
from labelspace.estimator.state_constraints import Kind, StateError
from labelspace.store.atomic import recover, replacing_folder
from labelspace.store.labels import label_arrays, parse_labels, write_names
from labelspace.store.state import Arrays, LoadedBundle, ModelBundle, Writer, pack, unpack
from labelspace.types import LabelSpace
from labelspace.version import __version__

FORMAT = 3
MANIFEST = "model.json"
LABELS = "labels.jsonl"
LABEL_ARRAYS = "labels.safetensors"
CARD = "README.md"  # describes the model to people; loading ignores it
VERIFY_UP_TO = 256 * 2**20  # bytes; of larger files only the size is checked by default, so that loading stays quick
MAX_MANIFEST_BYTES = 64 * 2**20  # a manifest has some hundred bytes per array and file
MAX_HEADER_BYTES = 16 * 2**20  # a model has some hundred arrays, of some hundred bytes each
LENGTH_BYTES = 8  # the length of the header stands before it
_LIBRARIES = ("numpy", "scipy", "numba", "safetensors")
_DTYPES = {f"{kind}{8 * size}": np.dtype(f"{kind.lower()}{size}") for kind in "FIU" for size in (2, 4, 8)}
_DTYPES |= {"I8": np.dtype(np.int8), "U8": np.dtype(np.uint8), "BOOL": np.dtype(np.bool_)}
Folder = str | Path
Manifest = Mapping[str, Any]
Files = Mapping[str, Arrays | Writer]
Check = Callable[[Path], None]
Card = Callable[[Path, Manifest], str]
"""Returns the text of the README.md of a folder with this manifest."""


def save(
    folder: Folder,
    about: Manifest,
    parts: Mapping[str, Stateful],
    labels: LabelSpace | None,
    force: bool = False,
    card: Card | None = None,
) -> None:
    """Write the state of some parts, each to a file of arrays, with the labels; ``about`` goes to ``model.json``."""
    packed: dict[str, Any] = {}
    files: dict[str, Arrays | Writer] = {}
    saved: dict[str, Arrays] = {}
    for name, value in parts.items():
        bundle = ModelBundle()
        packed[name] = pack(value, bundle)
        saved[name] = bundle.arrays
        files |= {f"{name}.safetensors": bundle.arrays, **bundle.files}

    def finish(target: Path) -> None:
        """Load the written model, in which a training that diverged may have left infinite numbers; add the card."""
        try:
            manifest = read_manifest(target)
            for name, value in parts.items():
                load_part(target, manifest, name, type(value), verify=False, same_as=saved[name])
            read_labels(target, manifest, verify=False)
        except ModelError as error:
            raise ModelError(f"a model must be such that it can be loaded, so nothing was saved: {error}") from error
        if card is not None:
            write_card(target, card)

    write(folder, {**about, **packed}, files, labels, finish, force)


def load_part(
    folder: Folder, manifest: Manifest, name: str, kind: Kind, verify: bool | None = None, same_as: Arrays | None = None
) -> Any:  # noqa: ANN401 - of the class of the part
    """Load and check one of the parts that ``save`` wrote; its arrays are memory-mapped.

    ``same_as`` are the arrays that were just written: their numbers are checked, since the numbers of the file would be
    in memory a second time.
    """
    arrays = read_arrays(folder, manifest, f"{name}.safetensors", verify)
    if same_as is not None:
        if _kinds(arrays) != _kinds(same_as):
            raise ModelError(f"{name}.safetensors must hold the arrays that were saved, but holds others; save again")
        arrays = same_as
    bundle = LoadedBundle(arrays, lambda file: checked_path(folder, manifest, file, verify))
    with refusing_damage(folder):
        return unpack(manifest[name], bundle, kind)


@contextmanager
def refusing_damage(folder: Folder) -> Iterator[None]:
    """Turn any error from a model whose files do not fit together into a ModelError of one line."""
    try:
        yield
    except LabelspaceError:
        raise
    except StateError as error:
        raise ModelError(f"{folder} {error}; copy it again, or train it again") from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError, RuntimeError) as error:
        rule = f"{folder} must hold a whole model, but its files do not fit together ({type(error).__name__}: {error})"
        raise ModelError(f"{rule}; copy it again, or train it again") from error


def write(
    folder: Folder,
    manifest: Manifest,
    files: Files,
    labels: LabelSpace | None,
    finish: Check | None = None,
    force: bool = False,
) -> None:
    """Write a model folder whole or not at all; a file is arrays, or a function that writes the file at a path.

    ``finish`` may refuse the new folder, or add to it, before it replaces the old one. ``force`` is as in
    ``check_writable``.
    """
    with refusing_failed_writes(folder), replacing_folder(folder, partial(check_writable, force=force)) as target:
        _write_files(target, manifest, files, labels)
        if finish is not None:
            finish(target)


@contextmanager
def refusing_failed_writes(folder: Folder) -> Iterator[None]:
    """Turn an error of a disk, or of a text that is no Unicode, into a ModelError of one line."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        rule = f"the model must be written to {folder}, but that failed ({reason})"
        raise ModelError(f"{rule}; free some space or give another folder") from error
    except UnicodeEncodeError as error:
        rule = f"label names must be valid Unicode, but one holds {error.object[error.start]!r}"
        raise ModelError(f"{rule}; rename it") from error


def _write_files(target: Path, manifest: Manifest, files: Files, labels: LabelSpace | None) -> None:
    listed: dict[str, dict[str, Any]] = {}
    if labels is not None:
        ends = write_names(target / LABELS, labels)
        listed[LABELS] = _fingerprint(target / LABELS)
        files = {**files, LABEL_ARRAYS: {**label_arrays(labels), "line_ends": ends}}
    for name, content in files.items():
        about = _write_file(target / name, content)
        listed[name] = {**_fingerprint(target / name), **about}
    write_manifest(target, sealed({"format": FORMAT, **manifest, "files": listed, "versions": _versions()}))


def write_manifest(target: Path, manifest: Manifest) -> None:
    """Write the ``model.json`` of a folder that is being written."""
    (target / MANIFEST).write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def write_card(target: Path, card: Card) -> None:
    """Write the ``README.md`` of a folder that is being written."""
    (target / CARD).write_text(card(target, read_manifest(target)), encoding="utf-8", newline="\n")


@cache
def _versions() -> dict[str, str]:
    ours = {"labelspace": __version__, "python": platform.python_version()}
    return ours | {name: installed_version(name) for name in _LIBRARIES}


def _write_file(path: Path, content: Arrays | Writer) -> dict[str, Any]:
    """Write one file; return the entries of the manifest about it, except its size and checksum."""
    from safetensors.numpy import save_file

    if callable(content):
        content(path)
        return {}
    save_file({key: np.asarray(value, order="C") for key, value in content.items()}, path)
    return {"arrays": _kinds(content)}


def _kinds(arrays: Arrays) -> dict[str, str]:
    """Describe the types and shapes of arrays."""
    return {key: f"{value.dtype} {list(value.shape)}" for key, value in arrays.items()}


def read_manifest(folder: Folder) -> dict[str, Any]:
    """Return the ``model.json`` of a folder; raise ModelError if it is no model of a format that this version reads."""
    recover(folder)
    path = Path(folder) / MANIFEST
    if not path.is_file():
        problem = "holds none" if Path(folder).exists() else "does not exist"
        rule = f"a model is a folder that holds {MANIFEST}, but {str(folder)!r} {problem}"
        raise ModelError(f"{rule}; give the folder that `train --out` wrote")
    try:
        if path.stat().st_size > MAX_MANIFEST_BYTES:
            raise ValueError(f"it has more than {MAX_MANIFEST_BYTES} bytes")
        manifest = json.loads(path.read_text(encoding="utf-8"))
        number = manifest["format"]
        if type(number) is not int:
            raise TypeError("its format is not a number")
        is_whole = sealed(manifest) == manifest
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        rule = f"{path} must be a labelspace model, but cannot be read as one ({error})"
        raise ModelError(f"{rule}; train it again") from error
    if number != FORMAT:
        versions = manifest.get("versions")
        writer = versions.get("labelspace", "?") if isinstance(versions, dict) else "?"
        newer = f"written by labelspace {writer}; upgrade: pip install -U labelspace"
        problem = newer if number > FORMAT else "which this version no longer reads; train it again"
        raise ModelError(f"{path} must be of format {FORMAT}, but is of format {number}, {problem}")
    if not is_whole:
        problem = "does not: it was damaged or edited"
        raise ModelError(f"{path} must match its checksum, but {problem}; copy or train it again")
    return manifest  # type: ignore[no-any-return]


def sealed(manifest: Manifest) -> dict[str, Any]:
    """Return the manifest with the checksum of everything else in it."""
    rest = {key: value for key, value in manifest.items() if key != "checksum"}
    return {**rest, "checksum": zlib.crc32(json.dumps(rest, sort_keys=True).encode())}


def read_arrays(folder: Folder, manifest: Manifest, name: str, verify: bool | None = None) -> Arrays:
    """Memory-map one safetensors file of a model, checked against its manifest; its numbers are not checked yet."""
    path, content = _checked_content(folder, manifest, name, verify)
    try:
        return map_arrays(content)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        rule = f"{path} must hold the model's arrays, but is damaged ({error})"
        raise ModelError(f"{rule}; train or copy it again") from error


def map_arrays(mapped: mmap.mmap | bytes) -> Arrays:
    """Return the arrays of the content of a safetensors file, not copied; raise ValueError if it breaks the format.

    The header is JSON: array name -> dtype, shape, and begin and end in the bytes that follow the header. There must be
    no gap, no overlap, and nothing outside the file.
    """
    size = int.from_bytes(mapped[:LENGTH_BYTES], "little")
    begin = LENGTH_BYTES + size
    if size > MAX_HEADER_BYTES or begin > len(mapped):
        raise ValueError(f"its header must fit into the file and {MAX_HEADER_BYTES} bytes")
    header = json.loads(mapped[LENGTH_BYTES:begin], object_pairs_hook=_unique)
    if not isinstance(header, dict):
        raise ValueError("its header must be an object")
    header.pop("__metadata__", None)
    spans, arrays = [(0, 0), (len(mapped) - begin,) * 2], {}
    for key, entry in header.items():
        dtype, shape, (start, stop) = _DTYPES[entry["dtype"]], entry["shape"], entry["data_offsets"]
        if not all(type(n) is int and n >= 0 for n in (*shape, start, stop)):
            raise ValueError(f"{key!r} must have integers of at least 0 as shape and place")
        if stop - start != math.prod(shape) * dtype.itemsize or (begin + start) % dtype.itemsize:
            raise ValueError(f"{key!r} must have a place of the size of its shape")
        spans.append((start, stop))
        if stop > len(mapped) - begin:
            raise ValueError(f"{key!r} must end within the file")
        arrays[key] = np.frombuffer(mapped, dtype, math.prod(shape), begin + start).reshape(shape)
    if any(stop != start for (_, stop), (start, _) in pairwise(sorted(spans))):
        raise ValueError("its arrays must follow each other without gap or overlap")
    return arrays


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; raise ValueError if a key occurs twice."""
    unique = dict(pairs)
    if len(unique) != len(pairs):
        raise ValueError("its header must name each array once")
    return unique


def checked_path(folder: Folder, manifest: Manifest, name: str, verify: bool | None = None) -> Path:
    """Return the path of a file of a model; check its size, and unless it is large its checksum."""
    return _checked_content(folder, manifest, name, verify)[0]


def read_labels(folder: Folder, manifest: Manifest, verify: bool | None = None) -> LabelSpace | None:
    """Load and check the label space of a model folder; return None if it was saved without labels."""
    with refusing_damage(folder):
        if LABELS not in manifest["files"]:
            return None
        _, lines = _checked_content(folder, manifest, LABELS, verify)
        return parse_labels(bytes(lines), read_arrays(folder, manifest, LABEL_ARRAYS, verify))


def _checked_content(
    folder: Folder, manifest: Manifest, name: str, verify: bool | None
) -> tuple[Path, mmap.mmap | bytes]:
    """Return the path of a file of a model and its memory-mapped content; check its size, and maybe its checksum.

    The map is private and copy-on-write: arrays look writable, so numba compiles one version of a kernel, not two.
    """
    with refusing_damage(folder):
        path, expected = Path(folder) / name, manifest["files"].get(name)
        if expected is None or not path.is_file():
            rule = f"the model must hold {name}, but {path} is missing"
            raise ModelError(f"{rule}; copy the whole folder, or train again")
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if size else b""
        if size != expected["bytes"]:
            rule = f"{path} must have {expected['bytes']} bytes, but has {size}: it is truncated or of another model"
            raise ModelError(f"{rule}; copy the whole folder again, or train again")
        if verify is None:
            verify = size <= VERIFY_UP_TO
        if verify and zlib.crc32(content) != expected["crc32"]:
            rule = f"{path} must match its checksum, but does not: it is damaged"
            raise ModelError(f"{rule}; copy it again, or train again")
    return path, content


def folder_bytes(folder: Folder) -> int:
    """Return the bytes of a model on disk."""
    return sum(path.stat().st_size for path in Path(folder).iterdir() if path.is_file())


def _fingerprint(path: Path) -> dict[str, int]:
    return {"bytes": path.stat().st_size, "crc32": _crc32(path)}


def _crc32(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(2**20):
            checksum = zlib.crc32(block, checksum)
    return checksum


def check_writable(folder: Folder, force: bool = False) -> None:
    """Raise ModelError if a target cannot be written, or has other files than a model, which would be replaced.

    With ``force`` a folder with other files is replaced too, unless it is a working folder, a home or a repository.
    """
    path = Path(folder)
    try:
        _check_replaceable(path, force)
        above = next(parent for parent in Path(os.path.realpath(path)).parents if parent.exists())
    except OSError as error:
        rule = f"--out must be a folder that can be read, but {path} cannot ({error.strerror or error})"
        raise ModelError(f"{rule}; give another folder") from error
    try:
        tempfile.TemporaryFile(dir=above).close()  # permissions do not tell it, of /proc for example
    except OSError as error:
        rule = f"--out must lie in a folder that can be written, but {above} cannot ({error.strerror})"
        raise ModelError(f"{rule}; give another folder") from error


def _check_replaceable(path: Path, force: bool) -> None:
    if path.exists() and not path.is_dir():
        raise ModelError(f"--out must be a folder, but {path} is a file; give another name")
    if path.is_dir() and not _is_model_or_empty(path):
        if not force:
            rule = f"--out must be a new folder or an older model, but {path} holds other files"
            raise ModelError(f"{rule}; give another folder, or save with force to replace all that is in it")
        real, here = Path(os.path.realpath(path)), Path.cwd()
        if real in (here, *here.parents, Path(os.path.realpath(Path.home()))) or (real / ".git").exists():
            rule = f"force must not replace a working folder, a home or a repository, but {path} is one"
            raise ModelError(f"{rule}; give another folder")
    if path.is_mount():
        raise ModelError(f"--out must be a folder that can be replaced, but {path} is a mount; give a folder in it")


def _is_model_or_empty(folder: Path) -> bool:
    names = {path.name for path in folder.iterdir()}
    if not names:
        return True
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        parts = (f"{part}.safetensors" for part in ("model", "features", "documents"))
        ours = {MANIFEST, LABELS, LABEL_ARRAYS, CARD, *parts, *manifest.get("files", ())}
        return "format" in manifest and names <= ours
    except (FileNotFoundError, IsADirectoryError, ValueError, TypeError, AttributeError, RecursionError):
        return False
