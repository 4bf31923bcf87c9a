"""Limits of the process that numerical libraries do not survive: they abort, hang or interrupt instead of raising."""

import os
import threading

from labelspace.cli.exit_codes import fail

MIN_MEMORY = 10**9  # bytes of address space; the default method trains in as much, while LLVM aborts with 0.7 GB
MAX_BLAS_THREADS = 64


def check_limits() -> None:
    """Exit with one line where memory or threads are limited too much to load the libraries and compile kernels."""
    memory = memory_limit()
    if memory is not None and memory < MIN_MEMORY:
        fail(
            f"a process must be allowed at least {MIN_MEMORY // 10**6:,} MB of memory, but the limit is "
            f"{memory // 10**6:,} MB; raise it: ulimit -v unlimited",
            1,
        )
    n_threads = extra_threads()
    if not can_start_threads(n_threads):
        fail(
            f"a process must be able to start {n_threads:,} threads, but is not; raise the limit (ulimit -u), "
            "or set OPENBLAS_NUM_THREADS=1 and LABELSPACE_THREADS=1",
            1,
        )


def memory_limit() -> int | None:
    """The limit of the address space in bytes; None where there is none."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def extra_threads() -> int:
    """Threads started beside the main one: by the BLAS of NumPy, by that of SciPy, and by kernels."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    blas = _setting("OPENBLAS_NUM_THREADS") or _setting("OMP_NUM_THREADS") or cpus
    kernels = min(_setting("LABELSPACE_THREADS") or cpus, cpus)
    return 2 * (min(blas, MAX_BLAS_THREADS) - 1) + (kernels if kernels > 1 else 0)


def can_start_threads(n: int) -> bool:
    """Whether as many threads can run at the same time.

    >>> can_start_threads(2)
    True
    """
    end = threading.Event()
    started: list[threading.Thread] = []
    try:
        for _ in range(n):
            thread = threading.Thread(target=end.wait, daemon=True)
            thread.start()
            started.append(thread)
    except RuntimeError:
        return False
    finally:
        end.set()
        for thread in started:
            thread.join()
    return True


def _setting(name: str) -> int:
    value = os.environ.get(name, "")
    return int(value) if value.isascii() and value.isdigit() else 0
