"""Training in tasks of a cluster: the same bytes, whatever is lost on the way."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from labelspace.cluster import RayExecutor, connect
from labelspace.cluster.connection import alive_nodes, check_shared, check_versions
from labelspace.data.synthetic import planted
from labelspace.errors import ClusterError, DataError
from labelspace.models.registry import create
from tests.cluster.losses import KilledOnce

pytest.importorskip("ray", reason="Ray is not installed: pip install 'labelspace[cluster]'")
pytestmark = pytest.mark.slow
TREE = {"max_leaf_size": 5, "branching_factor": 4}
METHODS = {
    "label_tree": TREE,
    "fastxml": {"n_estimators": 3},
    "sleec": {"n_estimators": 2, "max_iter": 2},
    "annexml": {"n_estimators": 2, "epochs": 2},
    "blend": {"members": "neighbors,label_tree:words", "boosting_rounds": 5},
}


@pytest.fixture(scope="module")
def documents():
    return planted(n=500, d=300, l=120, seed=2)


def saved_files(model, folder):
    model.save(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def cluster(machines):
    machines.restore()
    with connect(machines.address) as connected:
        yield connected


@pytest.mark.parametrize("method", METHODS)
def test_tasks_train_the_model_of_one_process(method, documents, cluster, tmp_path):
    here = create(method, **METHODS[method]).fit(documents.X, documents.Y)
    executor = RayExecutor(cluster)
    there = create(method, **METHODS[method]).fit(documents.X, documents.Y, executor=executor)
    assert saved_files(there, tmp_path / "there") == saved_files(here, tmp_path / "here")
    assert executor.cpu_seconds > 0


class Losing(RayExecutor):
    """Loses a process, and a machine once a first task is done, while others run."""

    def __init__(self, cluster, killed, lose):
        super().__init__(cluster)
        self.killed, self.lose = killed, lose

    def map_unordered(self, task, shared, items, whole_node=False):
        for done in super().map_unordered(KilledOnce(task, self.killed), shared, items, whole_node):
            lose, self.lose = self.lose, lambda: None
            lose()
            yield done


@pytest.mark.parametrize("method", ["label_tree", "blend"])
def test_what_is_lost_with_a_process_and_a_machine_is_trained_again(method, documents, cluster, three_nodes, tmp_path):
    here = create(method, **METHODS[method]).fit(documents.X, documents.Y)
    executor = Losing(cluster, tmp_path / "killed", three_nodes.remove_one)
    there = create(method, **METHODS[method]).fit(documents.X, documents.Y, executor=executor)
    assert executor.killed.exists()
    assert len(three_nodes.others) == 1
    assert saved_files(there, tmp_path / "there") == saved_files(here, tmp_path / "here")


def failing(shared, item):
    raise DataError(f"item {item} of {shared}")


def with_threads(shared, item):
    from labelspace.kernels.threads import n_threads

    return n_threads(), bool(shared.flags.writeable), float(shared.sum()) + item


def test_errors_threads_and_room(cluster):
    assert cluster.described == "3 machines with 3 CPUs"
    executor, shared = RayExecutor(cluster), np.ones(1000)
    done = dict(executor.map_unordered(with_threads, shared, [1, 2]))
    assert done == {0: (1, True, 1001.0), 1: (1, True, 1002.0)}
    with pytest.raises(DataError, match="item 7 of data"):
        list(executor.map_unordered(failing, "data", [7]))
    with pytest.raises(ClusterError, match=r"a task needs 900000\.0 GB, but no machine has more than"):
        list(RayExecutor(cluster, memory=9e14).map_unordered(with_threads, shared, [1]))
    with pytest.raises(ClusterError, match="one cluster at a time"), connect("local"):
        pass


def test_paths_must_be_on_all_machines_and_versions_the_same(cluster, tmp_path, monkeypatch):
    nodes = alive_nodes()
    check_shared(nodes, [str(tmp_path)])
    with pytest.raises(ClusterError, match="all machines must see the same files, but .* has no /nowhere; put it on"):
        check_shared(nodes, ["/nowhere"])
    monkeypatch.setattr("labelspace.cluster.connection.__version__", "9.9")
    with pytest.raises(ClusterError, match=r"all machines must have the same labelspace, but .* this machine 9\.9"):
        check_versions(nodes)


def test_the_command_trains_on_a_cluster_by_its_address(three_nodes, run, hierarchy_folder):
    args = ["train", hierarchy_folder, "--method", "label_tree", "--set", "max_leaf_size=5", "--out"]
    assert run(*args, "here")[0] == 0
    command = [sys.executable, "-m", "labelspace", *args, "there", "--cluster", three_nodes.address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "note: cluster: " in done.stderr
    for path in Path("here").iterdir():
        assert (Path("there") / path.name).read_bytes() == path.read_bytes(), path.name
