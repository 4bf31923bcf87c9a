"""Work in blocks on several threads, for kernels that release the GIL; blocks never depend on the number of threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed

from labelspace.errors import ParameterError

VARIABLE = "LABELSPACE_THREADS"


def n_threads() -> int:
    """Threads to use: the environment variable LABELSPACE_THREADS, else the CPUs this process may run on."""
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
