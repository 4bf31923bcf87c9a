"""Nested state as plain values, arrays and files, and back again.

Whatever declares its state (``estimator.Stateful``), or is a dataclass or named tuple, is taken apart by the same code:
its parameters and plain values go to JSON, its arrays to safetensors under the path of where they stand, parts inside
it likewise.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.errors import ModelError, ParameterError
from labelspace.estimator import Estimator, Stateful

Arrays = dict[str, npt.NDArray[Any]]
Writer = Callable[[Path], None]
"""Writes a file at a path; raises OSError where that fails."""
Part = type | Callable[[str], type] | None
_LAYOUTS = {"csr": sp.csr_matrix, "csc": sp.csc_matrix}


@dataclass(frozen=True)
class ModelBundle:
    """What of a state does not go to JSON: arrays by path, and files by name with who writes them."""

    arrays: Arrays = field(default_factory=dict)
    files: dict[str, Writer] = field(default_factory=dict)


@dataclass(frozen=True)
class LoadedBundle:
    """The same, read from a folder."""

    arrays: Arrays
    path_of: Callable[[str], Path]
    """Where a file of this name is, checked."""


def pack(value: Any, bundle: ModelBundle, path: str = "") -> dict[str, Any]:  # noqa: ANN401 - any state
    """A value as JSON; its arrays and files are put into the bundle."""
    if isinstance(value, Stateful):
        return _pack_stateful(value, bundle, path)
    if _is_record(value):
        names = [f.name for f in fields(value)] if is_dataclass(value) else value._fields
        inner = {key: getattr(value, key) for key in names}
        return {"fields": {key: pack(item, bundle, _join(path, key)) for key, item in inner.items()}}
    if sp.issparse(value):
        bundle.arrays.update({f"{path}.{part}": getattr(value, part) for part in ("data", "indices", "indptr")})
        return {"sparse": value.format, "shape": list(value.shape)}
    if isinstance(value, np.ndarray):
        bundle.arrays[path] = value
        return {"array": f"{value.dtype} {list(value.shape)}"}
    if isinstance(value, list) and any(map(_has_parts, value)):
        return {"list": [pack(item, bundle, _join(path, str(at))) for at, item in enumerate(value)]}
    if isinstance(value, dict) and any(map(_has_parts, value.values())):
        return {"dict": {key: pack(item, bundle, _join(path, key)) for key, item in value.items()}}
    return {"value": value.item() if isinstance(value, np.generic) else value}


def unpack(packed: Mapping[str, Any], bundle: LoadedBundle, part: Part = None, path: str = "") -> Any:  # noqa: ANN401
    """The value that ``pack`` took apart; ``part`` is the class of what is inside, as ``learned`` declares it."""
    try:
        return _unpack(packed, bundle, part, path)
    except (KeyError, ParameterError) as error:
        raise ModelError(
            f"the saved {packed.get('name') or 'model'} must have the fields of this version, but has not ({error}); "
            "train it again"
        ) from error


def _unpack(packed: Mapping[str, Any], bundle: LoadedBundle, part: Part, path: str) -> Any:  # noqa: ANN401 - any state
    if "state" in packed:
        return _unpack_stateful(packed, bundle, part, path)
    if "fields" in packed:
        assert isinstance(part, type)
        inner = {key: _unpack(value, bundle, None, _join(path, key)) for key, value in packed["fields"].items()}
        return part(**inner)
    if "sparse" in packed:
        matrix = _LAYOUTS[packed["sparse"]](tuple(packed["shape"]), dtype=bundle.arrays[f"{path}.data"].dtype)
        # Set, not passed: the constructor would read every index to check it, and so the whole mapped file.
        matrix.data, matrix.indices, matrix.indptr = (bundle.arrays[f"{path}.{p}"] for p in ("data", "indices", "indptr"))  # fmt: skip  # noqa: E501
        return matrix
    if "array" in packed:
        return bundle.arrays[path]
    if "list" in packed:
        return [_unpack(item, bundle, part, _join(path, str(at))) for at, item in enumerate(packed["list"])]
    if "dict" in packed:
        return {key: _unpack(item, bundle, part, _join(path, key)) for key, item in packed["dict"].items()}
    return packed["value"]


def _pack_stateful(value: Stateful, bundle: ModelBundle, path: str) -> dict[str, Any]:
    value.check_fitted()
    packed: dict[str, Any] = {"name": value.name}
    if isinstance(value, Estimator):
        given = value.get_params().items()
        packed["params"] = {key: v.item() if isinstance(v, np.generic) else v for key, v in given}
    packed["state"] = {key: pack(getattr(value, key), bundle, _join(path, key)) for key in value.state}
    for name, writer in value.files().items():
        bundle.files[_file_name(path, name)] = writer
    return packed


def _unpack_stateful(packed: Mapping[str, Any], bundle: LoadedBundle, part: Part, path: str) -> Stateful:
    assert part is not None
    cls = part if isinstance(part, type) else part(packed["name"])
    assert issubclass(cls, Stateful)
    loaded = cls(**packed["params"]) if issubclass(cls, Estimator) else cls.__new__(cls)
    for key, declared in cls.state.items():
        setattr(loaded, key, _unpack(packed["state"][key], bundle, declared.part, _join(path, key)))
    loaded.read_files(lambda name: bundle.path_of(_file_name(path, name)))
    loaded.check_state()
    return loaded


def _has_parts(value: object) -> bool:
    """Whether a value is more than JSON."""
    return isinstance(value, (Stateful, np.ndarray)) or sp.issparse(value) or _is_record(value)


def _is_record(value: object) -> bool:
    """Whether a value is a dataclass or a named tuple."""
    return (is_dataclass(value) and not isinstance(value, type)) or hasattr(value, "_fields")


def _join(path: str, key: str) -> str:
    return f"{path}/{key}" if path else key


def _file_name(path: str, name: str) -> str:
    """``index_`` and ``faiss`` as ``index.faiss``."""
    return ".".join([*(part.rstrip("_") for part in path.split("/") if part), name])
