import numpy as np
import pytest

from labelspace.data.cache.scratch import Scratch
from labelspace.kernels import large_arrays
from labelspace.kernels.threads import run_blocks, run_parallel

LARGE = 2**20


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path, LARGE * large_arrays.SMALL_SHARE)


def is_stored(array):
    """Whether an array is a view of something that is no array."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.base is not None


def test_large_arrays_are_in_files_within_the_context_only(scratch):
    with large_arrays.stored_in(scratch):
        assert is_stored(large_arrays.empty(LARGE, np.uint8))
        assert not is_stored(large_arrays.empty(LARGE - 1, np.uint8))
        assert large_arrays.memory() == scratch.memory
    assert not is_stored(large_arrays.empty(LARGE, np.uint8))
    assert large_arrays.memory() is None


def test_working_arrays_are_in_memory_where_that_has_room(scratch, monkeypatch):
    monkeypatch.setenv("LABELSPACE_THREADS", "2")
    size = 2 * LARGE * 8  # of both arrays, for each of two threads

    def stored():
        values, ids = large_arrays.working(LARGE, np.float32, np.int32)
        assert (values.dtype, ids.dtype, len(values), len(ids)) == (np.float32, np.int32, LARGE, LARGE)
        assert is_stored(values) == is_stored(ids)
        return is_stored(values)

    assert not stored()
    with large_arrays.stored_in(scratch):
        monkeypatch.setattr(scratch, "room", lambda: size)
        assert not stored()
        monkeypatch.setattr(scratch, "room", lambda: size - 1)
        assert stored()


def test_tasks_see_the_storage_of_their_caller(scratch, monkeypatch):
    monkeypatch.setenv("LABELSPACE_THREADS", "2")
    seen = []

    def work(start, stop):
        seen.append(is_stored(large_arrays.empty(LARGE, np.uint8)))

    with large_arrays.stored_in(scratch):
        run_blocks(work, 4, 1)
        seen += run_parallel(lambda i, tick: is_stored(large_arrays.empty(LARGE, np.uint8)), 2)
    run_blocks(work, 2, 1)
    assert seen == [True] * 6 + [False] * 2


def test_parts_are_kept_where_they_are_worth_a_file(scratch):
    part = np.arange(large_arrays.SMALL_PART, dtype=np.int64)
    assert large_arrays.keep(part) is part
    with large_arrays.stored_in(scratch):
        kept = large_arrays.keep(part)
        assert is_stored(kept)
        assert np.array_equal(kept, part)
        small = large_arrays.keep(part[:10])
        assert small.base is None, "not a view, which would keep the whole"
        assert np.array_equal(small, part[:10])


@pytest.mark.parametrize("stored", [False, True])
def test_the_values_are_those_of_numpy(stored, scratch, monkeypatch):
    monkeypatch.setattr(large_arrays, "TAKEN", 3)
    monkeypatch.setattr(large_arrays, "SMALL_SHARE", 2**60)
    monkeypatch.setattr(large_arrays, "MIN_MOVED", 6)
    arrays = [np.arange(5, dtype=np.int32), np.arange(3, dtype=np.int64)]
    table, rows = np.arange(12).reshape(6, 2), np.array([5, 0, -1, 3])

    def check():
        joined = large_arrays.concatenate(arrays)
        assert joined.dtype == np.int64
        assert np.array_equal(joined, np.concatenate(arrays))
        assert np.array_equal(large_arrays.take(table, rows), table[rows])
        growing = large_arrays.growing(np.float32)
        for array in arrays * 5:
            growing.append(array)
        assert np.array_equal(growing.finish(), np.concatenate(arrays * 5))
        with large_arrays.temporary_file() as file:
            file.write(b"a")

    if stored:
        with large_arrays.stored_in(scratch):
            check()
    else:
        check()
