"""Asks models that are on other machines: several batches are under way, each on a thread that waits for its answer.

Documents that wait while all threads do are tagged as one batch.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from labelspace.errors import ClusterError
from labelspace.server.inference import MAX_BATCH, Inference, Task

Outcome = list[Any] | Exception
"""The answers of a request, or why there are none."""


class RemoteInference(Inference):
    """Does work in the order in which it comes, up to ``n_threads`` batches at a time."""

    def __init__(self, n_threads: int, on_batch: Callable[[int], None] = lambda n: None) -> None:
        super().__init__(on_batch)
        self._free = n_threads
        self._threads = ThreadPoolExecutor(n_threads, thread_name_prefix="remote")

    async def map(self, function: Callable[[list[Any]], list[Any]], items: list[Any], group: Hashable) -> list[Any]:
        """``function(items)``, perhaps called once with the items of several requests of the same group."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Any]] = loop.create_future()
        self._waiting.append(Task(function, items, group, future))
        self._start(loop)
        return await future

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Hand batches to threads that are free."""
        while self._free and (tasks := self._next_batch()):
            self._free -= 1
            done = loop.run_in_executor(self._threads, outcomes, tasks)
            done.add_done_callback(lambda done, tasks=tasks: self._finish(loop, tasks, done))  # type: ignore[misc]

    def _next_batch(self) -> list[Task]:
        """The requests that have waited longest, of one group, up to a full batch; others keep their order."""
        tasks, rest, n = list[Task](), deque[Task](), 0
        while self._waiting:
            task = self._waiting.popleft()
            if task.future.cancelled():  # nobody waits for it any more
                continue
            if (tasks and task.group != tasks[0].group) or n >= MAX_BATCH:
                rest.append(task)
                continue
            tasks.append(task)
            n += len(task.items)
        self._waiting = rest
        return tasks

    def _finish(self, loop: asyncio.AbstractEventLoop, tasks: list[Task], done: asyncio.Future[list[Outcome]]) -> None:
        self._free += 1
        if not done.cancelled():
            self._on_batch(sum(len(task.items) for task in tasks))
            for task, outcome in zip(tasks, done.result(), strict=True):
                if task.future.cancelled():
                    continue
                if isinstance(outcome, Exception):
                    task.future.set_exception(outcome)
                else:
                    task.future.set_result(outcome)
        self._start(loop)


def outcomes(tasks: list[Task]) -> list[Outcome]:
    """The work of a group, done together; where that fails, one by one: a bad request must not fail others."""
    try:
        found = tasks[0].function([item for task in tasks for item in task.items])
    except Exception as error:
        if len(tasks) == 1 or isinstance(error, ClusterError):  # each would wait as long again for what was lost
            return [error] * len(tasks)
        return [outcome for task in tasks for outcome in outcomes([task])]
    ends = [0]
    for task in tasks:
        ends.append(ends[-1] + len(task.items))
    return [found[start:stop] for start, stop in zip(ends, ends[1:], strict=False)]
