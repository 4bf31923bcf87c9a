"""A cluster of three machines in this one."""

import os
import signal
import warnings
from contextlib import suppress
from pathlib import Path

import pytest


class Machines:
    """The machines of a cluster, of one CPU each; those that a test removes are replaced for the next."""

    def __init__(self):
        from ray.cluster_utils import Cluster

        head = {"include_dashboard": False, **self.size}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # of log files that Ray leaves open
            self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.others = [self.cluster.add_node(**self.size) for _ in range(2)]

    size = {"num_cpus": 1, "object_store_memory": 100_000_000}

    @property
    def address(self):
        return self.cluster.address

    def remove_one(self):
        """Kill all processes of a machine."""
        self.cluster.remove_node(self.others.pop(), allow_graceful=False)

    def kill_task(self):
        """Kill a process that runs a task, on whatever machine of this cluster."""
        for node in self.cluster.list_all_nodes():
            raylet = node.all_processes["raylet"][0].process.pid
            for pid in map(int, Path(f"/proc/{raylet}/task/{raylet}/children").read_text().split()):
                with suppress(OSError):  # it ended by itself
                    if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::run_task"):
                        os.kill(pid, signal.SIGKILL)
                        return
        raise AssertionError("no task runs")

    def restore(self):
        while len(self.others) < 2:
            self.others.append(self.cluster.add_node(**self.size))
        self.cluster.wait_for_nodes()  # and until the loss of others is noticed


@pytest.fixture(scope="session")
def machines():
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'labelspace[cluster]'")
    started = Machines()
    yield started
    started.cluster.shutdown()


@pytest.fixture
def three_nodes(machines):
    """A cluster of three machines, each of one CPU; ``address`` is where it is."""
    machines.restore()
    return machines
