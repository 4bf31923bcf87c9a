"""A cluster of three machines in this one."""

import warnings

import pytest

from tests.cluster import losses


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

    def restore(self):
        while len(self.others) < 2:
            self.others.append(self.cluster.add_node(**self.size))
        self.cluster.wait_for_nodes()  # and until the loss of others is noticed


@pytest.fixture(scope="session")
def machines():
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'labelspace[cluster]'")
    ray.cloudpickle.register_pickle_by_value(losses)  # processes of tasks cannot import it
    started = Machines()
    yield started
    started.cluster.shutdown()


@pytest.fixture
def three_nodes(machines):
    """A cluster of three machines, each of one CPU; ``address`` is where it is."""
    machines.restore()
    return machines
