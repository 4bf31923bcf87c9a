"""Shards and replicas in processes of a cluster of three machines: the same answers, whatever is lost."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from labelspace.cluster import connect
from labelspace.cluster.serving import ClusterBackend, serving
from labelspace.cluster.serving.backend import LOADING
from labelspace.cluster.serving.remote_calls import RemoteShards
from labelspace.cluster.serving.shard_folder import SavedPart, saved_model, shards_of
from labelspace.data.synthetic import planted
from labelspace.errors import ClusterError, ParameterError
from labelspace.tagger import Tagger
from labelspace.types import Dataset

pytestmark = pytest.mark.slow
DOCUMENTS = planted(n=300, d=200, l=60, texts=True, seed=3)
TEXTS = DOCUMENTS.texts[250:]


@pytest.fixture(scope="module")
def cluster(machines):
    """A connection to three machines."""
    machines.restore()
    with connect(machines.address) as connected:
        yield connected


@pytest.fixture
def folder(tmp_path):
    """A saved tree of several levels."""
    return saved_tree(tmp_path / "model", beam_size=3)


def saved_tree(folder, **params):
    tagger = Tagger("label_tree", max_leaf_size=4, branching_factor=3, tune=False, **params)
    tagger.fit_dataset(Dataset(DOCUMENTS.Y[:250], DOCUMENTS.labels, texts=DOCUMENTS.texts[:250])).save(folder)
    return folder


@contextmanager
def served(cluster, folder, n, sharded):
    """The backend of a worker, and the actors."""
    import ray

    with serving(cluster, {"m": str(folder)}, n, sharded) as on_cluster:
        actors = [ray.get_actor(f"m-{number}", namespace=on_cluster.namespace) for number in range(n)]
        yield ClusterBackend(on_cluster), actors


def pid(actor):
    """The process of an actor, which may be starting again."""
    import ray

    while True:
        try:
            return ray.get(actor.__ray_call__.remote(lambda _: os.getpid()))
        except ray.exceptions.ActorUnavailableError:
            time.sleep(0.1)


def same(found, expected):
    np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_array_equal(found.scores, expected.scores)


def check_answers_meanwhile(actors, released, ask):
    """Questions are answered while the thread that loads is busy."""
    import ray

    def load(_):
        while not released.exists():
            time.sleep(0.02)

    loading = [actor.__ray_call__.options(concurrency_group=LOADING).remote(load) for actor in actors]
    ask()
    waiting = [actor.prepare.remote(SavedPart("another", 0)) for actor in actors]  # on the thread that loads
    assert ray.wait(loading + waiting, timeout=0.2)[0] == []
    released.touch()
    ray.get(loading)


def check_replacement(backend, actors, folder):
    """A version that replaces another is answered by the same processes, and so are requests under way for the old."""
    before = [pid(actor) for actor in actors]
    old, expected = backend.load("m", folder), Tagger.load(folder).predict_topk(TEXTS, 5)
    saved_tree(folder, beam_size=1)
    new = backend.load("m", folder)
    same(new.predict_topk(TEXTS, 5), Tagger.load(folder).predict_topk(TEXTS, 5))
    same(old.predict_topk(TEXTS, 5), expected)
    assert [pid(actor) for actor in actors] == before


def test_shards_answer_as_one_process_and_come_back(cluster, folder):
    whole = Tagger.load(folder)
    with served(cluster, folder, 2, sharded=True) as (backend, actors):
        tagger = backend.load("m", folder)
        same(tagger.predict_topk(TEXTS, 5), whole.predict_topk(TEXTS, 5))
        names = whole.labels_.names[:30]
        same(tagger.predict_topk(TEXTS, 5, include=names), whole.predict_topk(TEXTS, 5, include=names))
        why, expected = (each.explain(TEXTS[0], k=2) for each in (tagger, whole))
        assert [each.to_dict() for each in why] == [each.to_dict() for each in expected]
        parts = shards_of(saved_model(folder), 2).shards
        before = pid(actors[1])
        os.kill(before, signal.SIGKILL)
        with pytest.raises(ClusterError, match="every shard of the model must answer within 0.01 s"):
            RemoteShards(actors, parts, answer_seconds=0.01).call("inner_nodes")
        same(tagger.predict_topk(TEXTS, 5), whole.predict_topk(TEXTS, 5))  # it is waited for
        assert pid(actors[1]) != before
        check_replacement(backend, actors, folder)


def test_replicas_answer_many_at_once_while_one_is_lost(cluster, folder, tmp_path):
    whole = Tagger.load(folder)
    expected = whole.tag_batch(TEXTS, 3)
    with served(cluster, folder, 2, sharded=False) as (backend, actors), ThreadPoolExecutor(8) as threads:
        tagger = backend.load("m", folder)
        assert list(threads.map(lambda text: tagger.tag(text, 3), TEXTS)) == expected
        assert min(tagger._replicas._n_calls) > 0
        check_answers_meanwhile(actors, tmp_path / "released", lambda: tagger.tag_batch(TEXTS, 3))
        os.kill(pid(actors[0]), signal.SIGKILL)
        assert list(threads.map(lambda text: tagger.tag(text, 3), TEXTS)) == expected
        assert tagger.explain(TEXTS[0], k=1)[0].to_dict() == whole.explain(TEXTS[0], k=1)[0].to_dict()
        with pytest.raises(ParameterError, match="a probability needs a method that is calibrated"):
            tagger.tag(TEXTS[0], min_probability=0.5)  # as it was raised there
        check_replacement(backend, actors, folder)
    with pytest.raises(ClusterError, match="the processes of m must be on the cluster"):
        backend.load("m", folder)


def test_more_processes_than_cpus_are_refused(cluster, folder):
    rule = "these need 4, but the cluster has 3 machines with 3 CPUs; ask for fewer"
    with pytest.raises(ClusterError, match=rule), serving(cluster, {"m": str(folder)}, 4, sharded=False):
        pass


def test_a_model_that_machines_do_not_see_is_refused(cluster, folder, monkeypatch):
    def missing(nodes, paths):
        raise ClusterError(f"all machines must see the same files, but one has no {Path(paths[0]).name}")

    monkeypatch.setattr("labelspace.cluster.serving.backend.check_shared", missing)
    with pytest.raises(ClusterError, match="one has no shard-0"), serving(cluster, {"m": str(folder)}, 2, sharded=True):
        pass
