"""Arrays of ``.npy`` and ``.npz`` files, and sparse matrices of SciPy in ``.npz``: no pickle, every part checked."""

import io
import math
import zipfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.data.archives import compression
from labelspace.data.files import reading, writing
from labelspace.data.sparse_rows import MAX_COLUMNS
from labelspace.errors import DataError
from labelspace.types import Csr

Array = npt.NDArray[Any]
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_MAX_UNPACKED = 2**30, 100  # bytes of all arrays of a file, or times its size on disk


def read_array(path: str | Path) -> Array:
    """Read the array of a .npy file.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/a.npy", np.eye(2))
    ...     read_array(f"{folder}/a.npy").tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    with _seekable(path) as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        return _read_array(file, size, str(path))


def read_tensor(path: str | Path) -> Array:
    """Read the only array of a .safetensors file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            names = list(file.keys())
            if len(names) == 1:
                array: Array = file.get_tensor(names[0])
                return array
    except (SafetensorError, TypeError, OSError) as error:  # damaged, or of a type that NumPy lacks
        raise DataError(f"{path} must be a .safetensors file, but cannot be read ({error}); save it again") from error
    raise DataError(f"{path} must hold one array, but holds {', '.join(names)[:80] or 'none'}; save one array")


def array_names(path: str | Path) -> list[str]:
    """Return the names of the arrays of a .npz file."""
    with _archive(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def read_arrays(path: str | Path) -> dict[str, Array]:
    """Read the arrays of a .npz file by name."""
    with _archive(path) as archive:
        arrays = {}
        for member in archive.infolist():
            with archive.open(member) as file:
                name = member.filename.removesuffix(".npy")
                arrays[name] = _read_array(file, member.file_size, f"{path}, array {name!r}")
        return arrays


def _seekable(path: str | Path) -> AbstractContextManager[BinaryIO]:
    if compression(path):
        raise DataError(f"a file of arrays must be .npy or .npz, but is {Path(path).name}; unpack it first")
    return reading(path)


@contextmanager
def _archive(path: str | Path) -> Iterator[zipfile.ZipFile]:
    with _seekable(path) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                limit = max(_MAX_UNPACKED[0], _MAX_UNPACKED[1] * file.seek(0, io.SEEK_END))
                total = sum(member.file_size for member in archive.infolist())
                if total > limit:
                    problem = f"must unpack to at most {limit} bytes, but has {total}"
                    raise DataError(f"{path} {problem}; save it uncompressed: numpy.savez")
                yield archive
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:  # damaged, unknown, encrypted
            raise DataError(f"{path} must be a file of numpy.savez, but is not ({error}); save it again") from error


def _read_array(file: Any, size: int, where: str) -> Array:  # noqa: ANN401 - a file, or a member of an archive
    """Read the array of an open file of ``size`` bytes, with which its header must agree."""
    try:
        shape, is_fortran, dtype = _HEADERS[np.lib.format.read_magic(file)](file)
    except (ValueError, KeyError, EOFError) as error:
        raise DataError(f"{where} must be an array of numpy.save, but has no such header; save it again") from error
    if dtype.hasobject or dtype.kind not in "biufSU":
        remedy = "pickled objects are never read: save an array of numbers, or of type str"
        raise DataError(f"{where} must hold numbers or texts, but is of type {dtype}; {remedy}")
    n_bytes = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or n_bytes != size - file.tell():
        rule = f"{where} must have {n_bytes} bytes for its shape {shape}"
        raise DataError(f"{rule}, but has {size - file.tell()}; it is damaged: save it again")
    buffer = bytearray(n_bytes)
    if file.readinto(buffer) != n_bytes:
        raise DataError(f"{where} must have {n_bytes} bytes, but ends before; it is damaged: save it again")
    array: Array = np.frombuffer(buffer, dtype).reshape(shape, order="F" if is_fortran else "C")
    return array.astype(dtype.newbyteorder("="), copy=False)


def read_matrix(path: str | Path) -> Csr:
    """Read a matrix of numbers as csr float32 with sorted, distinct indices: 2-d .npy, or SciPy's .npz (csr, csc).

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     sp.save_npz(f"{folder}/a.npz", sp.csr_matrix([[0, 2.5]]))
    ...     read_matrix(f"{folder}/a.npz").toarray().tolist()
    [[0.0, 2.5]]
    """
    if Path(path).suffix.lower() == ".npy":
        return dense_rows(read_array(path), str(path))
    return sparse_matrix(read_arrays(path), str(path))


def dense_rows(array: Array, where: str) -> Csr:
    """Return a 2-d array of numbers as csr float32."""
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        rule = f"{where} must be a 2-d array of numbers, one row per document"
        raise DataError(f"{rule}, but has shape {array.shape} and type {array.dtype}; save such an array")
    _check_shape(array.shape, where)
    with np.errstate(over="ignore"):  # values that overflow are refused next
        matrix = sp.csr_matrix(array.astype(np.float32, copy=False))
    return _finite(matrix, where)


def sparse_matrix(arrays: dict[str, Array], where: str) -> Csr:
    """Return the matrix that ``scipy.sparse.save_npz`` saved as these arrays, as csr float32."""
    kind = _kind(arrays, where)
    data, indices, indptr, shape = (arrays.get(name, np.empty(0)) for name in ("data", "indices", "indptr", "shape"))
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise DataError(f"{where} must have a shape of two integers, but has {shape[:5].tolist()}; save it again")
    n_rows, n_columns = (int(size) for size in shape)
    _check_shape((n_rows, n_columns), where)
    outer, inner = (n_rows, n_columns) if kind == "csr" else (n_columns, n_rows)
    _check_parts(data, indices, indptr, outer, inner, where)
    index = np.int64 if len(data) > MAX_COLUMNS else np.int32
    with np.errstate(over="ignore"):  # values that overflow are refused next
        parts = data.astype(np.float32), indices.astype(index), indptr.astype(index)
    matrix = (sp.csr_matrix if kind == "csr" else sp.csc_matrix)(parts, shape=(n_rows, n_columns)).tocsr()
    matrix.sum_duplicates()
    return _finite(matrix, where)


def _kind(arrays: dict[str, Array], where: str) -> str:
    given = arrays.get("format", np.array(""))
    kind = given.item() if given.ndim == 0 and given.dtype.kind in "SU" else ""
    kind = kind.decode(errors="replace") if isinstance(kind, bytes) else kind
    if kind not in ("csr", "csc"):
        problem = f"has the format {kind!r}" if kind else f"has the arrays {', '.join(sorted(arrays))[:80]}"
        remedy = "save it with scipy.sparse.save_npz(path, matrix.tocsr())"
        raise DataError(f"{where} must be a sparse matrix of SciPy, csr or csc, but {problem}; {remedy}")
    return str(kind)


def _check_shape(shape: tuple[int, ...], where: str) -> None:
    if not all(0 <= size <= MAX_COLUMNS for size in shape):
        raise DataError(f"{where} must have at most {MAX_COLUMNS} rows and columns, but has {shape}; correct it")


def _check_parts(data: Array, indices: Array, indptr: Array, outer: int, inner: int, where: str) -> None:
    """Raise DataError for parts that are no compressed matrix: SciPy would read beyond their ends."""
    is_sound = {
        "data of numbers": data.ndim == 1 and data.dtype.kind in "biuf",
        "1-d indices of integers": indices.ndim == 1 and indices.dtype.kind in "iu",
        "1-d indptr of integers": indptr.ndim == 1 and indptr.dtype.kind in "iu",
        "as many indices as data": len(np.atleast_1d(indices)) == len(np.atleast_1d(data)),
        "one more indptr than rows": len(np.atleast_1d(indptr)) == outer + 1,
    }
    wrong = next((rule for rule, is_so in is_sound.items() if not is_so), None)
    if wrong is None and (indptr[0] != 0 or indptr[-1] != len(indices) or (indptr[1:] < indptr[:-1]).any()):
        wrong = "indptr that ascends from 0 to the number of data"
    if wrong is None and len(indices) and not (indices.min() >= 0 and indices.max() < inner):
        wrong = f"indices from 0 to {inner - 1}"
    if wrong is not None:
        raise DataError(f"{where} must have {wrong}, as a sparse matrix of SciPy, but lacks it; save it again")


def _finite(matrix: Csr, where: str) -> Csr:
    if not np.isfinite(matrix.data).all():
        raise DataError(f"{where} must hold finite numbers (float32), but some are not; drop or fill those values")
    return matrix


def write_matrix(path: str | Path, matrix: Csr) -> None:
    """Write a matrix as ``scipy.sparse.save_npz`` does, uncompressed as PECOS does, in place of an older file."""
    with writing(path) as file:
        sp.save_npz(file, sp.csr_matrix(matrix), compressed=False)
