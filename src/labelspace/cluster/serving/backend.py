"""Serve on a cluster: the supervisor starts actors that hold a shard or a model, and each worker calls them.

An actor loads parts by path, memory-mapped, and keeps the last two: the served version, and the next one. So after a
restart, on any machine, it needs nothing but the next call. The next version is loaded on a thread of its own, while
another thread answers calls of the old one, one at a time. Actors have names, by which workers find them, and end with
the process that started them.
"""

import os
import socket
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from labelspace import store
from labelspace.cluster.connection import CLIENT, Cluster, check_shared, connect
from labelspace.cluster.executor import Packed, pack, unpack
from labelspace.cluster.serving.remote_calls import ANSWER_SECONDS, RemoteShards, Replicas, ReplicatedTagger
from labelspace.cluster.serving.shard_folder import SavedPart, load_part, saved_model, shards_of, write_shards
from labelspace.errors import ClusterError, LabelspaceError, ModelError
from labelspace.kernels.threads import THREADS_VARIABLE
from labelspace.tagger import Tagger

KEPT = 2  # versions in memory: the served one and the next
LOADING = "loading"  # the calls that have a thread of their own
WARM_UP = "A text that is long enough to have every kernel compiled, and most pages read, before anybody waits for it."


class PartActor:
    """Hold the shards or models that ``load`` makes from saved parts."""

    def __init__(self, load: Callable[[SavedPart], Any]) -> None:
        os.environ[THREADS_VARIABLE] = "1"  # a call is too short for several threads, and Ray gave the process one CPU
        threadpool_limits(1)
        self._load = load
        self._kept: dict[SavedPart, Any] = {}  # the last one last
        self._lock, self._loading = threading.Lock(), threading.Lock()  # of what is kept, and of the thread that loads

    def call(self, part: SavedPart, method: str, arguments: Packed, mask: Packed | None = None) -> Packed:
        """Return what a method of the part returns; ``mask`` is its argument ``allowed``."""
        held = self._held(part)
        positional, named = unpack(arguments, copy=True)
        if mask is not None:
            named["allowed"] = unpack(mask, copy=True)
        return pack(getattr(held, method)(*positional, **named))

    def prepare(self, part: SavedPart) -> str:
        """Load a part before it is called; return the name of this machine."""
        self._held(part)
        return socket.gethostname()

    def _held(self, part: SavedPart) -> Any:  # noqa: ANN401 - what ``load`` gave
        found = self._keep(part)
        if found is None:
            with self._loading:
                found = self._keep(part)  # perhaps the other thread has loaded it meanwhile
                if found is None:
                    found = self._keep(part, self._loaded(part))
        return found

    def _keep(self, part: SavedPart, loaded: Any = None) -> Any:  # noqa: ANN401 - what ``load`` gave
        """Return the kept or the newly loaded part, and mark it as the last used; return None if there is none."""
        with self._lock:
            found = self._kept.pop(part, loaded)
            if found is not None:
                self._kept[part] = found
            while len(self._kept) > KEPT:
                del self._kept[next(iter(self._kept))]
            return found

    def _loaded(self, part: SavedPart) -> Any:  # noqa: ANN401 - what ``load`` gave
        try:
            return self._load(part)
        except (LabelspaceError, OSError) as error:
            rule = "all machines must see the same model"
            raise ClusterError(f"{rule}, but {socket.gethostname()} cannot load it: {error}") from error


def remote_class() -> Any:  # noqa: ANN401 - of Ray
    """Return ``PartActor`` as a class of Ray actors: one thread loads, another answers."""
    ray: Any = import_module("ray")

    class Process(PartActor):
        @ray.method(concurrency_group=LOADING)  # type: ignore[untyped-decorator]
        def prepare(self, part: SavedPart) -> str:
            return super().prepare(part)

    return ray.remote(concurrency_groups={LOADING: 1})(Process)


def load_replica(part: SavedPart) -> Tagger:
    """Load a whole model, of the version that the front end has, and warm it up."""
    saved, tagger = read_version(part.folder)
    if saved.checksum != part.checksum:
        raise ModelError(f"{part.folder} must have the served version, but has a different one; copy it there too")
    warm_up(tagger)
    return tagger


def warm_up(tagger: Tagger) -> None:
    """Tag a text once: on a new machine, compiling kernels takes longer than an answer may take."""
    if not tagger.ready_made:  # otherwise the server refuses the model
        tagger.answers([WARM_UP], 1)


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

    def actor_names(self, model: str) -> list[str]:
        """Return the names of the actors of a model, in the order of its parts."""
        return [f"{model}-{number}" for number in range(self.n_actors)]


@contextmanager
def serving(cluster: Cluster, models: Mapping[str, str], n_actors: int, sharded: bool) -> Iterator[ServingCluster]:
    """Split the models if ``sharded``, and start the actors of each; they end with the block."""
    ray: Any = import_module("ray")
    wanted = len(models) * n_actors
    if wanted > cluster.n_cpus:
        rule = f"a shard or replica needs a CPU, so these need {wanted}"
        raise ClusterError(f"{rule}, but the cluster has {cluster.described}; ask for fewer, or add machines")
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
    load: Callable[[SavedPart], Any] = load_part if served.sharded else load_replica
    remote = remote_class().options
    names = served.actor_names(model)
    actors = [remote(name=name, namespace=served.namespace, **resources).remote(load) for name in names]
    try:
        ready = [actor.prepare.remote(part) for actor, part in zip(actors, parts, strict=True)]
        ray.get(ready, timeout=START_SECONDS)
    except ray.exceptions.RayTaskError as error:
        raise error.cause if isinstance(error.cause, ClusterError) else error from None
    except ray.exceptions.RayError as error:
        rule = f"the cluster must run {len(parts)} processes of {model}"
        problem = f"does not within {START_SECONDS:g} s ({type(error).__name__})"
        raise ClusterError(f"{rule}, but {problem}; see `ray status`, and ask for fewer or add machines") from error
    return actors


class ClusterBackend:
    """Load models of a worker that call actors; connect to the cluster when the first is loaded."""

    def __init__(self, served: ServingCluster) -> None:
        self.served = served
        self._stack = ExitStack()
        self._lock = threading.Lock()

    def load(self, name: str, folder: Path) -> Tagger:
        """Load a model whose shards or replicas answer; they load its version too."""
        with self._lock:
            if not import_module("ray").is_initialized():
                self._stack.enter_context(connect(self.served.address))
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
        tagger.model = written.connected(shards)
        tagger.model.attach_labels(tagger.labels_)
        warm_up(tagger)
        shards.answer_seconds = self.served.answer_seconds
        return tagger

    def close(self) -> None:
        """Disconnect from the cluster."""
        self._stack.close()

    def _actors(self, model: str) -> list[Any]:
        get_actor = import_module("ray").get_actor
        try:
            return [get_actor(name, namespace=self.served.namespace) for name in self.served.actor_names(model)]
        except ValueError as error:
            problem = "are not: the cluster or the supervisor was restarted; start the server again"
            raise ClusterError(f"the processes of {model} must be on the cluster, but {problem}") from error
