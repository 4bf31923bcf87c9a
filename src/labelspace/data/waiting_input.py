"""Input that comes piece by piece, such as a pipe: what has come can be answered before more is waited for."""

import io
import os
import select
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

_act: ContextVar[Callable[[], None] | None] = ContextVar("what is done before input is waited for", default=None)


@contextmanager
def before_waiting(act: Callable[[], None]) -> Iterator[None]:
    """Call ``act()`` within whenever the standard input, or a pipe that is read, has nothing to read yet."""
    token = _act.set(act)
    try:
        yield
    finally:
        _act.reset(token)


class _WaitingFile(io.FileIO):
    """A pipe or a terminal that calls a function before it waits."""

    def __init__(self, file: str | Path | int, act: Callable[[], None]) -> None:
        super().__init__(file, closefd=not isinstance(file, int))
        self._before_waiting = act

    def readinto(self, buffer: Any, /) -> int | None:  # noqa: ANN401 - any writable buffer
        if not select.select([self], [], [], 0)[0]:
            self._before_waiting()
        return super().readinto(buffer)


def waiting_file(path: str | Path) -> io.FileIO | None:
    """Open the standard input (``-``), or a pipe, if something is to be done before it is waited for; else None."""
    act = _act.get()
    if act is None or os.name != "posix":  # elsewhere, select is for sockets only
        return None
    try:
        if str(path) == "-":
            return _WaitingFile(sys.stdin.fileno(), act)
        return _WaitingFile(path, act) if stat.S_ISFIFO(os.stat(path).st_mode) else None
    except (OSError, ValueError):  # no file, or a standard input that is none
        return None
