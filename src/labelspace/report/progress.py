"""Progress of long work on stderr, with how many a second are done: a bar on a terminal, a line a step elsewhere."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

LINE_EVERY = 10.0  # seconds between two lines of one step where there is no terminal
BAR = 24  # characters of a bar: what stands beside it fits into 80 columns


@dataclass
class Pace:
    """Where a step began, and where it stands."""

    since: float  # seconds of the clock
    begun: int
    done: int
    total: int

    def goes_on(self, done: int, total: int) -> bool:
        """Whether this is the same step; one that jumps back, or has another total, has begun anew."""
        return done >= self.done and total == self.total

    def rate(self, now: float) -> str:
        """How many a second since the step began; nothing where that is not known, or there is but one to do.

        >>> Pace(since=10.0, begun=1_000, done=52_000, total=90_000).rate(now=11.0)
        '51,000 a second'
        >>> Pace(since=10.0, begun=0, done=0, total=90_000).rate(now=11.0)
        ''
        """
        if self.total < 2 or self.done <= self.begun or now <= self.since:
            return ""
        rate = float(f"{(self.done - self.begun) / (now - self.since):.2g}")  # two figures: the rest is noise
        return f"{rate:,.0f} a second" if rate >= 10 else f"{rate:g} a second"


class StepProgress:
    """A context whose instance is a ``labelspace.types.Progress``: call it as ``progress(step, done, total)``."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self._bars: Any = None
        self._tasks: dict[str, Any] = {}
        self._last: dict[str, float] = {}
        self._paces: dict[str, Pace] = {}

    def __enter__(self) -> Self:
        if not self.quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (
                TextColumn("{task.description}"), BarColumn(BAR), MofNCompleteColumn(), TimeElapsedColumn(),
                TextColumn("{task.fields[rate]}"),
            )  # fmt: skip
            self._bars = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

    def __call__(self, step: str, done: int, total: int) -> None:
        """Show where a step stands."""
        if self.quiet:
            return
        now = time.monotonic()
        pace = self._paces.get(step)
        anew = pace is None or not pace.goes_on(done, total)
        if pace is None or anew:
            pace = self._paces[step] = Pace(now, done, done, total)
        pace.done = done
        if self._bars is not None:
            if step not in self._tasks:
                self._tasks[step] = self._bars.add_task(step, total=total, rate="")
            elif anew:
                self._bars.reset(self._tasks[step], total=total)  # its clock too
            self._bars.update(self._tasks[step], completed=done, total=total, rate=pace.rate(now))
            return
        if done >= total or now - self._last.get(step, -LINE_EVERY) >= LINE_EVERY:
            self._last[step] = now
            rate = pace.rate(now)
            sys.stderr.write(f"{step}: {done:,} of {total:,}{f' ({rate})' if rate else ''}\n")
            sys.stderr.flush()
