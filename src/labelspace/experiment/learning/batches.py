"""Batches of what comes from a stream: full ones, or what came within some seconds."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")
PATIENCE = 0.2  # seconds after which a reader or a batch looks whether it is to stop


class _Failed(NamedTuple):
    """The error that ended the items; items may be errors themselves."""

    error: BaseException


class Batches(Generic[T]):
    """Batches of items, which another thread reads as they come.

    After ``stop``, what was read so far is the last batch. An error of the items is raised after the batch before it.

    >>> batches = Batches(iter("abcde"), size=2, seconds=60)
    >>> list(batches)
    [['a', 'b'], ['c', 'd'], ['e']]
    """

    def __init__(self, items: Iterable[T], size: int, seconds: float) -> None:
        self._items, self._size, self._seconds = items, size, seconds
        self._queue: Queue[list[T] | _Failed] = Queue(2 * size)  # an item each; an empty list ends them
        self._stopped = Event()

    def stop(self) -> None:
        """End after what was read so far; may be called by a signal handler."""
        self._stopped.set()

    def __iter__(self) -> Iterator[list[T]]:
        Thread(target=self._read, daemon=True).start()
        try:
            yield from self._batches()
        finally:
            self._stopped.set()  # the thread ends

    def _read(self) -> None:
        try:
            for item in self._items:
                if not self._put([item]):
                    return
        except BaseException as error:  # raised where the batches are read
            self._put(_Failed(error))
        self._put([])

    def _put(self, entry: list[T] | _Failed) -> bool:
        """Put an entry into the queue once it has room; return False if no more are wanted."""
        while True:
            try:
                self._queue.put(entry, timeout=PATIENCE)
            except Full:
                if self._stopped.is_set():
                    return False
            else:
                return not self._stopped.is_set()

    def _batches(self) -> Iterator[list[T]]:
        batch: list[T] = []
        due = 0.0
        while True:
            entry = self._next()
            if isinstance(entry, list) and entry:
                due = due if batch else time.monotonic() + self._seconds
                batch += entry
            is_ended = isinstance(entry, _Failed) or entry == [] or (entry is None and self._stopped.is_set())
            if batch and (is_ended or len(batch) >= self._size or time.monotonic() >= due):
                yield batch
                batch = []
            if isinstance(entry, _Failed):
                raise entry.error
            if is_ended:
                return

    def _next(self) -> list[T] | _Failed | None:
        """Return the next entry; None if none came in a while."""
        try:
            return self._queue.get(timeout=PATIENCE)
        except Empty:
            return None
