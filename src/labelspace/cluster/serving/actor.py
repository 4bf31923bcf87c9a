"""Hold a shard, or a whole model, in a process of the cluster that answers the front end.

The process loads parts by path, memory-mapped, and keeps the last two: the served version, and the next one. So after
a restart, on any machine, it needs nothing but the next call. The next version is loaded on a thread of its own, while
another thread answers calls of the old one, one at a time.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

from threadpoolctl import threadpool_limits

from labelspace import store
from labelspace.cluster.serving.shard_folder import SavedPart, load_part
from labelspace.cluster.shared_data import Packed, pack, unpack
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
            raise ClusterError(
                f"all machines must see the same model, but {socket.gethostname()} cannot load it: {error}"
            ) from error


def remote_class() -> Any:  # noqa: ANN401 - of Ray
    """Return ``PartActor`` as a class of Ray actors: one thread loads, another answers."""
    ray: Any = import_module("ray")

    class Process(PartActor):
        @ray.method(concurrency_group=LOADING)  # type: ignore[untyped-decorator]
        def prepare(self, part: SavedPart) -> str:
            return super().prepare(part)

    return ray.remote(concurrency_groups={LOADING: 1})(Process)


def load_shard(part: SavedPart) -> Any:  # noqa: ANN401 - of the class of the shard
    """Load a shard."""
    return load_part(part)


def load_replica(part: SavedPart) -> Tagger:
    """Load a whole model, of the version that the front end has, and warm it up."""

    def read() -> Tagger:
        if store.read_manifest(part.folder)["checksum"] != part.checksum:
            raise ModelError(f"{part.folder} must have the served version, but has a different one; copy it there too")
        return Tagger.load(part.folder)

    tagger = store.read_unreplaced(part.folder, read)
    warm_up(tagger)
    return tagger


def warm_up(tagger: Tagger) -> None:
    """Tag a text once: on a new machine, compiling kernels takes longer than an answer may take."""
    if not tagger.ready_made:  # otherwise the server refuses the model
        tagger.answers([WARM_UP], 1)
