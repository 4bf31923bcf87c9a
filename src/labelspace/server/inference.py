"""One thread per worker that asks the models, which answer one caller at a time.

Documents that wait are tagged as one batch, which costs a third to two thirds of what they cost one by one.
"""

import asyncio
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
MAX_BATCH = 32  # documents of several requests that are tagged together


@dataclass
class _Task:
    """Work of one request; that of equal ``group`` is done together, by a function of all its items."""

    function: Callable[[list[Any]], list[Any]]
    items: list[Any]
    group: Hashable
    future: asyncio.Future[list[Any]]
    loop: asyncio.AbstractEventLoop


class Inference:
    """Runs work on its thread, in the order in which it comes."""

    def __init__(self, on_batch: Callable[[int], None] = lambda n: None) -> None:
        self._waiting: SimpleQueue[_Task | None] = SimpleQueue()
        self._on_batch = on_batch
        self._thread = threading.Thread(target=self._work, name="inference", daemon=True)
        self._thread.start()

    async def map(self, function: Callable[[list[Any]], list[Any]], items: list[Any], group: Hashable) -> list[Any]:
        """``function(items)``, perhaps called once with the items of several requests of the same group."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Any]] = loop.create_future()
        self._waiting.put(_Task(function, items, group, future, loop))
        return await future

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:  # noqa: ANN401 - of any function
        """``function(*arguments)``."""
        found = await self.map(lambda _: [function(*arguments)], [None], object())
        return found[0]  # type: ignore[no-any-return]

    def close(self) -> None:
        """End the thread once it has done what waits."""
        self._waiting.put(None)
        self._thread.join()

    def _work(self) -> None:
        while True:
            taken = self._take()
            groups: dict[Hashable, list[_Task]] = {}
            for task in taken:
                if task is not None and not task.future.cancelled():  # else nobody waits for it any more
                    groups.setdefault(task.group, []).append(task)
            for tasks in groups.values():
                _run(tasks)
                self._on_batch(sum(len(task.items) for task in tasks))
            if None in taken:
                return

    def _take(self) -> list[_Task | None]:
        """Wait for a task, and take those that wait too, up to a full batch."""
        taken = [self._waiting.get()]
        n = len(taken[0].items) if taken[0] is not None else MAX_BATCH
        while n < MAX_BATCH:
            try:
                taken.append(self._waiting.get_nowait())
            except Empty:
                break
            n += len(taken[-1].items) if taken[-1] is not None else MAX_BATCH
        return taken


def _run(tasks: list[_Task]) -> None:
    """Do the work of a group together; where that fails, one by one: a bad request must not fail others."""
    done: list[tuple[_Task, list[Any] | BaseException]] = []
    try:
        found = tasks[0].function([item for task in tasks for item in task.items])
        ends = [0]
        for task in tasks:
            ends.append(ends[-1] + len(task.items))
            done.append((task, found[ends[-2] : ends[-1]]))
    except Exception as error:
        if len(tasks) > 1:
            for task in tasks:
                _run([task])
            return
        done = [(tasks[0], error)]
    try:
        done[0][0].loop.call_soon_threadsafe(_finish, done)
    except RuntimeError:  # the loop is closed: the server ends
        return


def _finish(done: list[tuple[_Task, list[Any] | BaseException]]) -> None:
    for task, result in done:
        if task.future.cancelled():
            continue
        if isinstance(result, BaseException):
            task.future.set_exception(result)
        else:
            task.future.set_result(result)
