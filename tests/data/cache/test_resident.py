import mmap
import threading
from pathlib import Path

import numpy as np
import pytest

from labelspace.data.cache import scratch as resident
from labelspace.data.cache.scratch import (
    MemoryLimit,
    ResidencyLimiter,
    Scratch,
    can_drop_pages,
    is_in_memory,
    machine_memory,
    peak_memory,
)

pytestmark = pytest.mark.skipif(not can_drop_pages(), reason="needs Linux")


def test_pages_of_files_are_dropped_near_the_limit(tmp_path):
    limit = MemoryLimit(2**20)
    assert not limit.is_near(), "the process has more than that, but no pages to drop"
    scratch = Scratch(tmp_path, 2**20)
    array = scratch.empty((2**25,), np.uint8)
    array[:] = 1
    assert limit.is_near()
    assert 2**20 < limit.peak < peak_memory()
    assert not MemoryLimit(2**40).is_near()
    scratch.relieve()
    assert not limit.is_near()
    assert (array == 1).all()


def test_room_is_what_the_process_does_not_use_itself(tmp_path):
    limit = MemoryLimit(2**40)
    before = limit.room()
    assert 0.6 * 2**40 < before < 0.7 * 2**40
    mapped = Scratch(tmp_path, 2**20).empty((2**25,), np.uint8)
    mapped[:] = 1
    assert limit.room() > before - 2**23, "pages of files can be dropped"
    with mmap.mmap(-1, 2**26, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as block:
        block.write(bytes(2**26))
        assert limit.room() < before - 2**25
    assert MemoryLimit(2**20).room() == 0


def test_a_thread_looks_again_and_again_within_the_context():
    looks, enough = iter(range(3)), threading.Event()

    def look():
        if next(looks, None) is None:
            enough.set()

    with ResidencyLimiter(look) as limiter:
        assert enough.wait(10)
    assert not limiter._thread.is_alive()


def test_where_pages_cannot_be_dropped_nobody_looks(monkeypatch):
    monkeypatch.setattr(resident, "STATM", Path("/nowhere"))
    assert not MemoryLimit(1).is_near()
    assert MemoryLimit(2**40).room() == 0
    with ResidencyLimiter(lambda: None) as limiter:
        assert not limiter._thread.is_alive()


def test_the_memory_of_process_and_machine():
    block = np.ones(2**25, np.uint8)
    assert block.nbytes < peak_memory() < machine_memory()


@pytest.mark.parametrize(("limit", "known"), [("123456789\n", 123456789), ("max\n", None)])
def test_the_limit_of_a_container_counts(limit, known, tmp_path, monkeypatch):
    machine = machine_memory()
    (tmp_path / "memory.max").write_text(limit)
    monkeypatch.setattr(resident, "CONTAINER_LIMITS", (tmp_path / "memory.max", tmp_path / "missing"))
    assert machine_memory() == (known or machine)


def test_a_disk_in_memory_is_known(tmp_path, monkeypatch):
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda / ext4 rw 0 0\ntmpfs {tmp_path / 'fast'} tmpfs rw 0 0\n")
    monkeypatch.setattr(resident, "MOUNTS", mounts)
    assert is_in_memory(tmp_path / "fast" / "cache")
    assert not is_in_memory(tmp_path / "cache")
