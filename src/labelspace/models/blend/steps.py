"""The steps of the training, reported as one: the current step, the share of the whole, and the seconds left.

A step is one member on some documents. A member is expected to take the same time per document as before: the first
fold predicts the other folds and the training on all documents. A member that was not trained yet is guessed by
``USUAL_COSTS``.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from labelspace.types import OverallProgress, Progress

USUAL_COSTS = {"neighbors": 1.0, "lexical": 1.0}
"""Relative costs of methods that cost less than ``USUAL_COST``; not used after a method was measured."""
USUAL_COST = 4.0
KNOWN_FROM = 0.1  # share of its first training after which a member's seconds are extrapolated
PARTS = 1000  # a plain ``Progress`` counts the whole in these parts


@dataclass(frozen=True)
class Step:
    """A member, or the stacking model, that is trained on some documents."""

    phase: str  # such as "fold 2 of 5"
    name: str
    n_documents: int

    def __str__(self) -> str:
        return f"{self.phase}: {self.name}"


class Steps:
    """All steps in their order, one of them at a time."""

    def __init__(
        self, steps: Sequence[Step], progress: Progress, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.steps, self.progress, self.clock = list(steps), progress, clock
        self.at = 0  # the step that is running, or comes next
        self.taken: dict[int, float] = {}  # seconds of steps that were measured
        self._started, self._fraction, self._share = 0.0, 0.0, 0.0

    def skip(self, seconds: float | None = None) -> None:
        """Skip the next step, which was done before and took these seconds, if known."""
        self._finish(seconds)

    @contextmanager
    def running(self) -> Iterator[Progress]:
        """Run the next step; the step reports to the yielded function."""
        self._started, self._fraction, main = self.clock(), 0.0, ""

        def report(step: str, done: int, total: int) -> None:
            nonlocal main
            main = main or step  # later ones are short: an index is built, for one
            if step == main and total > 0:
                self._fraction = min(max(self._fraction, done / total), 1.0)
            self._report()

        self._report()
        yield report
        self._finish(self.clock() - self._started)

    def share_done(self) -> float | None:
        """Return the share of the whole that is done; None as long as a member was never measured."""
        rates = self._rates(0.0)
        if any(step.name not in rates for step in self.steps[:-1]):
            return None
        costs = self._costs(rates)
        return sum(costs[: self.at]) / sum(costs)

    def drop_next(self, n: int = 1) -> None:
        """Leave out the next steps."""
        del self.steps[self.at : self.at + n]

    @property
    def last_seconds(self) -> float:
        """The seconds of the step before."""
        return self.taken.get(self.at - 1, 0.0)

    def _finish(self, seconds: float | None) -> None:
        if seconds is not None:
            self.taken[self.at] = seconds
        self.at += 1
        if self.at == len(self.steps):
            self._say(self.steps[-1], 1.0, 0.0)

    def _report(self) -> None:
        """Report the share that is done; it never falls, even if a step takes longer than expected."""
        elapsed = self.clock() - self._started
        rates = self._rates(elapsed)
        costs = self._costs(rates)
        if rates:
            costs[self.at] = max(costs[self.at], elapsed)
        done = sum(costs[: self.at]) + (elapsed if rates else self._fraction * costs[self.at])
        self._share = max(self._share, done / sum(costs)) if sum(costs) else self._share
        self._say(self.steps[self.at], self._share, max(sum(costs) - done, 0.0) if rates else None)

    def _rates(self, elapsed: float) -> dict[str, float]:
        """Return the seconds per document of each name that was measured, or has run long enough to extrapolate."""
        seconds, documents = defaultdict[str, float](float), defaultdict[str, int](int)
        for at, taken in self.taken.items():
            seconds[self.steps[at].name] += taken
            documents[self.steps[at].name] += max(self.steps[at].n_documents, 1)
        now = self.steps[self.at]
        if now.name not in seconds and self._fraction >= KNOWN_FROM:
            seconds[now.name], documents[now.name] = elapsed / self._fraction, max(now.n_documents, 1)
        return {name: seconds[name] / documents[name] for name in seconds}

    def _costs(self, rates: dict[str, float]) -> list[float]:
        """Return the seconds of every step, measured or expected; without a measurement, in an arbitrary unit."""
        usual = sum(map(_usual_cost, rates))
        unit = sum(rates.values()) / usual if rates else 1.0
        expected = [rates.get(step.name, unit * _usual_cost(step.name)) * step.n_documents for step in self.steps]
        return [self.taken.get(at, cost) for at, cost in enumerate(expected)]

    def _say(self, step: Step, share: float, seconds_left: float | None) -> None:
        progress: object = self.progress
        if isinstance(progress, OverallProgress):
            progress.overall(step.phase, str(step), share, seconds_left)
        else:
            self.progress(str(step), int(PARTS * share), PARTS)


def _usual_cost(name: str) -> float:
    return USUAL_COSTS.get(name.partition(":")[0], USUAL_COST)
