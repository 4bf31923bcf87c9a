"""The options --cluster and --task-memory: where tasks of a command run."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, NamedTuple

from typer import Option

from labelspace.cli.arguments import OptionGroup
from labelspace.cli.notes import note

if TYPE_CHECKING:
    from labelspace.cluster import RayExecutor

ADDRESS = Option(
    "--cluster",
    metavar="ADDRESS",
    help="Run on a Ray cluster: local (all CPUs here), auto (the one this machine is part of) or ray://HOST:PORT.",
)
TASK_MEMORY = Option("--task-memory", metavar="4GB", help="Memory that a task of --cluster needs: fewer run at a time.")


class ClusterOptions(NamedTuple):
    """The options of commands that may run tasks on a cluster."""

    address: Annotated[str | None, ADDRESS] = None
    task_memory: Annotated[str | None, TASK_MEMORY] = None


Cluster = Annotated[ClusterOptions, Option(parser=OptionGroup.of(ClusterOptions))]
UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def parse_bytes(text: str, option: str) -> float:
    """Return the bytes of a size such as 500MB or 4GB.

    >>> parse_bytes("4GB", "--task-memory"), parse_bytes("1.5 g", "--task-memory")
    (4000000000.0, 1500000000.0)
    """
    from labelspace.errors import ParameterError

    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)I?B?", text.strip().upper())
    if found is None or float(found[1]) == 0:
        raise ParameterError(f"{option} must be a size such as 500MB or 4GB, but is {text!r}; write for example 4GB")
    return float(found[1]) * UNITS[found[2]]


@contextmanager
def cluster_executor(address: str | None, task_memory: str | None, quiet: bool) -> "Iterator[RayExecutor | None]":
    """Yield what runs the tasks of a command, or None without a cluster."""
    from labelspace.errors import ParameterError

    memory = None if task_memory is None else parse_bytes(task_memory, "--task-memory")
    if address is None:
        if memory is not None:
            raise ParameterError("--task-memory is for the tasks of a cluster, but there is no --cluster; add one")
        yield None
        return
    from labelspace.cluster import RayExecutor, connect

    with connect(address) as cluster:
        if not quiet:
            note(f"cluster: {cluster.described}")
        yield RayExecutor(cluster, memory)
