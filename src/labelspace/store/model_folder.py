"""A saved model is a folder: ``model.json``, ``*.safetensors``, ``labels.jsonl``, maybe ``index.faiss``. Never pickled.

It is replaced atomically: a reader sees the old model or the new, never half.
Reading memory-maps the arrays. A damaged, foreign or newer folder is refused with what to do.
"""

import json
import mmap
import os
import platform
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

import numpy as np

from labelspace.errors import LabelspaceError, ModelError
from labelspace.estimator import Stateful
from labelspace.estimator.state_constraints import Kind, StateError
from labelspace.store.atomic import recover, replacing_folder
from labelspace.store.labels import label_arrays, parse_labels, write_names
from labelspace.store.safetensors_file import map_arrays
from labelspace.store.state import Arrays, LoadedBundle, ModelBundle, Writer, pack, unpack
from labelspace.types import LabelSpace
from labelspace.version import __version__

FORMAT = 3
MANIFEST = "model.json"
LABELS = "labels.jsonl"
LABEL_ARRAYS = "labels.safetensors"
VERIFY_UP_TO = 256 * 2**20  # bytes; larger files are checked by size alone unless asked, so that loading stays quick
_LIBRARIES = ("numpy", "scipy", "numba", "safetensors")
MAX_MANIFEST_BYTES = 64 * 2**20


def save(
    folder: str | Path,
    about: Mapping[str, Any],
    parts: Mapping[str, Stateful],
    labels: LabelSpace | None,
    force: bool = False,
) -> None:
    """Write the state of some parts, each to arrays of its own, with the labels and what else ``model.json`` says."""
    packed: dict[str, Any] = {}
    files: dict[str, Arrays | Writer] = {}
    saved: dict[str, Arrays] = {}
    for name, value in parts.items():
        bundle = ModelBundle()
        packed[name] = pack(value, bundle)
        saved[name] = bundle.arrays
        files |= {f"{name}.safetensors": bundle.arrays, **bundle.files}

    def check(target: Path) -> None:
        """A model whose training diverged, for one, holds numbers that no one could load."""
        try:
            manifest = read_manifest(target)
            for name, value in parts.items():
                load_part(target, manifest, name, type(value), verify=False, same_as=saved[name])
            read_labels(target, manifest, verify=False)
        except ModelError as error:
            raise ModelError(f"a model must be such that it can be loaded, so nothing was saved: {error}") from error

    write(folder, {**about, **packed}, files, labels, check, force)


def load_part(
    folder: str | Path,
    manifest: Mapping[str, Any],
    name: str,
    kind: Kind,
    verify: bool | None = None,
    same_as: Arrays | None = None,
) -> Any:  # noqa: ANN401 - of the class of the part
    """One of the parts that ``save`` wrote, checked; its arrays are memory-mapped.

    ``same_as`` are the arrays that were just written: their numbers are checked, since those of the file would be in
    memory a second time.
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
def refusing_damage(folder: str | Path) -> Iterator[None]:
    """Say in one line what is wrong with a model whose files do not fit together in a way that no check foresees."""
    try:
        yield
    except LabelspaceError:
        raise
    except StateError as error:
        raise ModelError(f"{folder} {error}; copy it again, or train it again") from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError, RuntimeError) as error:
        raise ModelError(
            f"{folder} must hold a whole model, but its files do not fit together "
            f"({type(error).__name__}: {error}); copy it again, or train it again"
        ) from error


def write(
    folder: str | Path,
    manifest: Mapping[str, Any],
    files: Mapping[str, Arrays | Writer],
    labels: LabelSpace | None,
    check: Callable[[Path], None] | None = None,
    force: bool = False,
) -> None:
    """Write a model folder whole or not at all; a file is arrays, or a function that writes it at a path.

    ``check`` may refuse the new folder before it replaces the old one. ``force`` is that of ``check_writable``.
    """
    from safetensors import SafetensorError

    try:
        with replacing_folder(folder, partial(check_writable, force=force)) as target:
            _write_files(target, manifest, files, labels)
            if check is not None:
                check(target)
    except (OSError, SafetensorError) as error:
        raise ModelError(
            f"the model must be written to {folder}, but that failed ({getattr(error, 'strerror', None) or error}); "
            "free some space or give another folder"
        ) from error
    except UnicodeEncodeError as error:
        raise ModelError(
            f"label names must be valid Unicode, but one holds {error.object[error.start]!r}; rename it"
        ) from error


def _write_files(
    target: Path, manifest: Mapping[str, Any], files: Mapping[str, Arrays | Writer], labels: LabelSpace | None
) -> None:
    listed: dict[str, dict[str, Any]] = {}
    if labels is not None:
        ends = write_names(target / LABELS, labels)
        listed[LABELS] = _fingerprint(target / LABELS)
        files = {**files, LABEL_ARRAYS: {**label_arrays(labels), "line_ends": ends}}
    for name, content in files.items():
        about = _write_file(target / name, content)
        listed[name] = {**_fingerprint(target / name), **about}
    whole = sealed({"format": FORMAT, **manifest, "files": listed, "versions": _versions()})
    (target / MANIFEST).write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


@cache
def _versions() -> dict[str, str]:
    ours = {"labelspace": __version__, "python": platform.python_version()}
    return ours | {name: installed_version(name) for name in _LIBRARIES}


def _write_file(path: Path, content: Arrays | Writer) -> dict[str, Any]:
    """Write one file; what the manifest is to say about it beside its size is returned."""
    from safetensors.numpy import save_file

    if callable(content):
        content(path)
        return {}
    save_file({key: np.asarray(value, order="C") for key, value in content.items()}, path)
    return {"arrays": _kinds(content)}


def _kinds(arrays: Arrays) -> dict[str, str]:
    """The types and shapes of arrays."""
    return {key: f"{value.dtype} {list(value.shape)}" for key, value in arrays.items()}


def read_manifest(folder: str | Path) -> dict[str, Any]:
    """The ``model.json`` of a folder, refused where it is not one of ours or is newer than this library."""
    recover(folder)
    path = Path(folder) / MANIFEST
    if not path.is_file():
        raise ModelError(
            f"a model is a folder that holds {MANIFEST}, but {str(folder)!r} "
            f"{'holds none' if Path(folder).exists() else 'does not exist'}; give the folder that `train --out` wrote"
        )
    try:
        if path.stat().st_size > MAX_MANIFEST_BYTES:
            raise ValueError(f"it has more than {MAX_MANIFEST_BYTES} bytes")
        manifest = json.loads(path.read_text(encoding="utf-8"))
        number = manifest["format"]
        if type(number) is not int:
            raise TypeError("its format is not a number")
        is_whole = sealed(manifest) == manifest
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelError(
            f"{path} must be a labelspace model, but cannot be read as one ({error}); train it again"
        ) from error
    if number > FORMAT:
        versions = manifest.get("versions")
        raise ModelError(
            f"{path} must be of format {FORMAT}, but is of format {number}, written by labelspace "
            f"{versions.get('labelspace', '?') if isinstance(versions, dict) else '?'}; "
            "upgrade: pip install -U labelspace"
        )
    if number < FORMAT:
        raise ModelError(
            f"{path} must be of format {FORMAT}, but is of format {number}, which this version no longer reads; "
            "train it again"
        )
    if not is_whole:
        problem = "does not: it was damaged or edited"
        raise ModelError(f"{path} must match its checksum, but {problem}; copy or train it again")
    return manifest  # type: ignore[no-any-return]


def sealed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest with the checksum of everything else in it."""
    rest = {key: value for key, value in manifest.items() if key != "checksum"}
    return {**rest, "checksum": zlib.crc32(json.dumps(rest, sort_keys=True).encode())}


def read_arrays(folder: str | Path, manifest: Mapping[str, Any], name: str, verify: bool | None = None) -> Arrays:
    """Memory-map one safetensors file of a model, checked against its manifest; its numbers are not checked yet."""
    path, content = _checked_content(folder, manifest, name, verify)
    try:
        return map_arrays(content)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ModelError(
            f"{path} must hold the model's arrays, but is damaged ({error}); train or copy it again"
        ) from error


def checked_path(folder: str | Path, manifest: Mapping[str, Any], name: str, verify: bool | None = None) -> Path:
    """Where a file of a model lies, checked against the manifest: its size, and its checksum unless it is large."""
    return _checked_content(folder, manifest, name, verify)[0]


def read_labels(folder: str | Path, manifest: Mapping[str, Any], verify: bool | None = None) -> LabelSpace | None:
    """The label space of a model folder, checked, or None where it was saved without."""
    with refusing_damage(folder):
        if LABELS not in manifest["files"]:
            return None
        _, lines = _checked_content(folder, manifest, LABELS, verify)
        return parse_labels(bytes(lines), read_arrays(folder, manifest, LABEL_ARRAYS, verify))


def _checked_content(
    folder: str | Path, manifest: Mapping[str, Any], name: str, verify: bool | None
) -> tuple[Path, mmap.mmap | bytes]:
    """Where a file of a model lies, and its content, memory-mapped; its size, and maybe checksum, are checked.

    The map is private and copy-on-write: arrays look writable, so numba compiles one version of a kernel, not two.
    """
    with refusing_damage(folder):
        path, expected = Path(folder) / name, manifest["files"].get(name)
        if expected is None or not path.is_file():
            raise ModelError(
                f"the model must hold {name}, but {path} is missing; copy the whole folder, or train again"
            )
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if size else b""
        if size != expected["bytes"]:
            raise ModelError(
                f"{path} must have {expected['bytes']} bytes, but has {size}: it is truncated or of another model; "
                "copy the whole folder again, or train again"
            )
        if verify is None:
            verify = size <= VERIFY_UP_TO
        if verify and zlib.crc32(content) != expected["crc32"]:
            raise ModelError(
                f"{path} must match its checksum, but does not: it is damaged; copy it again, or train again"
            )
    return path, content


def folder_bytes(folder: str | Path) -> int:
    """What a model weighs on disk."""
    return sum(path.stat().st_size for path in Path(folder).iterdir() if path.is_file())


def _fingerprint(path: Path) -> dict[str, int]:
    return {"bytes": path.stat().st_size, "crc32": _crc32(path)}


def _crc32(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(2**20):
            checksum = zlib.crc32(block, checksum)
    return checksum


def check_writable(folder: str | Path, force: bool = False) -> None:
    """Refuse a target that cannot be written, or that holds anything but a model: it would be replaced.

    With ``force`` a folder with other files is replaced too, unless it is one that nobody means.
    """
    path = Path(folder)
    try:
        _check_replaceable(path, force)
        above = next(parent for parent in Path(os.path.realpath(path)).parents if parent.exists())
    except OSError as error:
        raise ModelError(
            f"--out must be a folder that can be read, but {path} cannot ({error.strerror or error}); "
            "give another folder"
        ) from error
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise ModelError(f"--out must lie in a folder that can be written, but {above} cannot; give another folder")


def _check_replaceable(path: Path, force: bool) -> None:
    if path.exists() and not path.is_dir():
        raise ModelError(f"--out must be a folder, but {path} is a file; give another name")
    if path.is_dir() and not _is_model_or_empty(path):
        if not force:
            raise ModelError(
                f"--out must be a new folder or an older model, but {path} holds other files; give another folder, "
                "or save with force to replace all that is in it"
            )
        real, here = Path(os.path.realpath(path)), Path.cwd()
        if real in (here, *here.parents, Path(os.path.realpath(Path.home()))) or (real / ".git").exists():
            raise ModelError(
                f"force must not replace a working folder, a home or a repository, but {path} is one; "
                "give another folder"
            )
    if path.is_mount():
        raise ModelError(f"--out must be a folder that can be replaced, but {path} is a mount; give a folder in it")


def _is_model_or_empty(folder: Path) -> bool:
    names = {path.name for path in folder.iterdir()}
    if not names:
        return True
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        parts = (f"{part}.safetensors" for part in ("model", "features", "documents"))
        ours = {MANIFEST, LABELS, LABEL_ARRAYS, *parts, *manifest.get("files", ())}
        return "format" in manifest and names <= ours
    except (FileNotFoundError, IsADirectoryError, ValueError, TypeError, AttributeError, RecursionError):
        return False
