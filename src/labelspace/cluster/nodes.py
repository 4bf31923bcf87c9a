"""Find the machines of a cluster, and check that they can do the work."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from labelspace.errors import ClusterError
from labelspace.version import __version__

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
    ray: Any = import_module("ray")
    nodes = []
    for about in ray.nodes():
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
            raise ClusterError(
                f"every machine must run labelspace {__version__}, but {node.address} does not ({reason}); "
                f"install there: pip install 'labelspace[cluster]=={__version__}'"
            ) from error
    return found


def versions() -> dict[str, str]:
    """Return the versions that must be the same on all machines: otherwise results may differ."""
    import numba
    import numpy
    import scipy

    named = {"labelspace": __version__, "Python": platform.python_version()}
    return named | {package.__name__: package.__version__ for package in (numpy, scipy, numba)}


def check_versions(nodes: Sequence[Node]) -> None:
    """Raise ClusterError for machines with other versions than this machine."""
    here = versions()
    for node, there in on_each_node(versions, nodes).items():
        for name in here:
            if there[name] != here[name]:
                raise ClusterError(
                    f"all machines must have the same {name}, but {node.address} has {there[name]} and this machine "
                    f"{here[name]}; install the same version there"
                )


def missing_paths(paths: Sequence[str]) -> list[str]:
    """Return the paths that do not exist on this machine."""
    return [path for path in paths if not Path(path).exists()]


def check_shared(nodes: Sequence[Node], paths: Sequence[str]) -> None:
    """Raise ClusterError for paths that a machine does not have."""
    for node, missing in on_each_node(missing_paths, nodes, list(paths)).items():
        if missing:
            raise ClusterError(
                f"all machines must see the same files, but {node.address} has no {missing[0]}; put it on a shared "
                "file system, or copy it there to the same path"
            )
