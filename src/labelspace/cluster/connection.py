"""Connect to a cluster (Ray on this machine, its cluster, or a cluster by its address), and check its machines."""

import logging
import os
import platform
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from labelspace.errors import ClusterError, ParameterError, require
from labelspace.kernels.threads import n_threads
from labelspace.version import __version__

LOCAL, AUTO, CLIENT = "local", "auto", "ray://"
CONNECT_SECONDS = 5.0  # to find out whether a program listens at an address
QUIET = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # otherwise each worker logs a warning
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",  # of tasks that still run when one has failed
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # messages on stdout about lost processes and machines, whose tasks are repeated
}
OOM_RETRIES = 3  # of a task that was killed because memory ran out; Ray itself would try for ever
CHECK_SECONDS = 120.0  # for the first answer of a machine, which imports the library


@dataclass(frozen=True)
class Node:
    """A machine of the cluster."""

    id: str
    address: str
    n_cpus: int
    memory: float  # bytes that Ray gives to tasks


def alive_nodes() -> tuple[Node, ...]:
    """Return the machines that tasks can run on."""
    nodes = []
    for about in import_module("ray").nodes():
        has = about["Resources"]
        if about["Alive"] and has.get("CPU", 0) >= 1:
            nodes.append(Node(about["NodeID"], about["NodeManagerAddress"], int(has["CPU"]), has.get("memory", 0.0)))
    if not nodes:
        raise ClusterError("a cluster must have a machine with a CPU, but has none; run `ray start` with --num-cpus")
    return tuple(nodes)


def on_each_node(task: Any, nodes: Sequence[Node], *arguments: Any) -> dict[Node, Any]:  # noqa: ANN401 - of the task
    """Return what a function returns on each machine; a machine that is lost meanwhile is left out."""
    ray: Any = import_module("ray")
    affinity = import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
    remote = ray.remote(num_cpus=0, max_retries=0)(task)
    pinned = [affinity(node.id, soft=False) for node in nodes]
    answers = [remote.options(scheduling_strategy=strategy).remote(*arguments) for strategy in pinned]
    found = {}
    for node, answer in zip(nodes, answers, strict=True):
        try:
            found[node] = ray.get(answer, timeout=CHECK_SECONDS)
        except (ray.exceptions.NodeDiedError, ray.exceptions.TaskUnschedulableError):
            continue
        except ray.exceptions.RayError as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[-1]
            rule = f"every machine must run labelspace {__version__}"
            remedy = f"install there: pip install 'labelspace[cluster]=={__version__}'"
            raise ClusterError(f"{rule}, but {node.address} does not ({reason}); {remedy}") from error
    return found


def versions() -> dict[str, str]:
    """Return the versions that must be the same on all machines: otherwise results may differ."""
    packages = {name: metadata.version(name) for name in ("numpy", "scipy", "numba")}
    return {"labelspace": __version__, "Python": platform.python_version(), **packages}


def check_versions(nodes: Sequence[Node]) -> None:
    """Raise ClusterError for machines with other versions than this machine."""
    here = versions()
    for node, there in on_each_node(versions, nodes).items():
        for name in here:
            if there[name] != here[name]:
                problem = f"{node.address} has {there[name]} and this machine {here[name]}"
                remedy = "install the same version there"
                raise ClusterError(f"all machines must have the same {name}, but {problem}; {remedy}")


def missing_paths(paths: Sequence[str]) -> list[str]:
    """Return the paths that do not exist on this machine."""
    return [path for path in paths if not Path(path).exists()]


def check_shared(nodes: Sequence[Node], paths: Sequence[str]) -> None:
    """Raise ClusterError for paths that a machine does not have."""
    for node, missing in on_each_node(missing_paths, nodes, list(paths)).items():
        if missing:
            problem = f"{node.address} has no {missing[0]}"
            remedy = "put it on a shared file system, or copy it there to the same path"
            raise ClusterError(f"all machines must see the same files, but {problem}; {remedy}")


@dataclass(frozen=True)
class Cluster:
    """A cluster that this process is connected to."""

    address: str
    nodes: tuple[Node, ...]  # at the time of the connection; machines come and go

    @property
    def n_cpus(self) -> int:
        """The number of CPUs of all machines."""
        return sum(node.n_cpus for node in self.nodes)

    @property
    def described(self) -> str:
        """The numbers of machines and CPUs, as text.

        >>> Cluster("local", (Node("a", "10.0.0.1", 2, 8e9), Node("b", "10.0.0.2", 4, 8e9))).described
        '2 machines with 6 CPUs'
        """
        n = len(self.nodes)
        return f"{n} machine{'s' * (n > 1)} with {self.n_cpus} CPU{'s' * (self.n_cpus > 1)}"


def check_address(address: str) -> None:
    """Raise ParameterError for a malformed address, before any work.

    >>> check_address("ray://head:10001")
    >>> check_address("ray:/head")
    Traceback (most recent call last):
        ...
    labelspace.errors.ParameterError: a cluster must be local, auto, ray://HOST:PORT or HOST:PORT, but is ...
    """
    host_and_port = r"(ray://)?([\w.\-]+|\[[\da-fA-F:]+\]):\d{1,5}"
    if address not in (LOCAL, AUTO) and not re.fullmatch(host_and_port, address):
        rule = "a cluster must be local, auto, ray://HOST:PORT or HOST:PORT"
        raise ParameterError(f"{rule}, but is {address!r}; write local for the CPUs of this machine")


@contextmanager
def connect(address: str) -> Iterator[Cluster]:
    """Connect to a cluster, check that its machines have this version of the library, and disconnect at the end."""
    check_address(address)
    for name, value in QUIET.items():  # some are read when Ray is imported
        os.environ.setdefault(name, value)
    ray = require("ray", "cluster", "--cluster")
    if ray.is_initialized():
        raise ClusterError("a process must be connected to one cluster at a time, but is to another; disconnect first")
    _start(ray, address)
    try:
        nodes = alive_nodes()
        check_versions(nodes)
        yield Cluster(address, nodes)
    finally:
        ray.shutdown()


def _start(ray: Any, address: str) -> None:  # noqa: ANN401 - the module
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False, "configure_logging": True}
    try:
        if address == LOCAL:
            limits = {"task_oom_retries": OOM_RETRIES}
            ray.init("local", num_cpus=n_threads(), include_dashboard=False, _system_config=limits, **quiet)
        else:
            if address.startswith(CLIENT):
                require("grpc", "cluster", "--cluster ray://")
                # Ray waits half a minute for a host that does not answer, and says little then.
                host, _, port = address.removeprefix(CLIENT).rpartition(":")
                socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
            ray.init(address, **quiet)
    except (OSError, RuntimeError, ValueError) as error:
        raise ClusterError(_unreachable(address, error)) from error


def _unreachable(address: str, error: Exception) -> str:
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if "version mismatch" in str(error).lower():
        return f"this machine must have the versions of Python and Ray of the cluster, but {reason}; install them"
    if address == AUTO:
        remedy = "run `ray start --head`, or use --cluster local"
        return f"--cluster auto needs a cluster that this machine is part of, but finds none; {remedy}"
    if address == LOCAL:
        return f"Ray could not be started on this machine ({reason}); see the logs in /tmp/ray/session_latest/logs"
    if "No node info found" in reason:
        problem = f"this one is not part of that at {address}"
        remedy = "run `ray start` here, or use ray://HOST:PORT with its client port (10001)"
        return f"--cluster HOST:PORT needs a machine of the cluster, but {problem}; {remedy}"
    return f"no cluster answers at {address} ({reason}); check the address, and that `ray status` works there"
