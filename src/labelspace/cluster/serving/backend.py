"""Serving on a cluster: who starts the server starts the actors, and each of its workers loads models that ask them.

Actors have names, by which workers find them, and end with the process that started them.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from labelspace import store
from labelspace.cluster.connection import CLIENT, Cluster, connect
from labelspace.cluster.nodes import check_shared
from labelspace.cluster.serving.actor import load_replica, load_shard, remote_class, warm_up
from labelspace.cluster.serving.asking import ANSWER_SECONDS, RemoteShards, Replicas
from labelspace.cluster.serving.replicated_tagger import ReplicatedTagger
from labelspace.cluster.serving.shard_folder import SavedPart, saved_model, shards_of, write_shards
from labelspace.cluster.serving.splitting import splitting_of
from labelspace.errors import ClusterError
from labelspace.tagger import Tagger

START_SECONDS = 300.0  # for actors to load their parts: a large one from a slow disk takes a while
IN_FLIGHT = 2  # batches that shards work on: one is prepared at the door while another is answered


@dataclass(frozen=True)
class ServingCluster:
    """What a worker of the server must know to ask the actors."""

    address: str
    namespace: str  # of the names of actors
    n_actors: int  # of each model
    sharded: bool  # else they are replicas
    answer_seconds: float = ANSWER_SECONDS  # that an answer may take

    @property
    def n_concurrent(self) -> int:
        """Batches that may be under way: all shards work on the same, replicas on one each."""
        return IN_FLIGHT if self.sharded else self.n_actors


@contextmanager
def serving(cluster: Cluster, models: Mapping[str, str], n_actors: int, sharded: bool) -> Iterator[ServingCluster]:
    """Split models where that is asked for, and start the actors of each; they end with the block."""
    ray: Any = import_module("ray")
    _check_cpus(cluster, len(models) * n_actors)
    address = cluster.address
    if not address.startswith(CLIENT):
        address = ray.get_runtime_context().gcs_address
    served = ServingCluster(address, f"labelspace-{uuid.uuid4().hex}", n_actors, sharded)
    actors: list[Any] = []
    try:
        for name, folder in models.items():
            parts, memory = _parts(folder, n_actors, sharded)
            check_shared(cluster.nodes, sorted({part.folder for part in parts}))
            actors += _start(served, name, parts, memory)
        yield served
    finally:
        with suppress(ray.exceptions.RayError):  # the cluster may be gone
            for actor in actors:
                ray.kill(actor)


def _check_cpus(cluster: Cluster, wanted: int) -> None:
    if wanted > cluster.n_cpus:
        raise ClusterError(
            f"a shard or replica needs a CPU, so these need {wanted}, but the cluster has {cluster.described}; "
            "ask for fewer, or add machines"
        )


def _parts(folder: str, n: int, sharded: bool) -> tuple[list[SavedPart], int | None]:
    """What each actor of a model holds, and the memory to reserve for it."""
    saved = saved_model(folder)
    if not sharded:
        return [saved] * n, None  # replicas of a machine share it
    written = shards_of(saved, n)
    if written is None:
        saved, tagger = read_version(folder)
        written = write_shards(saved, tagger.model, n)
    return list(written.shards), written.largest_bytes


def read_version(folder: str | Path) -> tuple[SavedPart, Tagger]:
    """A model, and which version it is: one that replaces it meanwhile is neither."""
    return store.read_unreplaced(folder, lambda: (saved_model(folder), Tagger.load(folder)))


def _start(served: ServingCluster, model: str, parts: Sequence[SavedPart], memory: int | None) -> list[Any]:
    """The actors of a model, which have loaded their parts."""
    ray: Any = import_module("ray")
    options = {
        "namespace": served.namespace, "num_cpus": 1, "memory": memory, "max_restarts": -1,
        "scheduling_strategy": "SPREAD",
    }  # fmt: skip
    load, remote = load_shard if served.sharded else load_replica, remote_class()
    actors = [remote.options(name=_name(model, number), **options).remote(load) for number in range(len(parts))]
    try:
        ready = [actor.prepare.remote(part) for actor, part in zip(actors, parts, strict=True)]
        ray.get(ready, timeout=START_SECONDS)
    except ray.exceptions.RayTaskError as error:
        raise error.cause if isinstance(error.cause, ClusterError) else error from None
    except ray.exceptions.RayError as error:
        raise ClusterError(
            f"the cluster must run {len(parts)} processes of {model}, but does not within {START_SECONDS:g} s "
            f"({type(error).__name__}); see `ray status`, and ask for fewer or add machines"
        ) from error
    return actors


def _name(model: str, number: int) -> str:
    return f"{model}-{number}"


class ClusterBackend:
    """Loads models of a worker that ask actors; connects when the first is loaded."""

    def __init__(self, served: ServingCluster) -> None:
        self.served = served
        self._stack, self._lock = ExitStack(), threading.Lock()

    def reader(self, name: str) -> Callable[[Path], Tagger]:
        """What reads a model of a name, in place of ``Tagger.load``."""
        return lambda folder: self.load(name, folder)

    def load(self, name: str, folder: Path) -> Tagger:
        """A model whose shards or replicas answer, which load its version."""
        self._connect()
        saved, tagger = read_version(folder)
        actors = self._actors(name)
        if self.served.sharded:
            return self._sharded(saved, tagger, actors)
        replicas = Replicas(actors, saved, self.served.answer_seconds)
        replicas.wait_for_first(START_SECONDS)  # not for all: one that is lost loads the model once it is back
        return ReplicatedTagger.of(tagger, replicas)

    def _sharded(self, saved: SavedPart, tagger: Tagger, actors: Sequence[Any]) -> Tagger:
        """The same tagger, whose model is asked in shards."""
        n = self.served.n_actors
        written = shards_of(saved, n) or write_shards(saved, tagger.model, n)
        shards = RemoteShards(actors, written.shards, START_SECONDS)  # the first answers may take longer
        shards.prepare(START_SECONDS)
        tagger.model = splitting_of(tagger.model).connected(written.load_door(), shards)
        tagger.model.attach_labels(tagger.labels_)
        warm_up(tagger)
        shards.answer_seconds = self.served.answer_seconds
        return tagger

    def close(self) -> None:
        """Leave the cluster."""
        self._stack.close()

    def _connect(self) -> None:
        ray: Any = import_module("ray")
        with self._lock:
            if not ray.is_initialized():
                self._stack.enter_context(connect(self.served.address))

    def _actors(self, model: str) -> list[Any]:
        ray: Any = import_module("ray")
        try:
            names = [_name(model, number) for number in range(self.served.n_actors)]
            return [ray.get_actor(name, namespace=self.served.namespace) for name in names]
        except ValueError as error:
            raise ClusterError(
                f"the processes of {model} must be on the cluster, but are not: it was started anew, or whoever "
                "started them ended; start the server again"
            ) from error
