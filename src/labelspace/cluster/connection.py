"""Connect to a cluster: Ray on this machine, the cluster of this machine, or a cluster by its address."""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from labelspace.cluster.nodes import Node, alive_nodes, check_versions
from labelspace.errors import ClusterError, ParameterError, require
from labelspace.kernels.threads import n_threads

LOCAL, AUTO, CLIENT = "local", "auto", "ray://"
CONNECT_SECONDS = 5.0  # to find out whether a program listens at an address
QUIET = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # otherwise each worker logs a warning
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",  # of tasks that still run when one has failed
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # messages on stdout about lost processes and machines, whose tasks are repeated
}
OOM_RETRIES = 3  # of a task that was killed because memory ran out; Ray itself would try for ever


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
    if address not in (LOCAL, AUTO) and not re.fullmatch(
        r"(ray://)?[\w.\-]+:\d{1,5}|(ray://)?\[[\da-fA-F:]+\]:\d{1,5}", address
    ):
        raise ParameterError(
            f"a cluster must be local, auto, ray://HOST:PORT or HOST:PORT, but is {address!r}; "
            "write local for the CPUs of this machine"
        )


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
                _check_reachable(address)
            ray.init(address, **quiet)
    except (OSError, RuntimeError, ValueError) as error:
        raise ClusterError(_unreachable(address, error)) from error


def _check_reachable(address: str) -> None:
    """Connect once by ourselves: Ray waits half a minute for a host that does not answer, and says little then."""
    host, _, port = address.removeprefix(CLIENT).rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS):
        pass


def _unreachable(address: str, error: Exception) -> str:
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if "version mismatch" in str(error).lower():
        return f"this machine must have the versions of Python and Ray of the cluster, but {reason}; install them"
    if address == AUTO:
        return (
            "--cluster auto needs a cluster that this machine is part of, but finds none; run `ray start --head`, or "
            "use --cluster local"
        )
    if address == LOCAL:
        return f"Ray could not be started on this machine ({reason}); see the logs in /tmp/ray/session_latest/logs"
    if "No node info found" in reason:
        return (
            f"--cluster HOST:PORT needs a machine of the cluster, but this one is not part of that at {address}; run "
            "`ray start` here, or use ray://HOST:PORT with its client port (10001)"
        )
    return f"no cluster answers at {address} ({reason}); check the address, and that `ray status` works there"
