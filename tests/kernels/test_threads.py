"""Threads: every row once, exceptions and progress arrive, the number is taken from the environment."""

import os
import threading
import time
from concurrent.futures import wait

import numpy as np
import pytest

from labelspace.errors import ParameterError
from labelspace.kernels import threads as kernel_threads
from labelspace.kernels.threads import n_threads, run_blocks, run_parallel, thread_zeros


def test_the_environment_sets_the_number_of_threads(monkeypatch):
    monkeypatch.setenv("LABELSPACE_THREADS", "3")
    assert n_threads() == 3
    monkeypatch.delenv("LABELSPACE_THREADS")
    assert 1 <= n_threads() <= os.cpu_count()


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5"])
def test_a_bad_number_of_threads_is_an_error(monkeypatch, value):
    monkeypatch.setenv("LABELSPACE_THREADS", value)
    with pytest.raises(ParameterError, match="LABELSPACE_THREADS must be an integer"):
        n_threads()


@pytest.mark.parametrize("threads", ["1", "2", "5"])
@pytest.mark.parametrize(("n", "block"), [(0, 4), (3, 4), (4, 4), (103, 4)])
def test_every_row_is_done_once(monkeypatch, threads, n, block):
    monkeypatch.setenv("LABELSPACE_THREADS", threads)
    n_calls = np.zeros(n, int)
    reports = []

    def work(start, stop):
        assert 0 < stop - start <= block
        n_calls[start:stop] += 1

    run_blocks(work, n, block, progress=lambda done, total: reports.append((done, total)))
    assert (n_calls == 1).all()
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
    barrier = threading.Barrier(2, timeout=5)
    run_blocks(lambda start, stop: barrier.wait() and None, 2, 1)
    assert not barrier.broken


@pytest.mark.parametrize("threads", ["1", "2"])
def test_an_exception_arrives_and_stops_the_rest(monkeypatch, threads):
    monkeypatch.setenv("LABELSPACE_THREADS", threads)
    started = []

    def work(start, stop):
        started.append(start)
        if start == 0:
            raise KeyError("broken")
        time.sleep(0.002)

    with pytest.raises(KeyError, match="broken"):
        run_blocks(work, 500, 1)
    assert len(started) < 500


def test_an_empty_block_is_an_error():
    with pytest.raises(ParameterError, match="block must be at least 1"):
        run_blocks(lambda start, stop: None, 3, 0)


# ---- parallel tasks


@pytest.mark.parametrize("threads", ["1", "2", "5"])
@pytest.mark.parametrize("n", [0, 1, 3, 7])
def test_tasks_return_their_results_in_order(monkeypatch, threads, n):
    monkeypatch.setenv("LABELSPACE_THREADS", threads)

    def task(i, tick):
        time.sleep(0.002 * (n - i))  # the last is done first
        return i * i

    assert run_parallel(task, n) == [i * i for i in range(n)]


def test_tasks_run_at_the_same_time_each_on_one_thread(monkeypatch):
    monkeypatch.setenv("LABELSPACE_THREADS", "2")
    barrier = threading.Barrier(2, timeout=5)

    def task(i, tick):
        barrier.wait()
        threads_used = set()
        run_blocks(lambda start, stop: threads_used.add(threading.current_thread()), 20, 1)
        return n_threads(), threads_used == {threading.current_thread()}

    assert run_parallel(task, 2) == [(1, True)] * 2
    assert n_threads() == 2, "only the tasks have one"


def test_no_more_tasks_run_than_there_are_threads(monkeypatch):
    monkeypatch.setenv("LABELSPACE_THREADS", "2")
    running, concurrency, lock = 0, [], threading.Lock()

    def task(i, tick):
        nonlocal running
        with lock:
            running += 1
            concurrency.append(running)
        time.sleep(0.01)
        with lock:
            running -= 1

    run_parallel(task, 6)
    assert max(concurrency) == 2


def test_one_task_has_all_threads_and_is_the_callers(monkeypatch):
    monkeypatch.setenv("LABELSPACE_THREADS", "3")
    results = run_parallel(lambda i, tick: (n_threads(), threading.current_thread()), 1)
    assert results == [(3, threading.current_thread())]


@pytest.fixture
def reported():
    """Progress as it is told, all of it in the thread of the test."""
    steps, caller = [], threading.current_thread()

    def report(done):
        assert threading.current_thread() is caller
        steps.append(done)

    return steps, report


def test_one_thread_reports_every_step_of_all_tasks(monkeypatch, reported):
    monkeypatch.setenv("LABELSPACE_THREADS", "1")
    steps, report = reported
    run_parallel(lambda i, tick: [tick(2) for _ in range(10)], 3, report)
    assert steps == list(range(2, 61, 2))


@pytest.mark.parametrize("threads", ["2", "3"])
def test_several_threads_report_the_sum_of_all_tasks_at_every_poll(monkeypatch, reported, threads):
    monkeypatch.setenv("LABELSPACE_THREADS", threads)
    steps, report = reported
    allowed, ticked = threading.Semaphore(0), threading.Semaphore(0)

    def task(i, tick):
        for _ in range(10):
            allowed.acquire()
            tick(2)
            ticked.release()

    def poll(futures, seconds, return_when):
        """Let ten steps be done in place of the time between two reports."""
        assert seconds == kernel_threads.POLL_SECONDS
        allowed.release(10)
        for _ in range(10):
            ticked.acquire()
        return wait(futures, None if len(steps) == 2 else 0, return_when)

    monkeypatch.setattr(kernel_threads, "wait", poll)
    run_parallel(task, 3, report)
    assert steps == [20, 40, 60]


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_failing_task_cancels_the_others_at_their_next_tick(monkeypatch, threads):
    monkeypatch.setenv("LABELSPACE_THREADS", threads)
    ticks = [0] * 5

    def task(i, tick):
        if i == 0:
            time.sleep(0.02)
            raise KeyError("broken")
        for _ in range(5000):
            time.sleep(0.001)
            tick(1)
            ticks[i] += 1

    with pytest.raises(KeyError, match="broken"):
        run_parallel(task, 5)
    assert sum(ticks) < 4000
    after = list(ticks)
    time.sleep(0.01)
    assert ticks == after, "no task keeps running"


@pytest.mark.parametrize("threads", ["1", "2"])
def test_an_interrupt_in_progress_cancels_all_tasks(monkeypatch, threads):
    monkeypatch.setenv("LABELSPACE_THREADS", threads)
    monkeypatch.setattr(kernel_threads, "POLL_SECONDS", 0.005)
    ticks = [0] * 3

    def task(i, tick):
        for _ in range(5000):
            time.sleep(0.001)
            tick(1)
            ticks[i] += 1

    def progress(done):
        if done > 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_parallel(task, 3, progress)
    assert sum(ticks) < 8000
    assert run_parallel(lambda i, tick: n_threads(), 3) == [1] * 3, "new ones can start"


def test_a_thread_has_its_own_buffer_which_grows():
    small = thread_zeros("a test", 4, np.int32)
    large = thread_zeros("a test", 9, np.int32)
    assert len(large) >= 9
    assert thread_zeros("a test", 4, np.int32) is large
    assert not small.any()
    others = []
    thread = threading.Thread(target=lambda: others.append(thread_zeros("a test", 4, np.int32)))
    thread.start()
    thread.join()
    assert others[0] is not large


def test_very_large_buffers_are_not_kept():
    n = kernel_threads.MAX_KEPT_BYTES // 4 + 1
    assert thread_zeros("a large test", n, np.int32) is not thread_zeros("a large test", n, np.int32)
