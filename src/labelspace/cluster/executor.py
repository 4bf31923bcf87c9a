"""Independent tasks on the machines of a cluster: as many at a time as there are CPUs, again where one was lost."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from labelspace.cluster.connection import Cluster
from labelspace.cluster.nodes import alive_nodes
from labelspace.cluster.shared_data import Packed, SharedValues, pack, unpack
from labelspace.errors import ClusterError
from labelspace.kernels.threads import THREADS_VARIABLE

Item = TypeVar("Item")
Result = TypeVar("Result")
MAX_RETRIES = 20  # of a task whose machine or process is lost
IN_FLIGHT = 2  # tasks per CPU that are handed out at a time: results wait in memory until they are taken
_shared = SharedValues()


class RayExecutor:
    """Runs tasks on a cluster; ``memory`` is what each needs, in bytes, where that is to limit how many run at once."""

    def __init__(self, cluster: Cluster, memory: float | None = None) -> None:
        self.cluster, self.memory, self.n_cpus = cluster, memory, cluster.n_cpus
        self.cpu_seconds = 0.0  # of the tasks that are done
        self._shared: tuple[Any, str, Any] | None = None  # the last value, its name and its reference

    def map_unordered(
        self,
        task: Callable[[Any, Item], Result],
        shared: Any,  # noqa: ANN401 - whatever the tasks need
        items: Sequence[Item],
        whole_node: bool = False,
    ) -> Iterator[tuple[int, Result]]:
        """``task(shared, item)`` of every item: its position and the result, as each gets done."""
        ray: Any = import_module("ray")
        threads = min(node.n_cpus for node in self.cluster.nodes) if whole_node else 1  # so that it can run on any
        with refusing_losses():
            self.check_room(threads)
            key, packed = self._put(shared)
        remote = ray.remote(run_task).options(
            num_cpus=threads, memory=self.memory, max_retries=MAX_RETRIES, scheduling_strategy="SPREAD"
        )
        left, running = list(enumerate(items))[::-1], dict[Any, int]()
        # Where one fails, those that run are not canceled: Ray 2.60 aborts this process if one ends at that moment (a
        # failed check in task_manager.cc). They end with the connection.
        while left or running:
            with refusing_losses():
                while left and len(running) < IN_FLIGHT * self.n_cpus:
                    position, item = left.pop()
                    running[remote.remote(task, key, packed, pack(item), threads)] = position
                ready = ray.wait(list(running))[0]
            for done in ready:
                with refusing_losses():
                    result, seconds = unpack(ray.get(done), copy=True)
                self.cpu_seconds += seconds
                yield running.pop(done), result

    def _put(self, shared: Any) -> tuple[str, Any]:  # noqa: ANN401 - whatever the tasks need
        """A name and a reference of what is shared; the same as before for the same object."""
        if self._shared is None or self._shared[0] is not shared:
            self._shared = None  # before the next: both may not fit
            self._shared = shared, uuid.uuid4().hex, import_module("ray").put(pack(shared))
        return self._shared[1:]

    def check_room(self, threads: int) -> None:
        """Refuse tasks that no machine will ever have room for: Ray would wait for one that has."""
        nodes = alive_nodes()
        if all(node.n_cpus < threads for node in nodes):
            most = max(node.n_cpus for node in nodes)
            raise ClusterError(f"a task needs {threads} CPUs, but no machine has more than {most}; ask for fewer")
        if self.memory is not None and all(node.memory < self.memory for node in nodes):
            largest = max(node.memory for node in nodes) / 1e9
            raise ClusterError(
                f"a task needs {self.memory / 1e9:.1f} GB, but no machine has more than {largest:.1f} GB for tasks; "
                "ask for less"
            )


def run_task(task: Callable[[Any, Any], Any], key: str, packed: Packed, item: Packed, threads: int) -> Packed:
    """Run a task in a process of the cluster, with so many threads: its result, and the CPU seconds it took."""
    os.environ[THREADS_VARIABLE] = str(threads)
    start = time.process_time()
    with threadpool_limits(threads):
        result = task(_shared.get(key, packed), unpack(item, copy=True))
    return pack((result, time.process_time() - start))


@contextmanager
def refusing_losses() -> Iterator[None]:
    """What Ray cannot do is an error of one line; what a task has raised is raised here."""
    try:
        yield
    except Exception as error:
        ray: Any = import_module("ray").exceptions
        if isinstance(error, ray.RayTaskError) and _is_of_task(error.cause):
            error.cause.add_note(str(error))  # the traceback there; as a cause, its text would be taken for the reason
            raise error.cause from None
        if isinstance(error, (ray.RayError, ConnectionError)):  # the latter: Ray's client has lost the cluster
            raise ClusterError(_loss(error)) from error
        raise


def _is_of_task(cause: object) -> bool:
    """Whether a task has raised an error, and not Ray: that one was lost on which it depends, or cannot be sent."""
    return isinstance(cause, Exception) and not isinstance(cause, import_module("ray").exceptions.RayError)


def _loss(error: Exception) -> str:
    ray: Any = import_module("ray").exceptions
    if isinstance(error, ray.OutOfMemoryError):
        return (
            "the memory of a machine ran out, and a task was ended several times; "
            "use machines with more memory, or fewer tasks at a time (--task-memory)"
        )
    if isinstance(error, (ray.WorkerCrashedError, ray.NodeDiedError)):
        return f"a task was lost with its process or machine {MAX_RETRIES} times; see `ray logs` for the reason"
    lines = str(error).strip().splitlines() or [""]
    reason = lines[-1] if isinstance(error, ray.RayTaskError) else f"{type(error).__name__}: {lines[0]}"
    return (
        f"the cluster must answer until the work is done, but does not ({reason}); see `ray status` and `ray logs` "
        "there, and start again"
    )
