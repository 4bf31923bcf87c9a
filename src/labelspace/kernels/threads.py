"""Work in blocks on several threads, for kernels that release the GIL; blocks never depend on the number of threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, as_completed, wait
from typing import TypeVar

from labelspace.errors import ParameterError

VARIABLE = "LABELSPACE_THREADS"
LOOK = 0.1  # seconds between two looks at how far tasks are
T = TypeVar("T")
_here = threading.local()


def n_threads() -> int:
    """Threads to use: the environment variable LABELSPACE_THREADS, else the CPUs this process may run on.

    1 within a task of ``side_by_side``, whose threads are all there are.
    """
    if getattr(_here, "alone", False):
        return 1
    given = os.environ.get(VARIABLE, "").strip()
    if given:
        if not given.isdecimal() or int(given) < 1:
            raise ParameterError(
                f"{VARIABLE} must be a whole number of at least 1, but is {given!r}; set it so, or unset it"
            )
        return int(given)
    if hasattr(os, "sched_getaffinity"):  # Linux; elsewhere a process may run on every CPU
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_blocks(
    work: Callable[[int, int], None], n: int, block: int, progress: Callable[[int, int], None] | None = None
) -> None:
    """Call ``work(start, stop)`` for each block of 0..n; ``progress(done, n)`` is called from the caller's thread.

    The first exception of ``work`` is raised here, and blocks not yet begun are dropped.

    >>> out = [0] * 5
    >>> run_blocks(lambda start, stop: out.__setitem__(slice(start, stop), range(start, stop)), n=5, block=2)
    >>> out
    [0, 1, 2, 3, 4]
    """
    if block < 1:
        raise ParameterError(f"block must be at least 1, but is {block}; give a larger one")
    spans = [(start, min(start + block, n)) for start in range(0, n, block)]
    threads = min(n_threads(), len(spans)) if len(spans) > 1 else 1
    done = 0
    if threads <= 1:
        for start, stop in spans:
            work(start, stop)
            done += stop - start
            if progress is not None:
                progress(done, n)
        return
    with ThreadPoolExecutor(threads) as pool:
        sizes = {pool.submit(work, start, stop): stop - start for start, stop in spans}
        try:
            for future in as_completed(sizes):
                future.result()
                done += sizes[future]
                if progress is not None:
                    progress(done, n)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def side_by_side(
    task: Callable[[int, Callable[[int], None]], T], n: int, progress: Callable[[int], None] | None = None
) -> list[T]:
    """``[task(0, tick), ..., task(n - 1, tick)]``, as many at once as there are threads, each on one thread.

    A task calls ``tick(steps)`` as it gets on; ``progress(steps of all)`` is called from the caller's thread. The first
    exception is raised here, and the other tasks end at their next tick. One task alone has all threads to itself.

    >>> side_by_side(lambda i, tick: i * i, n=3)
    [0, 1, 4]
    """
    threads = min(n_threads(), n)
    done, ended = [0] * n, threading.Event()

    def tell() -> None:
        if progress is not None:
            progress(sum(done))

    def run(i: int) -> T:
        def tick(steps: int) -> None:
            done[i] += steps
            if ended.is_set():
                raise EndedError
            if threads == 1:
                tell()

        return task(i, tick)

    def run_alone(i: int) -> T:
        _here.alone = True
        return run(i)

    if threads <= 1:
        return [run(i) for i in range(n)]
    with ThreadPoolExecutor(threads) as pool:
        futures: list[Future[T]] = [pool.submit(run_alone, i) for i in range(n)]
        try:
            waiting = set(futures)
            while waiting:
                _, waiting = wait(futures, LOOK, FIRST_EXCEPTION)
                tell()
                for future in set(futures) - waiting:
                    future.result()
            return [future.result() for future in futures]
        except BaseException:
            ended.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


class EndedError(Exception):
    """Raised within a task that is to end because another one failed."""
