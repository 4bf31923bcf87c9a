"""An executor for tests that need no cluster."""

import pickle
from contextlib import contextmanager


class FakeExecutor:
    """Runs tasks in this process: last first, and all that goes to a task or comes back is pickled."""

    n_cpus = 4

    def __init__(self, before=lambda: None):
        self.before = before  # called before tasks run
        self.calls = []  # the number of tasks, and whether each takes a whole machine

    def map_unordered(self, task, shared, items, whole_node=False):
        self.calls.append((len(items), whole_node))
        shared, items = sent(shared), [sent(item) for item in items]
        self.before()
        for position in reversed(range(len(items))):
            yield position, sent(task(shared, items[position]))


def sent(value):
    """A value as another process gets it."""
    return pickle.loads(pickle.dumps(value))


@contextmanager
def fake_cluster(address, task_memory, quiet):
    """What ``labelspace.cli.cluster.cluster_executor`` does, without a cluster."""
    yield None if address is None else FakeExecutor()
