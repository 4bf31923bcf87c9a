"""``n_jobs``: the threads of a training or a prediction."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from joblib import effective_n_jobs  # type: ignore[import-untyped]

from labelspace.kernels.threads import THREADS_VARIABLE


class _ThreadLimit:
    """Sets LABELSPACE_THREADS while somebody needs it.

    The variable is that of the whole process: where two threads set it at the same time, the last one holds, and what
    was there before is back once both are done.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before: str | None = None

    @contextmanager
    def threads(self, n: int) -> Iterator[None]:
        """Use n threads here."""
        with self._lock:
            if self._users == 0:
                self._before = os.environ.get(THREADS_VARIABLE)
            self._users += 1
            os.environ[THREADS_VARIABLE] = str(n)
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._restore()

    def _restore(self) -> None:
        if self._before is None:
            os.environ.pop(THREADS_VARIABLE, None)
        else:
            os.environ[THREADS_VARIABLE] = self._before


_LIMIT = _ThreadLimit()


@contextmanager
def limited_threads(n_jobs: int | None) -> Iterator[None]:
    """Use ``n_jobs`` threads here, as joblib counts them: -1 for all CPUs; None changes nothing.

    >>> from labelspace.kernels.threads import n_threads
    >>> with limited_threads(3):
    ...     print(n_threads())
    3
    """
    if n_jobs is None:
        yield
        return
    with _LIMIT.threads(effective_n_jobs(n_jobs)):
        yield
