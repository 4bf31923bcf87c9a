"""Checkpoints: the arrays of an interrupted training in one file, replaced atomically and checked before use."""

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelspace.errors import ModelError
from labelspace.kernels import large_arrays
from labelspace.store import Arrays, locked, replacing_file
from labelspace.types import Csr

BLOCK = 2**20  # numbers of an array that go into a checksum at a time: copies of larger parts would take memory


class Checkpoint:
    """The state of one training in a folder; ``fingerprint`` (parameters and data) tells it from other trainings.

    Unless ``durable``, a file need not survive the process and is not synced to disk.
    """

    def __init__(
        self, folder: str | Path, fingerprint: Mapping[str, Any], name: str = "checkpoint", durable: bool = True
    ) -> None:
        self.path, self.durable = Path(folder) / f"{name}.safetensors", durable
        # NumPy's numbers become plain ones.
        self.fingerprint = json.dumps(fingerprint, sort_keys=True, default=np.generic.item)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Refuse to start while another training uses the same file."""
        with ExitStack() as stack:
            with self._io_errors():
                self.path.parent.mkdir(parents=True, exist_ok=True)
                free = stack.enter_context(locked(self.path.with_name(f".{self.path.stem}.lock")))
            if not free:
                problem = f"a checkpoint must be used by one training at a time, but another one uses {self.path}"
                raise ModelError(f"{problem}; wait until it ends, or give another folder")
            yield

    def write(self, arrays: Arrays, values: Mapping[str, Any]) -> None:
        """Replace the saved state."""
        from safetensors.numpy import save_file

        # ``save_file`` mixes up the entries of arrays in another order.
        arrays = {key: np.asarray(array, order="C") for key, array in arrays.items()}
        metadata = {"fingerprint": self.fingerprint, "values": json.dumps(values)}
        metadata["checksum"] = _checksum(metadata, _describe(arrays.items()))
        with self._io_errors(), replacing_file(self.path, self.durable) as temporary:
            save_file(arrays, temporary, metadata)

    def read(self, into: Arrays, like: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """Fill arrays with the saved state and return its values; None where nothing is saved yet.

        Everything is checked before an array is filled. Values must have the names and types of ``like``.
        """
        from safetensors import SafetensorError, safe_open

        try:
            if not self.path.exists():
                return None
            with safe_open(self.path, framework="numpy") as file:
                metadata = file.metadata() or {}
                same = metadata["fingerprint"] == self.fingerprint
                found = _describe((key, file.get_tensor(key)) for key in file.keys())  # noqa: SIM118 - not a dict
                if metadata["checksum"] != _checksum(metadata, found):
                    raise ValueError("its checksum does not match: it is damaged")
                values: dict[str, Any] = json.loads(metadata["values"])
                if same:
                    _check(values, like, found, into)
                    for key, array in into.items():
                        array[...] = file.get_tensor(key)
        except (OSError, SafetensorError, LookupError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise unreadable(self.path, error) from error
        if not same:
            raise of_another_training(self.path)
        return values

    def remove(self) -> None:
        """Remove the saved state, if any."""
        with suppress(OSError):
            self.path.unlink()

    @contextmanager
    def _io_errors(self) -> Iterator[None]:
        from safetensors import SafetensorError

        try:
            yield
        except (OSError, SafetensorError) as error:
            problem = f"but that failed ({getattr(error, 'strerror', None) or error})"
            remedy = "free some space or give another folder"
            raise ModelError(f"a checkpoint must be written to {self.path}, {problem}; {remedy}") from error


def unreadable(path: Path, error: object) -> ModelError:
    """Return the error for a file that is damaged, or no checkpoint."""
    rule = f"{path} must be a checkpoint of this version"
    return ModelError(f"{rule}, but cannot be read ({error}); delete it to start again")


def of_another_training(path: Path) -> ModelError:
    """Return the error for a checkpoint with a different fingerprint."""
    rule = "a checkpoint must be of the same data and parameters"
    return ModelError(f"{rule}, but {path} is of others; delete it, or give another folder")


def _describe(arrays: Iterable[tuple[str, npt.NDArray[Any]]]) -> dict[str, tuple[str, list[int], int]]:
    """Return the dtype, shape and checksum of each array."""
    return {key: (str(array.dtype), list(array.shape), zlib.crc32(array.data)) for key, array in arrays}


def _checksum(metadata: Mapping[str, str], arrays: Mapping[str, tuple[str, list[int], int]]) -> str:
    """Return the checksum of all that a checkpoint contains."""
    parts = [metadata["fingerprint"], metadata["values"], arrays]
    return f"{zlib.crc32(json.dumps(parts, sort_keys=True).encode()):08x}"


def _check(
    values: object, like: Mapping[str, Any] | None, found: Mapping[str, tuple[str, list[int], int]], into: Arrays
) -> None:
    """Raise ValueError if values differ in names or types, or arrays in names, dtypes or shapes."""
    if not isinstance(values, dict) or (like is not None and not _is_like(values, like)):
        raise ValueError("its values are not those of a training")
    if differing := sorted(found.keys() ^ into.keys()):
        raise ValueError(f"its arrays are others: {differing[0]!r}")
    for key, array in into.items():
        dtype, shape, _ = found[key]
        if (dtype, shape) != (str(array.dtype), list(array.shape)):
            raise ValueError(f"array {key!r} is {dtype} {shape}, not {array.dtype} {list(array.shape)}")


def _is_like(value: object, like: object) -> bool:
    """Return whether JSON has the types of an example; a list has any length and items like the first of the example.

    >>> _is_like({"epoch": 3, "scores": [0.5, 1]}, {"epoch": 0, "scores": [0.0]})
    True
    >>> _is_like({"epoch": "3", "scores": []}, {"epoch": 0, "scores": [0.0]})
    False
    """
    if isinstance(like, dict) and isinstance(value, dict):
        return value.keys() == like.keys() and all(_is_like(value[key], like[key]) for key in like)
    if isinstance(like, list) and isinstance(value, list):
        return all(_is_like(item, like[0]) for item in value)
    return type(value) is type(like) or (type(like) is float and type(value) is int)


def data_fingerprint(*tables: Csr | npt.NDArray[Any] | Sequence[str]) -> list[int]:
    """Return numbers that differ if matrices or lists of texts differ: the shape and a checksum of each.

    >>> import scipy.sparse as sp
    >>> data_fingerprint(sp.csr_matrix(np.eye(2))) == data_fingerprint(sp.csr_matrix(np.eye(2)))
    True
    >>> data_fingerprint(["ab", "c"]) == data_fingerprint(["a", "bc"])
    False
    """
    numbers = []
    for table in tables:
        checksum = 0
        for content in _contents(table):
            checksum = zlib.crc32(content, checksum)
        shape = (len(table),) if isinstance(table, Sequence) else table.shape
        numbers += [*map(int, shape), checksum]
    return numbers


def _contents(table: Csr | npt.NDArray[Any] | Sequence[str]) -> Iterator[bytes | memoryview]:
    """Yield the bytes of all entries of a table."""
    if isinstance(table, Sequence):
        for text in table:
            yield f"{len(text)} {text}".encode(errors="surrogatepass")
    else:
        for array in (table,) if isinstance(table, np.ndarray) else (table.data, table.indices, table.indptr):
            content = np.ascontiguousarray(array).reshape(-1)
            yield from (content[part].data for part in large_arrays.blocks(len(content), BLOCK))
