"""Arrays and sparse matrices of NumPy and SciPy files, sound and broken."""

import io
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data import array_files
from labelspace.data.array_files import read_array, read_arrays, read_matrix, write_matrix
from labelspace.errors import DataError

MATRIX = sp.csr_matrix(np.array([[0, 1.5, 0], [2, 0, -3]], np.float32))


def parts(**changed):
    """The arrays that SciPy writes for MATRIX, some of them changed."""
    arrays = {"format": b"csr", "shape": MATRIX.shape, "data": MATRIX.data}
    return {**arrays, "indices": MATRIX.indices, "indptr": MATRIX.indptr, **changed}


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix, sp.csr_array])
@pytest.mark.parametrize("compressed", [True, False])
def test_what_scipy_saved_is_read(tmp_path, kind, compressed):
    sp.save_npz(tmp_path / "a.npz", kind(MATRIX), compressed=compressed)
    found = read_matrix(tmp_path / "a.npz")
    assert found.toarray().tolist() == MATRIX.toarray().tolist()
    assert (found.format, found.dtype, found.indices.dtype) == ("csr", np.float32, np.int32)


def test_what_is_written_is_read_by_scipy(tmp_path):
    write_matrix(tmp_path / "a.npz", MATRIX)
    assert (sp.load_npz(tmp_path / "a.npz") != MATRIX).nnz == 0


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<i8", "?", "<f2", "u1"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_dense_arrays_of_any_number_type(tmp_path, dtype, order):
    values = np.asarray([[0, 1, 0], [1, 1, 0]], dtype=dtype, order=order)
    np.save(tmp_path / "a.npy", values)
    assert read_array(tmp_path / "a.npy").tolist() == values.tolist()
    assert read_matrix(tmp_path / "a.npy").toarray().tolist() == values.astype(float).tolist()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"format": b"coo"}, "csr or csc, but has the format 'coo'; save it with scipy"),
        ({"format": 7}, "csr or csc, but has the arrays data, format"),
        ({"shape": [2, 3, 4]}, "must have a shape of two integers, but has"),
        ({"shape": [2**40, 3]}, "at most 2147483647 rows and columns"),
        ({"shape": [-2, 3]}, "at most 2147483647 rows and columns"),
        ({"shape": [3, 3]}, "must have one more indptr than rows"),
        ({"indptr": [0, 3, 2]}, "must have indptr that ascends from 0"),
        ({"indptr": [1, 1, 3]}, "must have indptr that ascends from 0"),
        ({"indptr": [0, 5, 3]}, "must have indptr that ascends from 0"),
        ({"indptr": [0, 1, 9]}, "must have indptr that ascends from 0"),
        ({"indices": [1, 0, 3]}, "must have indices from 0 to 2"),
        ({"indices": [1, 0, -1]}, "must have indices from 0 to 2"),
        ({"indices": [1.0, 0.0, 2.0]}, "must have 1-d indices of integers"),
        ({"indices": [1, 0]}, "must have as many indices as data"),
        ({"data": ["a", "b", "c"]}, "must have data of numbers"),
        ({"data": [[1.0, 2.0, 3.0]]}, "must have data of numbers"),
        ({"data": [1.0, np.nan, 2.0]}, "must hold finite numbers"),
        ({"data": [1.0, 1e300, 2.0]}, "must hold finite numbers"),
    ],
)
def test_parts_that_are_no_matrix_are_refused(tmp_path, changed, message):
    np.savez(tmp_path / "a.npz", **parts(**changed))
    with pytest.raises(DataError, match=message):
        read_matrix(tmp_path / "a.npz")


def test_objects_are_never_unpickled(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(DataError, match="pickled objects are never read"):
        read_array(tmp_path / "a.npy")
    np.savez(tmp_path / "a.npz", **parts(data=np.array([None] * 3)))
    with pytest.raises(DataError, match="array 'data' must hold numbers or texts, but is of type object"):
        read_matrix(tmp_path / "a.npz")


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.eye(3))
    whole = path.read_bytes()
    for damaged, message in (
        (whole[:-1], "must have 72 bytes for its shape"),
        (whole + b"x", "must have 72 bytes for its shape"),
        (b"", "has no such header"),
        (b"no array", "has no such header"),
        (whole.replace(b"(3, 3)", b"(9, 9)"), "must have 648 bytes"),
        (whole.replace(b"(3, 3), }  ", b"(-3, -3), }"), r"for its shape \(-3, -3\)"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=message):
            read_array(path)
    (tmp_path / "a.npz").write_bytes(b"no archive")
    with pytest.raises(DataError, match="must be a file of numpy.savez"):
        read_arrays(tmp_path / "a.npz")
    with pytest.raises(DataError, match="unpack it first"):
        read_arrays(tmp_path / "a.npz.gz")


def test_a_damaged_member_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", **parts())
    data = bytearray((tmp_path / "a.npz").read_bytes())
    data[data.index(MATRIX.data.tobytes())] ^= 0xFF
    (tmp_path / "a.npz").write_bytes(bytes(data))
    with pytest.raises(DataError, match="Bad CRC-32"):
        read_matrix(tmp_path / "a.npz")


def test_a_small_file_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(array_files, "_MAX_UNPACKED", (1000, 100))
    member = io.BytesIO()
    np.save(member, np.zeros(10**6))
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", member.getvalue())
    with pytest.raises(DataError, match="must unpack to at most"):
        read_arrays(tmp_path / "a.npz")
