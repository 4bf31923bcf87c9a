import numpy as np
import scipy.sparse as sp

from labelspace.cluster.executor import Packed, pack, shared_value, unpack


def read_only(packed):
    for array in packed.arrays:
        array.flags.writeable = False
    return packed


def test_arrays_of_the_object_store_are_not_copied_and_look_writable():
    matrix = sp.random(20, 30, density=0.2, format="csr", dtype=np.float32, random_state=0)
    packed = read_only(Packed(*pack({"X": matrix, "names": ["a", "b"]})))
    value = unpack(packed)
    assert (value["X"] != matrix).nnz == 0
    assert value["names"] == ["a", "b"]
    assert value["X"].data.flags.writeable
    assert np.shares_memory(value["X"].data, matrix.data)


def test_a_copy_is_free_of_what_was_packed():
    array = np.arange(5)
    value = unpack(read_only(pack(array)), copy=True)
    value[0] = 9
    assert array[0] == 0


def test_the_last_value_is_unpacked_once():
    packed = pack(np.arange(3))
    first = shared_value("one", packed)
    assert shared_value("one", packed) is first
    assert shared_value("other", pack("text")) == "text"
    assert shared_value("one", packed) is not first
