"""Asks the models, which answer one caller at a time: documents that wait are tagged as one batch.

A batch costs a third to two thirds of what its documents cost one by one. The work is done by the thread of the event
loop, between its rounds. On a thread of its own it would have to wait for Python's lock (GIL) behind the loop after
each kernel, for up to 5 ms when requests are many; and a worker is a process for one core.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")
MAX_BATCH = 32  # documents of several requests that are tagged together
MAX_WAIT = 0.001  # seconds that a request waits for others
QUIET_ROUNDS = 3  # of the event loop without a further request, after which a batch is tagged


@dataclass
class Task:
    """Work of one request; that of equal ``group`` is done together, by a function of all its items."""

    function: Callable[[list[Any]], list[Any]]
    items: list[Any]
    group: Hashable
    future: asyncio.Future[list[Any]]


class Inference:
    """Does work in the order in which it comes, a batch in each round of the event loop."""

    def __init__(self, on_batch: Callable[[int], None] = lambda n: None) -> None:
        self._waiting: deque[Task] = deque()
        self._on_batch = on_batch

    async def map(self, function: Callable[[list[Any]], list[Any]], items: list[Any], group: Hashable) -> list[Any]:
        """``function(items)``, perhaps called once with the items of several requests of the same group."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Any]] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._work, loop, loop.time() + MAX_WAIT, 0, 0)
        self._waiting.append(Task(function, items, group, future))
        return await future

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:  # noqa: ANN401 - of any function
        """``function(*arguments)``."""
        found = await self.map(lambda _: [function(*arguments)], [None], object())
        return found[0]  # type: ignore[no-any-return]

    def close(self) -> None:
        """Nothing is held."""

    def _work(self, loop: asyncio.AbstractEventLoop, deadline: float, seen: int, quiet: int) -> None:
        """Do what waits, up to a full batch; the rest after the next round, which answers and reads requests.

        Clients that were answered together ask again one after the other: as long as rounds, of microseconds, bring
        further requests, these are waited for, up to the deadline.
        """
        waiting = self._n_waiting()
        quiet = 0 if waiting > seen else quiet + 1
        if quiet < QUIET_ROUNDS and waiting < MAX_BATCH and loop.time() < deadline:
            loop.call_soon(self._work, loop, deadline, waiting, quiet)
            return
        groups: dict[Hashable, list[Task]] = {}
        n = 0
        while self._waiting and n < MAX_BATCH:
            task = self._waiting.popleft()
            if not task.future.cancelled():  # else nobody waits for it any more
                groups.setdefault(task.group, []).append(task)
                n += len(task.items)
        if self._waiting:
            loop.call_soon(self._work, loop, loop.time(), 0, 0)  # they have waited already
        for tasks in groups.values():
            _run(tasks)
            self._on_batch(sum(len(task.items) for task in tasks))

    def _n_waiting(self) -> int:
        """The documents that wait."""
        return sum(len(task.items) for task in self._waiting)


def _run(tasks: list[Task]) -> None:
    """Do the work of a group together; where that fails, one by one: a bad request must not fail others."""
    try:
        found = tasks[0].function([item for task in tasks for item in task.items])
    except Exception as error:
        if len(tasks) == 1:
            tasks[0].future.set_exception(error)
            return
        for task in tasks:
            _run([task])
        return
    end = 0
    for task in tasks:
        start, end = end, end + len(task.items)
        task.future.set_result(found[start:end])
