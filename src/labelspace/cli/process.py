"""The process: its streams, and limits of memory and threads under which numerical libraries abort or hang."""

import io
import os
import signal
import sys
import threading
import warnings

from labelspace.cli.exit_codes import fail, is_debugging, print_error

MIN_MEMORY = 10**9  # bytes of address space; the default method trains in as much, while LLVM aborts with 0.7 GB
MAX_BLAS_THREADS = 64


def prepare_streams() -> None:
    """Make streams Unicode whatever the locale, replace closed ones, and print a warning on one line."""
    if sys.stdin is None:  # this cannot be read, which is an error once it is needed
        sys.stdin = open(os.devnull, "w")
    is_closed = sys.stdout is None
    if is_closed:
        sys.stdout = open(os.devnull, "w")
    if sys.stderr is None:  # print would write to stdout instead
        sys.stderr = open(os.devnull, "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="backslashreplace")
    if is_closed:
        fail("stdout must be open, but is closed; write it to a file, or to /dev/null", 1)
    if hasattr(signal, "SIGPIPE"):  # end quietly where the output pipe is closed, as with `| head`
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if not is_debugging():
        warnings.showwarning = lambda message, *where, **options: print_error(f"warning: {message}")


def discard_unwritable() -> None:
    """Give up on output that cannot be written, else Python would complain about it at exit."""
    for name in ("stdout", "stderr"):
        try:
            getattr(sys, name).flush()
        except (OSError, ValueError):
            setattr(sys, name, open(os.devnull, "w"))


def check_limits() -> None:
    """Exit with one line where memory or threads are limited too much to load the libraries and compile kernels."""
    memory = memory_limit()
    if memory is not None and memory < MIN_MEMORY:
        rule = f"a process must be allowed at least {MIN_MEMORY // 10**6:,} MB of memory"
        fail(f"{rule}, but the limit is {memory // 10**6:,} MB; raise it: ulimit -v unlimited", 1)
    n_threads = extra_threads()
    if not can_start_threads(n_threads):
        fail(
            f"a process must be able to start {n_threads:,} threads, but is not; raise the limit (ulimit -u), "
            "or set OPENBLAS_NUM_THREADS=1 and LABELSPACE_THREADS=1",
            1,
        )


def memory_limit() -> int | None:
    """Return the limit of the address space in bytes, or None."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def extra_threads() -> int:
    """Count threads next to the main one: of the BLAS of NumPy, of the BLAS of SciPy, and of kernels."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    blas = _setting("OPENBLAS_NUM_THREADS") or _setting("OMP_NUM_THREADS") or cpus
    kernels = min(_setting("LABELSPACE_THREADS") or cpus, cpus)
    return 2 * (min(blas, MAX_BLAS_THREADS) - 1) + (kernels if kernels > 1 else 0)


def can_start_threads(n: int) -> bool:
    """Return whether n threads can run at the same time.

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
