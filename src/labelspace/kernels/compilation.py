"""Who wants to know when kernels are compiled; does not import numba."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Watcher = Callable[[str, bool], None]
"""Called with the name of a kernel and True when its compilation starts, and with False when it ends."""

_watchers: list[Watcher] = []


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Tell ``watcher`` of each kernel that is compiled, also within others, but not of those in the cache."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def tell(name: str, starts: bool) -> None:
    """Tell all watchers; numba compiles one kernel at a time, on any thread."""
    for watcher in tuple(_watchers):
        watcher(name, starts)
