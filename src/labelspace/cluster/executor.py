"""Run independent tasks on a cluster, as many at a time as there are CPUs; lost tasks are repeated.

Tasks share data: each machine stores it once, and tasks read it there without a copy. Ray returns read-only arrays.
Kernels are compiled for writable arrays, and would be compiled a second time for read-only ones; so tasks see the same
bytes as writable arrays. A task must not write to shared data.
"""

import ctypes
import os
import pickle  # nosec B403 - between processes of one run, never from a file
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from labelspace.cluster.connection import Cluster, alive_nodes
from labelspace.errors import ClusterError
from labelspace.kernels.threads import THREADS_VARIABLE

Bytes = npt.NDArray[np.uint8]


class Packed(NamedTuple):
    """A value in pieces: its structure, and the bytes of its arrays."""

    structure: bytes
    arrays: list[Bytes]


def pack(value: Any) -> Packed:  # noqa: ANN401 - any value that can be pickled
    """Take a value apart into its structure and its arrays, which are not copied.

    >>> import scipy.sparse as sp
    >>> unpack(pack(sp.csr_matrix([[0.0, 2.0]]))).toarray().tolist()
    [[0.0, 2.0]]
    """
    buffers: list[pickle.PickleBuffer] = []
    structure = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return Packed(structure, [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers])


def unpack(packed: Packed, copy: bool = False) -> Any:  # noqa: ANN401 - what was packed
    """Return the value; without ``copy`` its arrays are those of ``packed``, which must live as long as the value."""
    buffers = [array.copy() for array in packed.arrays] if copy else map(_writable, packed.arrays)
    return pickle.loads(packed.structure, buffers=buffers)  # nosec B301


def _writable(array: Bytes) -> Bytes:
    """Return a writable array of the same bytes."""
    if array.flags.writeable or array.size == 0:
        return array
    writable: Bytes = np.ctypeslib.as_array((ctypes.c_uint8 * array.size).from_address(array.ctypes.data))
    return writable


_last_shared: dict[str, tuple[Packed, Any]] = {}  # the shared value that this process has unpacked last, by its key


def shared_value(key: str, packed: Packed) -> Any:  # noqa: ANN401 - what was packed
    """Return the shared value of a key, kept because many tasks use the same."""
    if key not in _last_shared:
        _last_shared.clear()  # freed before the next value is unpacked: both may not fit
        _last_shared[key] = packed, unpack(packed)
    return _last_shared[key][1]


Item = TypeVar("Item")
Result = TypeVar("Result")
MAX_RETRIES = 20  # of a task whose machine or process is lost
IN_FLIGHT = 2  # tasks per CPU that are submitted at a time; more would let results pile up in memory


class RayExecutor:
    """Run tasks on a cluster; ``memory``, the bytes that a task needs, limits how many run at once."""

    def __init__(self, cluster: Cluster, memory: float | None = None) -> None:
        self.cluster, self.memory, self.n_cpus = cluster, memory, cluster.n_cpus
        self.cpu_seconds = 0.0  # of the tasks that are done
        self._shared: tuple[Any, str, Any] | None = None  # the last shared value, its name and its reference

    def map_unordered(
        self,
        task: Callable[[Any, Item], Result],
        shared: Any,  # noqa: ANN401 - whatever the tasks need
        items: Sequence[Item],
        whole_node: bool = False,
    ) -> Iterator[tuple[int, Result]]:
        """Yield the position and the result of ``task(shared, item)`` for every item, as each gets done."""
        ray: Any = import_module("ray")
        # With the CPUs of the smallest machine, a task can run on any machine.
        threads = min(node.n_cpus for node in self.cluster.nodes) if whole_node else 1
        with refusing_losses():
            self.check_room(threads)
            key, packed = self._put(shared)
        resources = {"num_cpus": threads, "memory": self.memory, "max_retries": MAX_RETRIES}
        remote = ray.remote(run_task).options(**resources, scheduling_strategy="SPREAD")
        left = list(enumerate(items))[::-1]
        running = dict[Any, int]()
        # If a task fails, running tasks are not canceled: Ray 2.60 aborts this process if one ends at that moment (a
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
        """Return a name and a reference of the shared value; for the object of the last call, the same again."""
        if self._shared is None or self._shared[0] is not shared:
            self._shared = None  # freed before the next value is stored: both may not fit
            self._shared = shared, uuid.uuid4().hex, import_module("ray").put(pack(shared))
        return self._shared[1:]

    def check_room(self, threads: int) -> None:
        """Raise ClusterError for tasks that fit no machine: Ray would wait for a larger machine for ever."""
        nodes = alive_nodes()
        if all(node.n_cpus < threads for node in nodes):
            most = max(node.n_cpus for node in nodes)
            raise ClusterError(f"a task needs {threads} CPUs, but no machine has more than {most}; ask for fewer")
        if self.memory is not None and all(node.memory < self.memory for node in nodes):
            largest = max(node.memory for node in nodes) / 1e9
            problem = f"no machine has more than {largest:.1f} GB for tasks"
            raise ClusterError(f"a task needs {self.memory / 1e9:.1f} GB, but {problem}; ask for less")


def run_task(task: Callable[[Any, Any], Any], key: str, packed: Packed, item: Packed, threads: int) -> Packed:
    """Run a task in a process of the cluster with this number of threads; return its result and its CPU seconds."""
    os.environ[THREADS_VARIABLE] = str(threads)
    start = time.process_time()
    with threadpool_limits(threads):
        result = task(shared_value(key, packed), unpack(item, copy=True))
    return pack((result, time.process_time() - start))


@contextmanager
def refusing_losses() -> Iterator[None]:
    """Turn errors of Ray into a ClusterError of one line, and raise here what a task has raised."""
    try:
        yield
    except Exception as error:
        ray: Any = import_module("ray").exceptions
        cause = error.cause if isinstance(error, ray.RayTaskError) else None
        # A task has raised the cause, rather than Ray for a lost or unsendable dependency.
        if isinstance(cause, Exception) and not isinstance(cause, ray.RayError):
            # The remote traceback is a note: as a cause of the error, its text would be shown as the reason.
            cause.add_note(str(error))
            raise cause from None
        if isinstance(error, (ray.RayError, ConnectionError)):  # ConnectionError: Ray's client has lost the cluster
            raise ClusterError(_loss(error)) from error
        raise


def _loss(error: Exception) -> str:
    ray: Any = import_module("ray").exceptions
    if isinstance(error, ray.OutOfMemoryError):
        remedy = "use machines with more memory, or fewer tasks at a time (--task-memory)"
        return f"the memory of a machine ran out, and a task was ended several times; {remedy}"
    if isinstance(error, (ray.WorkerCrashedError, ray.NodeDiedError)):
        return f"a task was lost with its process or machine {MAX_RETRIES} times; see `ray logs` for the reason"
    lines = str(error).strip().splitlines() or [""]
    reason = lines[-1] if isinstance(error, ray.RayTaskError) else f"{type(error).__name__}: {lines[0]}"
    remedy = "see `ray status` and `ray logs` there, and start again"
    return f"the cluster must answer until the work is done, but does not ({reason}); {remedy}"
