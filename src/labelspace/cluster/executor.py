"""Independent tasks on the machines of a cluster: as many at a time as there are CPUs, again where one was lost."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from labelspace.cluster.connection import Cluster
from labelspace.cluster.nodes import alive_nodes
from labelspace.cluster.shared_data import Packed, SharedValues, pack, unpack
from labelspace.errors import ClusterError, LabelspaceError
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
        self.check_room(threads)
        remote = ray.remote(run_task).options(
            num_cpus=threads, memory=self.memory, max_retries=MAX_RETRIES, scheduling_strategy="SPREAD"
        )
        key, packed = self._put(shared)
        left, running = list(enumerate(items))[::-1], dict[Any, int]()
        # Where one fails, those that run are not canceled: Ray 2.60 aborts this process if one ends at that moment (a
        # failed check in task_manager.cc). They end with the connection.
        while left or running:
            while left and len(running) < IN_FLIGHT * self.n_cpus:
                position, item = left.pop()
                running[remote.remote(task, key, packed, pack(item), threads)] = position
            for done in ray.wait(list(running))[0]:
                result, seconds = result_of(done)
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


def result_of(done: Any) -> Any:  # noqa: ANN401 - a reference, and what it refers to
    """What ``run_task`` returned; an error of the library as it was raised."""
    ray: Any = import_module("ray")
    try:
        return unpack(ray.get(done), copy=True)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, LabelspaceError):
            raise error.cause from None
        raise
    except ray.exceptions.OutOfMemoryError as error:
        raise ClusterError(
            "the memory of a machine ran out, and a task was ended several times; "
            "use machines with more memory, or fewer tasks at a time (--task-memory)"
        ) from error
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError) as error:
        raise ClusterError(
            f"a task was lost with its process or machine {MAX_RETRIES} times; see `ray logs` for the reason"
        ) from error
