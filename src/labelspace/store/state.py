"""Convert nested state to plain values, arrays and files, and back again with checks.

The same code packs every object that declares its state (``estimator.Stateful``), dataclass and named tuple: parameters
and plain values go to JSON, arrays to safetensors under their path in the object, parts inside it likewise. When it is
read back, everything is checked against its declaration before anything is used: parameters as when
they are given, the rest by ``state_constraints``. The fields of a dataclass or named tuple are declared by
``Annotated[type, constraint]``.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.errors import ModelError, ParameterError
from labelspace.estimator import NO_DEFAULT, Estimator, Stateful
from labelspace.estimator.state_constraints import (
    NAMED,
    ArrayConstraint,
    ArraysConstraint,
    Kind,
    OffsetsConstraint,
    PartConstraint,
    PlainConstraint,
    Sizes,
    SparseConstraint,
    StateConstraint,
    StateError,
    must,
)

Arrays = dict[str, npt.NDArray[Any]]
Writer = Callable[[Path], None]
"""Writes a file at a path; raises OSError if that fails."""
_LAYOUTS = {"csr": sp.csr_matrix, "csc": sp.csc_matrix}
_PARTS_OF_SPARSE = ("data", "indices", "indptr")


@dataclass(frozen=True)
class ModelBundle:
    """The parts of a state that do not go to JSON: arrays by path, and functions that write files by name."""

    arrays: Arrays = field(default_factory=dict)
    files: dict[str, Writer] = field(default_factory=dict)


@dataclass(frozen=True)
class LoadedBundle:
    """A bundle read from a folder; nothing in it is trusted."""

    arrays: Arrays
    path_of: Callable[[str], Path]
    """Returns the checked path of a file by name."""


def pack(value: Any, bundle: ModelBundle, path: str = "") -> dict[str, Any]:  # noqa: ANN401 - any state
    """Return a value as JSON; put its arrays and files into the bundle."""
    if isinstance(value, Stateful):
        return _pack_stateful(value, bundle, path)
    if _is_record(value):
        return {"fields": {key: pack(getattr(value, key), bundle, _join(path, key)) for key in _fields(type(value))}}
    if sp.issparse(value):
        bundle.arrays.update({f"{path}.{part}": getattr(value, part) for part in _PARTS_OF_SPARSE})
        return {"sparse": value.format, "shape": list(value.shape)}
    if isinstance(value, np.ndarray):
        bundle.arrays[path] = value
        return {"array": f"{value.dtype} {list(value.shape)}"}
    if isinstance(value, list) and any(map(_has_parts, value)):
        return {"list": [pack(item, bundle, _join(path, str(at))) for at, item in enumerate(value)]}
    if isinstance(value, dict) and any(map(_has_parts, value.values())):
        return {"dict": {key: pack(item, bundle, _join(path, key)) for key, item in value.items()}}
    return {"value": value.item() if isinstance(value, np.generic) else value}


def _pack_stateful(value: Stateful, bundle: ModelBundle, path: str) -> dict[str, Any]:
    value.check_fitted()
    packed: dict[str, Any] = {"name": value.name}
    if isinstance(value, Estimator):
        given = value.saved_params().items()
        packed["params"] = {key: v.item() if isinstance(v, np.generic) else v for key, v in given}
    packed["state"] = {key: pack(getattr(value, key), bundle, _join(path, key)) for key in value.state}
    for name, writer in value.files().items():
        bundle.files[_file_name(path, name)] = writer
    return packed


def unpack(packed: Any, bundle: LoadedBundle, kind: Kind) -> Any:  # noqa: ANN401 - any state
    """Return the checked part that ``pack`` packed; raise ModelError for values that the part does not declare."""
    reader = _Reader(bundle)
    loaded = reader.read(packed, PartConstraint(kind), "", Sizes())
    unknown = [*(bundle.arrays.keys() - reader.read_arrays)]
    if unknown:
        raise ModelError(f"a saved model must hold only the arrays of its method, but holds {unknown[0]!r}; {REMEDY}")
    return loaded


REMEDY = "copy the whole folder again, or train it again"


class _Reader:
    """Builds a state from what was packed, and checks it."""

    def __init__(self, bundle: LoadedBundle) -> None:
        self.bundle = bundle
        self.read_arrays: set[str] = set()
        self.to_check: list[tuple[str, Callable[[], None]]] = []  # once all sizes of a state are known

    def read(self, packed: Any, constraint: StateConstraint, path: str, sizes: Sizes) -> Any:  # noqa: ANN401 - any state
        """Return a value of the kind that the constraint is for."""
        try:
            if isinstance(constraint, PartConstraint):
                return self._read_parts(packed, constraint, path, sizes)
            if isinstance(constraint, PlainConstraint):
                return _plain(packed, constraint)
            if isinstance(constraint, ArraysConstraint):
                return self._read_arrays(packed, constraint, path, sizes)
            if isinstance(constraint, SparseConstraint):
                return self._read_sparse(packed, constraint, path, sizes)
            if isinstance(constraint, ArrayConstraint) and constraint.optional and packed == {"value": None}:
                return None
            must(isinstance(packed, dict) and packed.keys() == {"array"}, "an array here")
            return self._read_array(path, constraint, sizes)
        except StateError as error:
            raise _refused(path, error) from None

    def _read_array(self, path: str, constraint: ArrayConstraint | OffsetsConstraint, sizes: Sizes) -> npt.NDArray[Any]:
        must(path in self.bundle.arrays, "an array in the file")
        array = self.bundle.arrays[path]
        self.read_arrays.add(path)
        constraint.bind(array, sizes)
        self.to_check.append((path, lambda: constraint.check(array, sizes)))
        return array

    def _read_arrays(self, packed: Any, constraint: ArraysConstraint, path: str, sizes: Sizes) -> Arrays:  # noqa: ANN401
        inner, known = packed.get("dict") if isinstance(packed, dict) else None, constraint.arrays
        if not isinstance(inner, dict) or not inner.keys() <= known.keys():
            raise StateError(f"must have arrays of {', '.join(known)}, but has others")
        return {key: self.read(inner[key], known[key], _join(path, key), sizes) for key in inner}

    def _read_sparse(self, packed: Any, constraint: SparseConstraint, path: str, sizes: Sizes) -> Any:  # noqa: ANN401
        must(isinstance(packed, dict) and packed.keys() == {"sparse", "shape"}, "a sparse matrix here")
        must(packed["sparse"] == constraint.layout, f"the layout {constraint.layout}")
        shape = packed["shape"]
        must(isinstance(shape, list) and len(shape) == 2 and all(type(n) is int and n >= 0 for n in shape), "a shape")
        must(sizes.bind(constraint.rows, shape[0]), f"{constraint.rows} rows")
        must(sizes.bind(constraint.columns, shape[1]), f"{constraint.columns} columns")
        major, minor = shape if constraint.layout == "csr" else shape[::-1]
        inner = Sizes()  # the number of stored values is of this matrix alone
        stored = ArrayConstraint((constraint.dtype,), ("stored",))
        data = self._read_array(f"{path}.data", stored, inner)
        indptr = self._read_array(f"{path}.indptr", OffsetsConstraint(major, "stored"), inner)
        in_range = ArrayConstraint((indptr.dtype.name,), ("stored",), at_least=0, below=minor)
        indices = self._read_array(f"{path}.indices", in_range, inner)
        matrix = _LAYOUTS[constraint.layout](tuple(shape), dtype=data.dtype)
        # Set, not passed: the constructor would read every index again.
        matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
        return matrix

    def _read_parts(self, packed: Any, constraint: PartConstraint, path: str, sizes: Sizes) -> Any:  # noqa: ANN401
        if constraint.optional and packed == {"value": None}:
            return None
        if constraint.count is None:
            return self._read_part(packed, constraint, path, sizes)
        is_dict = constraint.count == NAMED
        must(isinstance(packed, dict), "parts here")
        empty = packed.get("value") if packed in ({"value": []}, {"value": {}}) else None  # ``pack`` writes no parts so
        inner = packed.get("dict" if is_dict else "list", empty)
        must(isinstance(inner, dict if is_dict else list), f"a {'dict' if is_dict else 'list'} here")
        if isinstance(inner, dict):
            names = list(map(str, inner))
            must(all(re.fullmatch("[A-Za-z0-9_]+", name) for name in names), "names of letters, digits and _")
            items = list(inner.values())
        else:
            names, items = [str(at) for at in range(len(inner))], inner
            must(sizes.bind(constraint.count, len(items)), f"{constraint.count}={sizes.get(constraint.count)} parts")
        named = zip(names, items, strict=True)
        read = {name: self._read_part(item, constraint, _join(path, name), sizes) for name, item in named}
        return read if is_dict else list(read.values())

    def _read_part(self, packed: Any, constraint: PartConstraint, path: str, sizes: Sizes) -> Any:  # noqa: ANN401
        cls, inner = constraint.kind, Sizes(sizes, constraint.shared)
        if not isinstance(cls, type) or issubclass(cls, Stateful):
            must(isinstance(packed, dict) and packed.keys() <= {"name", "params", "state"}, "a part with a state here")
            must(isinstance(packed.get("name"), str), "a name")
            stateful: type[Stateful] = cls if isinstance(cls, type) else _resolved(cls, packed["name"])
            must(packed["name"] == stateful.name, f"the name {stateful.name}")
            return self._read_stateful(packed, stateful, path, inner)
        must(isinstance(packed, dict) and packed.keys() == {"fields"}, "a part with fields here")
        record = cls(**self._read_all(packed["fields"], _fields(cls), path, inner))
        if hasattr(record, "check_state"):
            self.to_check.append((path, record.check_state))
        return record

    def _read_all(
        self, packed: object, constraints: Mapping[str, StateConstraint], path: str, sizes: Sizes
    ) -> dict[str, Any]:
        if not isinstance(packed, dict) or packed.keys() != constraints.keys():
            raise StateError(f"must have the fields {', '.join(constraints)}, but has others")
        return {key: self.read(packed[key], wanted, _join(path, key), sizes) for key, wanted in constraints.items()}

    def _read_stateful(self, packed: dict[str, Any], cls: type[Stateful], path: str, sizes: Sizes) -> Stateful:
        loaded = _with_params(packed, cls)
        constraints = {key: declared.constraint for key, declared in cls.state.items() if declared.constraint}
        defaults = {key: {"value": new.default} for key, new in cls.state.items() if new.default is not NO_DEFAULT}
        state = packed.get("state")
        state = defaults | state if isinstance(state, dict) else None  # an older model may lack new attributes
        if state is None or state.keys() != constraints.keys():
            raise StateError(f"must have the state {', '.join(constraints)}, but has another")
        outer, self.to_check = self.to_check, []
        plain = [key for key, constraint in constraints.items() if isinstance(constraint, PlainConstraint)]
        for key in plain:
            setattr(loaded, key, self.read(state[key], constraints[key], _join(path, key), sizes))
        sizes.set(loaded.sizes())
        for key in [key for key in constraints if key not in plain]:
            setattr(loaded, key, self.read(state[key], constraints[key], _join(path, key), sizes))
        for at, check in self.to_check:
            try:
                check()
            except StateError as error:
                raise _refused(at, error) from None
        self.to_check = outer
        loaded.read_files(lambda name: self.bundle.path_of(_file_name(path, name)))
        loaded.check_state()
        return loaded


def _resolved(kind: Callable[[str], type], name: str) -> type[Stateful]:
    try:
        return kind(name)
    except ParameterError as error:
        raise ModelError(f"a saved part must have a known name, but: {error}") from error


def _with_params(packed: dict[str, Any], cls: type[Stateful]) -> Stateful:
    """Return a part with its parameters, checked as when a user gives them."""
    if not issubclass(cls, Estimator):
        must("params" not in packed, "no parameters")
        return cls.__new__(cls)
    params = packed.get("params")
    if not isinstance(params, dict):
        raise StateError("must have parameters, but has none")
    try:
        earlier = {key: declared.earlier for key, declared in cls.params.items() if declared.earlier is not None}
        loaded = cls().set_params(**(earlier | params))
        Estimator.check_params(loaded)  # subclasses check packages too, which is done where they are used
    except ParameterError as error:
        rule = f"the saved {cls.name} must have parameters of this version, but: {error}"
        raise ModelError(f"{rule}; train it again") from error
    return loaded


def _plain(packed: Any, constraint: PlainConstraint) -> Any:  # noqa: ANN401 - any plain value
    must(isinstance(packed, dict) and packed.keys() == {"value"}, "a plain value here")
    if not constraint.constraint.holds(packed["value"]):
        raise StateError(f"must be {constraint.constraint.text}, but is {str(packed['value'])[:80]!r}")
    return packed["value"]


def _refused(path: str, error: StateError) -> ModelError:
    return ModelError(f"{path or 'the part'} of a saved model {error}; {REMEDY}")


def _fields(cls: type) -> dict[str, StateConstraint]:
    """Return the constraints of the fields of a dataclass or named tuple."""
    names = [f.name for f in fields(cls)] if is_dataclass(cls) else list(cls._fields)  # type: ignore[attr-defined]
    hints = get_type_hints(cls, include_extras=True)
    return {name: next(m for m in hints[name].__metadata__ if isinstance(m, StateConstraint)) for name in names}


def _has_parts(value: object) -> bool:
    """Return whether a value is more than JSON."""
    return isinstance(value, (Stateful, np.ndarray)) or sp.issparse(value) or _is_record(value)


def _is_record(value: object) -> bool:
    """Return whether a value is a dataclass or a named tuple."""
    return (is_dataclass(value) and not isinstance(value, type)) or hasattr(value, "_fields")


def _join(path: str, key: str) -> str:
    return f"{path}/{key}" if path else key


def _file_name(path: str, name: str) -> str:
    """Return ``index.faiss`` for ``index_`` and ``faiss``."""
    return ".".join([*(part.rstrip("_") for part in path.split("/") if part), name])
