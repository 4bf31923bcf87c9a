import errno
import gc
import os
import re
from pathlib import Path

import numpy as np
import pytest

from labelspace.data.cache.scratch import SEGMENT, Scratch
from labelspace.errors import DataError

LARGE = SEGMENT // 4 + 8  # bytes: a file of its own


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path, 2**30)


def filled(scratch, size, value):
    array = scratch.empty((size,), np.uint8)
    array[:] = value
    return array


def test_arrays_are_apart_and_aligned(scratch):
    arrays = [filled(scratch, size, value) for value, size in enumerate([3, 100, LARGE, 1], 1)]
    for value, array in enumerate(arrays, 1):
        assert (array == value).all()
        assert array.ctypes.data % 64 == 0
        assert array.flags.writeable
    assert scratch.empty((0, 3), np.float32).shape == (0, 3)
    assert scratch.empty((2, 3), np.float32).shape == (2, 3)


def test_the_files_have_no_name_and_are_gone_with_their_arrays(scratch, tmp_path):
    small, large = filled(scratch, 100, 1), filled(scratch, LARGE, 2)
    assert os.listdir(tmp_path) == []
    assert scratch.n_bytes == SEGMENT + LARGE
    del large
    gc.collect()
    assert scratch.n_bytes == SEGMENT
    assert scratch.peak_bytes == SEGMENT + LARGE
    assert (small == 1).all()


def test_segments_grow_with_what_is_in_use(scratch, monkeypatch):
    monkeypatch.setattr("labelspace.data.cache.scratch.SEGMENT", 2**12)
    arrays = [filled(scratch, 1000, value) for value in range(200)]
    assert all((array == value).all() for value, array in enumerate(arrays))
    assert len(scratch._maps) < 40


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs Linux")
def test_dropped_pages_are_read_again_from_shared_maps(scratch, tmp_path):
    array = filled(scratch, LARGE, 7)
    with open("/proc/self/smaps") as maps:
        ours = [line for line in maps if str(tmp_path) in line]
    assert len(ours) == 1
    assert re.match(r"\S+ rw-s ", ours[0]), "a private map would lose what was written"

    def resident():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = resident()
    scratch.drop_pages()
    assert before - resident() > LARGE // 2
    assert (array == 7).all()


def test_growing_arrays_are_what_was_appended(scratch):
    growing = scratch.growing(np.int32)
    growing.append(np.array([1, 2]))
    growing.append(np.arange(4)[::2])
    assert growing.finish().tolist() == [1, 2, 0, 2]
    assert scratch.growing(np.float32).finish().tolist() == []


def test_a_full_disk_is_an_error_that_names_the_folder(scratch, tmp_path, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(DataError, match=rf"writing to {re.escape(str(tmp_path))} failed \(No space left on device\)"):
        scratch.empty((LARGE,), np.uint8)


def test_a_file_system_without_reservation_will_do(scratch, monkeypatch):
    def unknown(*args):
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(os, "posix_fallocate", unknown)
    assert (filled(scratch, LARGE, 3) == 3).all()
