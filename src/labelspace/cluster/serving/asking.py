"""How the door asks processes of a cluster: all shards at once, or the replica with the least to do.

Ray starts again what was lost, on another machine where there is room. Meanwhile a question to a shard waits, and one
to a replica goes to another.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from labelspace.cluster.serving.shard_folder import SavedPart
from labelspace.cluster.shared_data import pack, unpack
from labelspace.errors import ClusterError, LabelspaceError
from labelspace.types import Bools

WAIT_SECONDS = 10.0  # for an answer, while what was lost is started again
PAUSE = 0.1  # before what was lost is asked again


class LostError(Exception):
    """A process or its machine was lost, or does not answer in time."""


def answer_of(asked: Any, deadline: float) -> Any:  # noqa: ANN401 - a reference, and what it refers to
    """What an actor answered; an error of the library as it was raised there."""
    ray: Any = import_module("ray")
    try:
        return unpack(ray.get(asked, timeout=max(deadline - time.monotonic(), 0.0)), copy=True)
    except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError) as error:
        raise LostError from error
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, LabelspaceError):
            raise error.cause from None
        raise


def no_answer(what: str, seconds: float) -> ClusterError:
    """What a client is told."""
    return ClusterError(
        f"{what} must answer within {seconds:g} s, but does not: a process or machine of the cluster was lost, and is "
        "started again; try again"
    )


class RemoteShards:
    """The shards of a model in processes of a cluster; one that was lost is waited for."""

    def __init__(self, actors: Sequence[Any], parts: Sequence[SavedPart], wait_seconds: float = WAIT_SECONDS) -> None:
        self._actors, self._parts, self._wait_seconds = actors, parts, wait_seconds

    def ask(self, method: str, *arguments: Any, mask: Any = None) -> list[Any]:  # noqa: ANN401 - of the method
        """What a method of each shard returns."""
        deadline, packed = time.monotonic() + self._wait_seconds, pack((arguments, {}))
        found: dict[int, Any] = {}
        while True:
            left = [number for number in range(len(self._actors)) if number not in found]
            asked = [self._actors[each].ask.remote(self._parts[each], method, packed, mask) for each in left]
            for number, reference in zip(left, asked, strict=True):
                with suppress(LostError):
                    found[number] = answer_of(reference, deadline)
            if len(found) == len(self._actors):
                return [found[number] for number in sorted(found)]
            if time.monotonic() > deadline:
                raise no_answer("every shard of the model", self._wait_seconds)
            time.sleep(PAUSE)

    def share(self, mask: Bools) -> Any:  # noqa: ANN401 - a reference
        """Put a mask into the object store."""
        ray: Any = import_module("ray")
        return ray.put(pack(mask))


class Replicas:
    """Processes that each hold a whole model; one that was lost gets no question before it has loaded it again."""

    def __init__(self, actors: Sequence[Any], part: SavedPart, wait_seconds: float = WAIT_SECONDS) -> None:
        self._actors, self._part, self._wait_seconds = actors, part, wait_seconds
        self._busy, self._asked = [0] * len(actors), [0] * len(actors)  # questions under way, and so far
        self._loading: dict[int, Any] = {}  # of replicas that were lost, what ends when they are back
        self._lock = threading.Lock()

    def ask(self, method: str, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - of the method
        """What a method of the model returns; another replica is asked where one was lost."""
        deadline, packed = time.monotonic() + self._wait_seconds, pack((arguments, named))
        while time.monotonic() < deadline:
            number = self._take()
            if number is None:
                time.sleep(PAUSE)
                continue
            try:
                return answer_of(self._actors[number].ask.remote(self._part, method, packed), deadline)
            except LostError:
                with self._lock:
                    self._loading.setdefault(number, self._actors[number].prepare.remote(self._part))
            finally:
                with self._lock:
                    self._busy[number] -= 1
        raise no_answer("a replica of the model", self._wait_seconds)

    def _take(self) -> int | None:
        """The replica with the fewest questions under way; None where all are lost."""
        with self._lock:
            self._look_for_lost()
            order = zip(self._busy, self._asked, range(len(self._busy)), strict=True)
            number = min((each for each in order if each[-1] not in self._loading), default=(0, 0, None))[-1]
            if number is not None:
                self._busy[number] += 1
                self._asked[number] += 1
            return number

    def _look_for_lost(self) -> None:
        """Take replicas back that have loaded the model again; those that were lost once more are asked to."""
        ray: Any = import_module("ray")
        for number, reference in list(self._loading.items()):
            if ray.wait([reference], timeout=0)[0]:
                try:
                    ray.get(reference)
                    del self._loading[number]
                except ray.exceptions.RayError:
                    self._loading[number] = self._actors[number].prepare.remote(self._part)
