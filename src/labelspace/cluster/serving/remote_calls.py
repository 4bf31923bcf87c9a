"""Call processes of a cluster: all shards of a model at once, or the replica with the fewest calls.

Ray restarts a lost process, on another machine if there is room. Meanwhile a call of a shard waits, and a call of a
replica goes to another one.
"""

import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, Self, Unpack

from labelspace.cluster.executor import pack, unpack
from labelspace.cluster.serving.shard_folder import SavedPart
from labelspace.data.objects.inputs import Documents
from labelspace.errors import ClusterError, LabelspaceError
from labelspace.explain import Explanation
from labelspace.labels.tag_options import TagOptions
from labelspace.tagger import Tagger, Text
from labelspace.tagger.answers import Answers
from labelspace.types import Bools, Csr, TopK

ANSWER_SECONDS = 30.0  # for an answer; the default of a request to the server
LOST_SECONDS = 10.0  # for a lost process to be restarted
PAUSE = 0.1  # seconds before a lost process is called again
SHARD, REPLICA = "every shard of the model", "a replica of the model"


class LostError(Exception):
    """Ray reports that a process, its machine or its answer was lost."""


class LateError(ClusterError):
    """An answer takes too long; its process may be busy."""


class Wait:
    """The time that a call has: for its answer, and after a loss, for the process to be back."""

    def __init__(self, what: str, seconds: float, lost_seconds: float = LOST_SECONDS) -> None:
        self._what = what
        self._seconds = seconds
        self._lost_seconds = min(seconds, lost_seconds)
        self._deadline = time.monotonic() + seconds
        self._back = math.inf

    @property
    def left(self) -> float:
        """The seconds until the answer must be there."""
        return max(self._deadline - time.monotonic(), 0.0)

    def late(self) -> LateError:
        """Return the error for an answer that takes too long."""
        rule = f"{self._what} must answer within {self._seconds:g} s"
        return LateError(f"{rule}, but takes longer; try again, or send less")

    def for_lost(self) -> None:
        """Pause before a lost process is called again; raise ClusterError if it has had long enough."""
        now = time.monotonic()
        self._back = min(self._back, now + self._lost_seconds)
        if now >= min(self._back, self._deadline):
            problem = "does not: a process or machine of the cluster was lost, and is started again"
            raise ClusterError(f"{self._what} must answer within {self._lost_seconds:g} s, but {problem}; try again")
        time.sleep(PAUSE)


def result_of(reference: Any, wait: Wait) -> Any:  # noqa: ANN401 - a reference, and what it refers to
    """Return what an actor returned; an error of the library is raised as it was raised there."""
    ray: Any = import_module("ray")
    try:
        return ray.get(reference, timeout=wait.left)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, LabelspaceError):
            raise error.cause from None
        raise
    except ray.exceptions.GetTimeoutError:  # for a lost process, Ray raises another error
        raise wait.late() from None
    except ray.exceptions.RayError as error:
        raise LostError from error


class RemoteShards:
    """The shards of a model in processes of a cluster; a call waits for a lost one."""

    def __init__(
        self, actors: Sequence[Any], parts: Sequence[SavedPart], answer_seconds: float = ANSWER_SECONDS
    ) -> None:
        self._actors, self._parts, self.answer_seconds = actors, parts, answer_seconds

    def prepare(self, seconds: float) -> None:
        """Let all shards load their parts, and wait for them."""
        self._all(lambda actor, part: actor.prepare.remote(part), Wait(SHARD, seconds, seconds))

    def call(self, method: str, *arguments: Any, mask: Any = None) -> list[Any]:  # noqa: ANN401 - of the method
        """Call a method of each shard, and return the answers."""
        packed = pack((arguments, {}))
        wait = Wait(SHARD, self.answer_seconds)
        found = self._all(lambda actor, part: actor.call.remote(part, method, packed, mask), wait)
        return [unpack(each, copy=True) for each in found]

    def _all(self, call: Callable[[Any, SavedPart], Any], wait: Wait) -> list[Any]:
        """Return what a call of each actor returns; the call is repeated for lost actors."""
        found: dict[int, Any] = {}
        while True:
            left = [number for number in range(len(self._actors)) if number not in found]
            references = [call(self._actors[each], self._parts[each]) for each in left]
            for number, reference in zip(left, references, strict=True):
                with suppress(LostError):
                    found[number] = result_of(reference, wait)
            if len(found) == len(self._actors):
                return [found[number] for number in sorted(found)]
            wait.for_lost()

    def share(self, mask: Bools) -> Any:  # noqa: ANN401 - a reference
        """Put a mask into the object store."""
        return import_module("ray").put(pack(mask))


class Replicas:
    """Processes that each hold a whole model; a process is called only once it has loaded the model."""

    def __init__(self, actors: Sequence[Any], part: SavedPart, answer_seconds: float = ANSWER_SECONDS) -> None:
        self._actors, self._part, self._answer_seconds = actors, part, answer_seconds
        self._in_progress = [0] * len(actors)  # calls of each replica
        self._n_calls = [0] * len(actors)  # so far
        # By replica that is loading the model, perhaps after a loss: a reference that is ready once it has.
        self._loading = {number: actor.prepare.remote(part) for number, actor in enumerate(actors)}
        self._late: list[tuple[int, Any]] = []  # replicas, and references of answers that came too late
        self._lock = threading.Lock()

    def wait_for_first(self, seconds: float) -> None:
        """Wait until a replica has loaded the model; if none can, raise the reason."""
        wait = Wait(REPLICA, seconds)
        waiting = list(self._loading.values())
        failed: ClusterError = wait.late()
        while waiting:
            done, waiting = import_module("ray").wait(waiting, timeout=wait.left)
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

    def call(self, method: str, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - of the method
        """Return what a method of the model returns; after a loss, another replica is called."""
        packed = pack((arguments, named))
        wait = Wait(REPLICA, self._answer_seconds)
        while True:
            number = self._take()
            if number is None:
                wait.for_lost()
                continue
            try:
                reference = self._actors[number].call.remote(self._part, method, packed)
                return unpack(result_of(reference, wait), copy=True)
            except LateError:
                with self._lock:
                    self._in_progress[number] += 1  # counted until it has answered
                    self._late.append((number, reference))
                raise
            except LostError:
                with self._lock:
                    self._loading.setdefault(number, self._actors[number].prepare.remote(self._part))
            finally:
                with self._lock:
                    self._in_progress[number] -= 1

    def _take(self) -> int | None:
        """Choose the replica with the fewest calls in progress; return None if all are lost."""
        with self._lock:
            self._look_for_late()
            self._look_for_lost()
            order = zip(self._in_progress, self._n_calls, range(len(self._in_progress)), strict=True)
            number = min((each for each in order if each[-1] not in self._loading), default=(0, 0, None))[-1]
            if number is not None:
                self._in_progress[number] += 1
                self._n_calls[number] += 1
            return number

    def _look_for_late(self) -> None:
        """Count calls as ended whose late answers have come."""
        for number, reference in self._late.copy():
            if import_module("ray").wait([reference], timeout=0)[0]:
                self._late.remove((number, reference))
                self._in_progress[number] -= 1

    def _look_for_lost(self) -> None:
        """Use replicas that have loaded the model; let replicas that were lost again load it again."""
        ray: Any = import_module("ray")
        for number, reference in list(self._loading.items()):
            if ray.wait([reference], timeout=0)[0]:
                try:
                    ray.get(reference)
                    del self._loading[number]
                except ray.exceptions.RayError:
                    self._loading[number] = self._actors[number].prepare.remote(self._part)


class ReplicatedTagger(Tagger):
    """A tagger that sends texts to replicas on other machines; labels and their names are those of the model here."""

    _replicas: Replicas

    @classmethod
    def of(cls, tagger: Tagger, replicas: Replicas) -> Self:
        """Return a tagger with replicas; the model is memory-mapped here too, but hardly read."""
        made = cls(tagger.model)
        made.__dict__.update(tagger.__dict__)
        made._replicas = replicas
        return made

    def answers(
        self, inputs: Documents, k: int = 5, *, calibrated: bool = False, **options: Unpack[TagOptions]
    ) -> Answers:
        """Return the answers of a replica."""
        found: Answers = self._replicas.call("answers", inputs, k, calibrated=calibrated, **options)
        return found

    def explain(self, text: Text | Csr, labels: Sequence[str] | None = None, k: int = 3) -> list[Explanation]:
        """Return the explanations of a replica."""
        found: list[Explanation] = self._replicas.call("explain", text, labels, k)
        return found

    def predict_members(self, inputs: Documents, k: int = 5) -> dict[str, TopK]:
        """Return the answers of the members of a replica."""
        found: dict[str, TopK] = self._replicas.call("predict_members", inputs, k)
        return found
