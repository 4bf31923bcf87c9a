"""Run kernels that release the GIL on several threads, with buffers that a thread uses again.

Blocks never depend on the number of threads.
"""

import os
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, as_completed, wait
from contextvars import copy_context
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from labelspace.errors import ParameterError
from labelspace.types import Floats, Ints, TopK

THREADS_VARIABLE = "LABELSPACE_THREADS"
BLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")  # of NumPy's and SciPy's matrix products
POLL_SECONDS = 0.1  # seconds between two progress reports
MAX_KEPT_BYTES = 2**24  # larger buffers are made anew: each thread would keep one
T = TypeVar("T")
Values = TypeVar("Values", bound=npt.NDArray[Any])
_thread_state = threading.local()


def n_threads() -> int:
    """Threads to use: the environment variable LABELSPACE_THREADS, else the CPUs this process may run on.

    1 within a task of ``run_parallel``, which uses all threads already.
    """
    if getattr(_thread_state, "inside_task", False):
        return 1
    value = os.environ.get(THREADS_VARIABLE, "").strip()
    if value:
        if not value.isdecimal() or int(value) < 1:
            rule = f"{THREADS_VARIABLE} must be an integer of at least 1"
            raise ParameterError(f"{rule}, but is {value!r}; set it to 1, or unset it")
        return int(value)
    if hasattr(os, "sched_getaffinity"):  # Linux; elsewhere a process may run on every CPU
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_blocks(
    work: Callable[[int, int], None], n: int, block: int, progress: Callable[[int, int], None] | None = None
) -> None:
    """Call ``work(start, stop)`` for each block of 0..n; ``progress(done, n)`` is called from the caller's thread.

    The first exception of ``work`` is raised here, and blocks that have not started are dropped. Context variables have
    the values of the caller.

    >>> out = [0] * 5
    >>> run_blocks(lambda start, stop: out.__setitem__(slice(start, stop), range(start, stop)), n=5, block=2)
    >>> out
    [0, 1, 2, 3, 4]
    """
    if block < 1:
        raise ParameterError(f"block must be at least 1, but is {block}; give a larger one")
    starts, done = range(0, n, block), 0
    if n <= block or n_threads() == 1:  # first, as of one document every microsecond counts
        for start in starts:
            work(start, min(start + block, n))
            if progress is not None:
                progress(min(start + block, n), n)
        return
    with ThreadPoolExecutor(min(n_threads(), len(starts))) as pool:
        spans = [(start, min(start + block, n)) for start in starts]
        sizes = {pool.submit(copy_context().run, work, start, stop): stop - start for start, stop in spans}
        try:
            for future in as_completed(sizes):
                future.result()
                done += sizes[future]
                if progress is not None:
                    progress(done, n)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def topk_in_blocks(kernel: Callable[..., None], documents: object, *parts: object, n: int, k: int, block: int) -> TopK:
    """Return the k best labels of n documents by ``kernel(documents, start, stop, *parts, labels, scores)``."""
    out = TopK.empty(n, k)
    run_blocks(lambda start, stop: kernel(documents, start, stop, *parts, out.labels, out.scores), n, block)
    return out


def search_in_blocks(search: Callable[[slice, Ints, Floats], None], n: int, k: int, block: int) -> TopK:
    """Return the k best labels of n rows: ``search(rows, labels, scores)`` writes those of a slice of the rows."""
    out = TopK.empty(n, k)

    def search_block(start: int, stop: int) -> None:
        rows = slice(start, stop)
        search(rows, out.labels[rows], out.scores[rows])

    run_blocks(search_block, n, block)
    return out


def fill_in_blocks(out: Values, make: Callable[[slice], npt.NDArray[Any]], block: int) -> Values:
    """Set ``out[rows] = make(rows)`` for each slice of the rows, and return ``out``.

    >>> fill_in_blocks(np.zeros(3), lambda rows: np.arange(3)[rows] ** 2, block=2).tolist()
    [0.0, 1.0, 4.0]
    """

    def fill(start: int, stop: int) -> None:
        out[start:stop] = make(slice(start, stop))

    run_blocks(fill, len(out), block)
    return out


def run_parallel(
    task: Callable[[int, Callable[[int], None]], T], n: int, progress: Callable[[int], None] | None = None
) -> list[T]:
    """Return ``[task(0, tick), ..., task(n - 1, tick)]``; each task runs on one thread, up to ``n_threads()`` at once.

    A task calls ``tick(steps)`` as it advances; ``progress(steps of all tasks)`` is called from the caller's thread.
    The first exception is raised here, and the other tasks stop at their next tick. A single task has all threads.

    >>> run_parallel(lambda i, tick: i * i, n=3)
    [0, 1, 4]
    """
    threads = min(n_threads(), n)
    done, cancelled = [0] * n, threading.Event()

    def report() -> None:
        if progress is not None:
            progress(sum(done))

    def run(i: int) -> T:
        def tick(steps: int) -> None:
            done[i] += steps
            if cancelled.is_set():
                raise TaskCancelledError
            if threads == 1:
                report()

        return task(i, tick)

    def run_in_pool(i: int) -> T:
        _thread_state.inside_task = True
        return run(i)

    if threads <= 1:
        return [run(i) for i in range(n)]
    with ThreadPoolExecutor(threads) as pool:
        futures: list[Future[T]] = [pool.submit(copy_context().run, run_in_pool, i) for i in range(n)]
        try:
            pending = set(futures)
            while pending:
                _, pending = wait(futures, POLL_SECONDS, FIRST_EXCEPTION)
                report()
                for future in set(futures) - pending:
                    future.result()
            return [future.result() for future in futures]
        except BaseException:
            cancelled.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


class TaskCancelledError(Exception):
    """Raised within a task that must stop because another one failed."""


def thread_zeros(name: str, n: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return the thread's buffer of this name: at least n zeros, which the caller must turn to zeros again.

    A new buffer for every document would take longer than the work on it.

    >>> buffer = thread_zeros("an example", 3, np.int32)
    >>> buffer is thread_zeros("an example", 2, np.int32)
    True
    """
    kept: npt.NDArray[Any] | None = getattr(_thread_state, name, None)
    if kept is not None and len(kept) >= n:
        return kept
    made: npt.NDArray[Any] = np.zeros(n, dtype)
    if made.nbytes <= MAX_KEPT_BYTES:
        setattr(_thread_state, name, made)
    return made
