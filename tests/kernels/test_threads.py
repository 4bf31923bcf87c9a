"""Threads: every row once, exceptions and progress arrive, the number is taken from the environment."""

import os
import threading
import time

import numpy as np
import pytest

from labelspace.errors import ParameterError
from labelspace.kernels.threads import n_threads, run_blocks


def test_the_environment_sets_the_number_of_threads(monkeypatch):
    monkeypatch.setenv("LABELSPACE_THREADS", "3")
    assert n_threads() == 3
    monkeypatch.delenv("LABELSPACE_THREADS")
    assert 1 <= n_threads() <= os.cpu_count()


@pytest.mark.parametrize("given", ["0", "-1", "two", "1.5"])
def test_a_bad_number_of_threads_is_an_error(monkeypatch, given):
    monkeypatch.setenv("LABELSPACE_THREADS", given)
    with pytest.raises(ParameterError, match="LABELSPACE_THREADS must be a whole number"):
        n_threads()


@pytest.mark.parametrize("threads", ["1", "2", "5"])
@pytest.mark.parametrize(("n", "block"), [(0, 4), (3, 4), (4, 4), (103, 4)])
def test_every_row_is_done_once(monkeypatch, threads, n, block):
    monkeypatch.setenv("LABELSPACE_THREADS", threads)
    times = np.zeros(n, int)
    reports = []

    def work(start, stop):
        assert 0 < stop - start <= block
        times[start:stop] += 1

    run_blocks(work, n, block, progress=lambda done, total: reports.append((done, total)))
    assert (times == 1).all()
    assert len(reports) == -(-n // block)
    assert [done for done, _ in reports] == sorted(done for done, _ in reports)
    assert not reports or reports[-1] == (n, n)


def test_a_single_block_runs_in_the_callers_thread(monkeypatch):
    monkeypatch.setenv("LABELSPACE_THREADS", "4")
    seen = []
    run_blocks(lambda start, stop: seen.append(threading.current_thread()), 10, 10)
    assert seen == [threading.current_thread()]


def test_several_blocks_run_at_the_same_time(monkeypatch):
    monkeypatch.setenv("LABELSPACE_THREADS", "2")
    meeting = threading.Barrier(2, timeout=5)
    run_blocks(lambda start, stop: meeting.wait() and None, 2, 1)
    assert not meeting.broken


@pytest.mark.parametrize("threads", ["1", "2"])
def test_an_exception_arrives_and_stops_the_rest(monkeypatch, threads):
    monkeypatch.setenv("LABELSPACE_THREADS", threads)
    begun = []

    def work(start, stop):
        begun.append(start)
        if start == 0:
            raise KeyError("broken")
        time.sleep(0.002)

    with pytest.raises(KeyError, match="broken"):
        run_blocks(work, 500, 1)
    assert len(begun) < 500


def test_an_empty_block_is_an_error():
    with pytest.raises(ParameterError, match="block must be at least 1"):
        run_blocks(lambda start, stop: None, 3, 0)
