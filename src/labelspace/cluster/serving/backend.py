"""Serve on a cluster: the supervisor starts the actors, and each worker loads models that call them.

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
from labelspace.cluster.serving.remote_calls import ANSWER_SECONDS, RemoteShards, Replicas, ReplicatedTagger
from labelspace.cluster.serving.shard_folder import SavedPart, saved_model, shards_of, write_shards
from labelspace.cluster.serving.splitting import splitting_of
from labelspace.errors import ClusterError
from labelspace.tagger import Tagger

START_SECONDS = 300.0  # for actors to load their parts: a large part from a slow disk takes a while
IN_FLIGHT = 2  # batches that shards work on: one is prepared in the front end while another is answered


@dataclass(frozen=True)
class ServingCluster:
    """What a worker of the server must know to call the actors."""

    address: str
    namespace: str  # of the names of actors
    n_actors: int  # of each model
    sharded: bool  # else they are replicas
    answer_seconds: float = ANSWER_SECONDS  # that an answer may take

    @property
    def n_concurrent(self) -> int:
        """The number of batches in progress: all shards work on the same batch, replicas on one each."""
        return IN_FLIGHT if self.sharded else self.n_actors


@contextmanager
def serving(cluster: Cluster, models: Mapping[str, str], n_actors: int, sharded: bool) -> Iterator[ServingCluster]:
    """Split the models if ``sharded``, and start the actors of each; they end with the block."""
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
    """Return what each actor of a model holds, and the memory to reserve for it."""
    saved = saved_model(folder)
    if not sharded:
        return [saved] * n, None  # replicas on one machine share the memory of the model
    written = shards_of(saved, n)
    if written is None:
        saved, tagger = read_version(folder)
        written = write_shards(saved, tagger.model, n)
    return list(written.shards), written.largest_bytes


def read_version(folder: str | Path) -> tuple[SavedPart, Tagger]:
    """Load a model, and return it with its version, even if another model replaces it meanwhile."""
    return store.read_unreplaced(folder, lambda: (saved_model(folder), Tagger.load(folder)))


def _start(served: ServingCluster, model: str, parts: Sequence[SavedPart], memory: int | None) -> list[Any]:
    """Start the actors of a model, and wait until they have loaded their parts."""
    ray: Any = import_module("ray")
    resources = {"num_cpus": 1, "memory": memory, "max_restarts": -1, "scheduling_strategy": "SPREAD"}
    load = load_shard if served.sharded else load_replica
    remote = remote_class().options
    names = [_name(model, number) for number in range(len(parts))]
    actors = [remote(name=name, namespace=served.namespace, **resources).remote(load) for name in names]
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
    """Load models of a worker that call actors; connect to the cluster when the first is loaded."""

    def __init__(self, served: ServingCluster) -> None:
        self.served = served
        self._stack = ExitStack()
        self._lock = threading.Lock()

    def reader(self, name: str) -> Callable[[Path], Tagger]:
        """Return a function that loads the model with a name, in place of ``Tagger.load``."""
        return lambda folder: self.load(name, folder)

    def load(self, name: str, folder: Path) -> Tagger:
        """Load a model whose shards or replicas answer; they load its version too."""
        self._connect()
        saved, tagger = read_version(folder)
        actors = self._actors(name)
        if self.served.sharded:
            return self._sharded(saved, tagger, actors)
        replicas = Replicas(actors, saved, self.served.answer_seconds)
        replicas.wait_for_first(START_SECONDS)  # not for all: a lost replica loads the model once it is back
        return ReplicatedTagger.of(tagger, replicas)

    def _sharded(self, saved: SavedPart, tagger: Tagger, actors: Sequence[Any]) -> Tagger:
        """Let shards answer for the model of a tagger."""
        n = self.served.n_actors
        written = shards_of(saved, n) or write_shards(saved, tagger.model, n)
        shards = RemoteShards(actors, written.shards, START_SECONDS)  # the first answers may take longer
        shards.prepare(START_SECONDS)
        tagger.model = splitting_of(tagger.model).connected(written.load_front_end(), shards)
        tagger.model.attach_labels(tagger.labels_)
        warm_up(tagger)
        shards.answer_seconds = self.served.answer_seconds
        return tagger

    def close(self) -> None:
        """Disconnect from the cluster."""
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
                f"the processes of {model} must be on the cluster, but are not: the cluster or the supervisor was "
                "restarted; start the server again"
            ) from error
