"""How the door asks processes of a cluster: all shards at once, or the replica with the least to do.

Ray starts again what was lost, on another machine where there is room. Meanwhile a question to a shard waits, and one
to a replica goes to another.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from labelspace.cluster.serving.shard_folder import SavedPart
from labelspace.cluster.shared_data import pack, unpack
from labelspace.errors import ClusterError, LabelspaceError
from labelspace.types import Bools

ANSWER_SECONDS = 30.0  # for an answer, as a request to the server has
LOST_SECONDS = 10.0  # for what was lost to be started again
PAUSE = 0.1  # before what was lost is asked again
SHARD, REPLICA = "every shard of the model", "a replica of the model"


class LostError(Exception):
    """Ray says that a process, its machine or what it answered was lost."""


class LateError(ClusterError):
    """An answer takes too long; who gives it may be busy."""


class Wait:
    """The time that a question has: for its answer, and once something was lost, for that to be back."""

    def __init__(self, what: str, seconds: float, lost_seconds: float = LOST_SECONDS) -> None:
        self._what, self._seconds, self._lost_seconds = what, seconds, min(seconds, lost_seconds)
        self._deadline, self._back = time.monotonic() + seconds, math.inf

    @property
    def left(self) -> float:
        """Seconds until the answer must be there."""
        return max(self._deadline - time.monotonic(), 0.0)

    def late(self) -> LateError:
        """What a client is told of an answer that takes too long."""
        return LateError(
            f"{self._what} must answer within {self._seconds:g} s, but takes longer; try again, or send less"
        )

    def for_lost(self) -> None:
        """Pause before what was lost is asked again; an error where it has been waited for long enough."""
        now = time.monotonic()
        self._back = min(self._back, now + self._lost_seconds)
        if now >= min(self._back, self._deadline):
            raise ClusterError(
                f"{self._what} must answer within {self._lost_seconds:g} s, but does not: a process or machine of the "
                "cluster was lost, and is started again; try again"
            )
        time.sleep(PAUSE)


def result_of(asked: Any, wait: Wait) -> Any:  # noqa: ANN401 - a reference, and what it refers to
    """What an actor returned; an error of the library as it was raised there."""
    ray: Any = import_module("ray")
    try:
        return ray.get(asked, timeout=wait.left)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, LabelspaceError):
            raise error.cause from None
        raise
    except ray.exceptions.GetTimeoutError:  # of what was lost, Ray says so
        raise wait.late() from None
    except ray.exceptions.RayError as error:
        raise LostError from error


class RemoteShards:
    """The shards of a model in processes of a cluster; one that was lost is waited for."""

    def __init__(
        self, actors: Sequence[Any], parts: Sequence[SavedPart], answer_seconds: float = ANSWER_SECONDS
    ) -> None:
        self._actors, self._parts, self.answer_seconds = actors, parts, answer_seconds

    def prepare(self, seconds: float) -> None:
        """Have all load their parts, and wait for them."""
        self._all(lambda actor, part: actor.prepare.remote(part), Wait(SHARD, seconds, seconds))

    def ask(self, method: str, *arguments: Any, mask: Any = None) -> list[Any]:  # noqa: ANN401 - of the method
        """What a method of each shard returns."""
        packed, wait = pack((arguments, {})), Wait(SHARD, self.answer_seconds)
        found = self._all(lambda actor, part: actor.ask.remote(part, method, packed, mask), wait)
        return [unpack(each, copy=True) for each in found]

    def _all(self, call: Callable[[Any, SavedPart], Any], wait: Wait) -> list[Any]:
        """What a call of each actor returns; it is made again where one was lost."""
        found: dict[int, Any] = {}
        while True:
            left = [number for number in range(len(self._actors)) if number not in found]
            asked = [call(self._actors[each], self._parts[each]) for each in left]
            for number, reference in zip(left, asked, strict=True):
                with suppress(LostError):
                    found[number] = result_of(reference, wait)
            if len(found) == len(self._actors):
                return [found[number] for number in sorted(found)]
            wait.for_lost()

    def share(self, mask: Bools) -> Any:  # noqa: ANN401 - a reference
        """Put a mask into the object store."""
        ray: Any = import_module("ray")
        return ray.put(pack(mask))


class Replicas:
    """Processes that each hold a whole model; one that has not loaded it, or was lost, gets no question before."""

    def __init__(self, actors: Sequence[Any], part: SavedPart, answer_seconds: float = ANSWER_SECONDS) -> None:
        self._actors, self._part, self._answer_seconds = actors, part, answer_seconds
        self._busy, self._asked = [0] * len(actors), [0] * len(actors)  # questions under way, and so far
        # Of replicas that have not loaded the model, or were lost: what ends when they have.
        self._loading = {number: actor.prepare.remote(part) for number, actor in enumerate(actors)}
        self._late: list[tuple[int, Any]] = []  # replicas, and answers that nobody waits for any more
        self._lock = threading.Lock()

    def wait_for_first(self, seconds: float) -> None:
        """Wait until a replica has loaded the model; where none can, the error says why."""
        ray: Any = import_module("ray")
        wait, waiting = Wait(REPLICA, seconds), list(self._loading.values())
        failed: ClusterError = wait.late()
        while waiting:
            done, waiting = ray.wait(waiting, timeout=wait.left)
            if not done:
                raise wait.late()
            try:
                result_of(done[0], wait)
                return
            except LostError:
                failed = ClusterError("a replica must load the model, but its process was lost meanwhile; try again")
            except ClusterError as error:
                failed = error
        raise failed

    def ask(self, method: str, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - of the method
        """What a method of the model returns; another replica is asked where one was lost."""
        packed, wait = pack((arguments, named)), Wait(REPLICA, self._answer_seconds)
        while True:
            number = self._take()
            if number is None:
                wait.for_lost()
                continue
            try:
                asked = self._actors[number].ask.remote(self._part, method, packed)
                return unpack(result_of(asked, wait), copy=True)
            except LateError:
                with self._lock:
                    self._busy[number] += 1  # until it has answered
                    self._late.append((number, asked))
                raise
            except LostError:
                with self._lock:
                    self._loading.setdefault(number, self._actors[number].prepare.remote(self._part))
            finally:
                with self._lock:
                    self._busy[number] -= 1

    def _take(self) -> int | None:
        """The replica with the fewest questions under way; None where all are lost."""
        with self._lock:
            self._look_for_late()
            self._look_for_lost()
            order = zip(self._busy, self._asked, range(len(self._busy)), strict=True)
            number = min((each for each in order if each[-1] not in self._loading), default=(0, 0, None))[-1]
            if number is not None:
                self._busy[number] += 1
                self._asked[number] += 1
            return number

    def _look_for_late(self) -> None:
        """Those that have answered at last are less busy."""
        ray: Any = import_module("ray")
        for number, asked in self._late.copy():
            if ray.wait([asked], timeout=0)[0]:
                self._late.remove((number, asked))
                self._busy[number] -= 1

    def _look_for_lost(self) -> None:
        """Take replicas that have loaded the model; those that were lost once more are asked to."""
        ray: Any = import_module("ray")
        for number, reference in list(self._loading.items()):
            if ray.wait([reference], timeout=0)[0]:
                try:
                    ray.get(reference)
                    del self._loading[number]
                except ray.exceptions.RayError:
                    self._loading[number] = self._actors[number].prepare.remote(self._part)
