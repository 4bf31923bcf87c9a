"""Progress on stderr with a rate per second: a bar on a terminal, lines elsewhere."""

import sys
import time
from dataclasses import dataclass
from typing import Any, Self

from labelspace.report.terminal import printable

LINE_INTERVAL = 10.0  # seconds between two lines of a step where there is no terminal
BAR_WIDTH = 24  # characters; with the text beside it, it fits into 80 columns


@dataclass
class StepState:
    """Start and current position of a step."""

    start_time: float  # seconds
    start: int
    done: int
    total: int

    def rate(self, now: float) -> str:
        """Items per second since the start; empty where it is unknown or the total is 1.

        >>> StepState(start_time=10.0, start=1_000, done=52_000, total=90_000).rate(now=11.0)
        '51,000 per second'
        >>> StepState(start_time=10.0, start=0, done=0, total=90_000).rate(now=11.0)
        ''
        """
        if self.total < 2 or self.done <= self.start or now <= self.start_time:
            return ""
        rate = float(f"{(self.done - self.start) / (now - self.start_time):.2g}")  # the other digits are noise
        return f"{rate:,.0f} per second" if rate >= 10 else f"{rate:g} per second"


class StepProgress:
    """A context whose instance is a ``labelspace.types.Progress``: call it as ``progress(step, done, total)``."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self._bars: Any = None
        self._tasks: dict[str, Any] = {}
        self._last_line: dict[str, float] = {}
        self._states: dict[str, StepState] = {}

    def __enter__(self) -> Self:
        if not self.quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (
                TextColumn("{task.description}", markup=False), BarColumn(BAR_WIDTH), MofNCompleteColumn(),
                TimeElapsedColumn(), TextColumn("{task.fields[rate]}"),
            )  # fmt: skip
            self._bars = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def __call__(self, step: str, done: int, total: int) -> None:
        """Show the progress of a step."""
        if self.quiet:
            return
        step, now = printable(step), time.monotonic()
        state = self._states.get(step)
        restarts = state is None or done < state.done or total != state.total
        if state is None or restarts:
            state = self._states[step] = StepState(now, done, done, total)
        state.done = done
        if self._bars is not None:
            if step not in self._tasks:
                self._tasks[step] = self._bars.add_task(step, total=total, rate="")
            elif restarts:
                self._bars.reset(self._tasks[step], total=total)  # and its elapsed time
            self._bars.update(self._tasks[step], completed=done, total=total, rate=state.rate(now))
            return
        if done >= total or now - self._last_line.get(step, -LINE_INTERVAL) >= LINE_INTERVAL:
            self._last_line[step] = now
            rate = state.rate(now)
            sys.stderr.write(f"{step}: {done:,} of {total:,}{f' ({rate})' if rate else ''}\n")
            sys.stderr.flush()
