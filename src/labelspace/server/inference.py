"""Call the models for requests: documents that wait are tagged as one batch.

A batch costs a third to two thirds of what its documents cost one by one. A model in this process is called by the
thread of the event loop, between its rounds. On a thread of its own it would have to wait for Python's lock (GIL)
behind the loop after each kernel, for up to 5 ms when requests are many; and a worker is a process for one core.
Models on other machines are called on threads that wait for their answers, several batches at a time.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from labelspace.errors import ClusterError

T = TypeVar("T")
Outcome = list[Any] | Exception
"""The answers to a request, or the error that it gets."""
MAX_BATCH = 32  # documents of several requests that are tagged together
MAX_WAIT = 0.001  # seconds that a request waits for others
# Rounds of the event loop without a further request, after which a batch is tagged. More rounds find more requests
# that come together, but delay a request that comes alone.
QUIET_ROUNDS = 3


@dataclass
class Task:
    """Work of one request; tasks of equal ``group`` are done together, by one call with all their items."""

    function: Callable[[list[Any]], list[Any]]
    items: list[Any]
    group: Hashable
    future: asyncio.Future[list[Any]]


class Inference:
    """Call models in this process, in the order of the requests, up to a full batch in each round of the event loop."""

    def __init__(self, on_batch: Callable[[int], None] = lambda n: None) -> None:
        self._waiting: deque[Task] = deque()
        self._on_batch = on_batch

    async def map(self, function: Callable[[list[Any]], list[Any]], items: list[Any], group: Hashable) -> list[Any]:
        """Return ``function(items)``, perhaps called once with the items of several requests of the same group."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Any]] = loop.create_future()
        self._waiting.append(Task(function, items, group, future))
        self._start(loop)
        return await future

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:  # noqa: ANN401 - of any function
        """Return ``function(*arguments)``, called on its own."""
        found = await self.map(lambda _: [function(*arguments)], [None], object())
        return found[0]  # type: ignore[no-any-return]

    def close(self) -> None:
        """Release what is held: nothing."""

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have the queue worked on; called after each request that was added."""
        if len(self._waiting) == 1:
            loop.call_soon(self._work, loop, loop.time() + MAX_WAIT, 0, 0)

    def _work(self, loop: asyncio.AbstractEventLoop, deadline: float, seen: int, quiet: int) -> None:
        """Do the documents of a full batch, by group; the rest after the next round, which answers and reads requests.

        Clients that were answered together send their next requests one after the other: as long as rounds, of
        microseconds, bring further requests, these are waited for, up to the deadline.
        """
        waiting = sum(len(task.items) for task in self._waiting)
        quiet = 0 if waiting > seen else quiet + 1
        if quiet < QUIET_ROUNDS and waiting < MAX_BATCH and loop.time() < deadline:
            loop.call_soon(self._work, loop, deadline, waiting, quiet)
            return
        batches: list[list[Task]] = []
        n = 0
        while n < MAX_BATCH and (tasks := self._next_batch()):
            batches.append(tasks)
            n += sum(len(task.items) for task in tasks)
        if self._waiting:
            loop.call_soon(self._work, loop, loop.time(), 0, 0)  # without a wait: they have waited already
        for tasks in batches:
            self._answer(tasks, outcomes(tasks))

    def _next_batch(self) -> list[Task]:
        """Take the tasks that have waited longest, of one group, up to a full batch; others keep their order."""
        tasks = list[Task]()
        rest = deque[Task]()
        n = 0
        while self._waiting:
            task = self._waiting.popleft()
            if task.future.cancelled():  # its client is gone
                continue
            if n >= MAX_BATCH or (tasks and task.group != tasks[0].group):
                rest.append(task)
                continue
            tasks.append(task)
            n += len(task.items)
        self._waiting = rest
        return tasks

    def _answer(self, tasks: list[Task], found: list[Outcome]) -> None:
        self._on_batch(sum(len(task.items) for task in tasks))
        for task, outcome in zip(tasks, found, strict=True):
            if task.future.cancelled():
                continue
            if isinstance(outcome, Exception):
                task.future.set_exception(outcome)
            else:
                task.future.set_result(outcome)


class RemoteInference(Inference):
    """Call models on other machines, up to ``n_threads`` batches at a time."""

    def __init__(self, n_threads: int, on_batch: Callable[[int], None] = lambda n: None) -> None:
        super().__init__(on_batch)
        self._free = n_threads
        self._threads = ThreadPoolExecutor(n_threads, thread_name_prefix="remote")

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Give batches to the threads that are free."""
        while self._free and (tasks := self._next_batch()):
            self._free -= 1
            done = loop.run_in_executor(self._threads, outcomes, tasks)
            done.add_done_callback(lambda done, tasks=tasks: self._finish(loop, tasks, done))  # type: ignore[misc]

    def _finish(self, loop: asyncio.AbstractEventLoop, tasks: list[Task], done: asyncio.Future[list[Outcome]]) -> None:
        self._free += 1
        if not done.cancelled():
            self._answer(tasks, done.result())
        self._start(loop)


def outcomes(tasks: list[Task]) -> list[Outcome]:
    """Do the tasks of a group together; if that fails, one by one: a bad request must not fail others."""
    try:
        found = tasks[0].function([item for task in tasks for item in task.items])
    except Exception as error:
        if len(tasks) == 1 or isinstance(error, ClusterError):  # each would wait as long again for a lost machine
            return [error] * len(tasks)
        return [outcome for task in tasks for outcome in outcomes([task])]
    rest = iter(found)
    return [list(islice(rest, len(task.items))) for task in tasks]
