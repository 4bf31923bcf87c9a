"""Progress on stderr: bars on a terminal, lines elsewhere, with the rate of a step and the time left of a whole."""

import math
import sys
import time
from dataclasses import dataclass
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from labelspace.report.terminal import printable

LINE_INTERVAL = 10.0  # seconds between two lines of a step without a terminal: more would flood logs
LINE_SHARE = 0.1  # of a whole, between two lines: about ten lines for a training
OVERALL = ""  # the key of the bar of a whole
BAR_WIDTH = 24  # characters; with its text, it fits into 80 columns


@dataclass
class StepState:
    """Start and current position of a step."""

    start_time: float  # seconds
    start: int
    done: int
    total: int

    def rate(self, now: float) -> str:
        """Return the items per second since the start; empty if it is unknown or the total is 1.

        >>> StepState(start_time=10.0, start=1_000, done=52_000, total=90_000).rate(now=11.0)
        '51,000 per second'
        >>> StepState(start_time=10.0, start=0, done=0, total=90_000).rate(now=11.0)
        ''
        """
        if self.total < 2 or self.done <= self.start or now <= self.start_time:
            return ""
        rate = float(f"{(self.done - self.start) / (now - self.start_time):.2g}")  # the other digits are noise
        return f"{rate:,.0f} per second" if rate >= 10 else f"{rate:g} per second"


@dataclass
class LastLine:
    """The state of a whole when its last line was written."""

    phase: str
    share: float
    time: float  # seconds


class StepProgress:
    """A context whose instance is a ``labelspace.types.Progress``: call it as ``progress(step, done, total)``.

    It is an ``OverallProgress`` too: a whole that ``overall`` reports is one bar, or a few lines.
    """

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self._bars: Any = None
        self._tasks: dict[str, Any] = {}
        self._last_line: dict[str, float] = {}
        self._states: dict[str, StepState] = {}
        self._overall: LastLine | None = None
        self._width = 0  # of the longest description of a whole so far

    def __enter__(self) -> Self:
        if not self.quiet and sys.stderr.isatty():
            self._bars = bars()
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

    def overall(self, phase: str, step: str, share: float, seconds_left: float | None) -> None:
        """Show a training of many steps as one: what it does now, the share done, and the time left."""
        if self.quiet:
            return
        step, now = printable(step), time.monotonic()
        if self._bars is None:
            self._overall_line(phase, step, share, seconds_left, now)
        else:
            self._overall_bar(step, share, None if seconds_left is None else now + seconds_left)

    def _overall_bar(self, step: str, share: float, end: float | None) -> None:
        if OVERALL not in self._tasks:
            for key in [key for key, task in self._tasks.items() if self._bars.tasks[task].finished]:
                self._bars.update(self._tasks[key], visible=False)  # such as that of the features
            self._tasks[OVERALL] = self._bars.add_task(step, total=1.0, rate="")
        elif share < self._bars.tasks[self._tasks[OVERALL]].completed:
            self._bars.reset(self._tasks[OVERALL])  # another training
        self._width = max(self._width, len(step))  # so that the bar does not move
        self._bars.update(self._tasks[OVERALL], description=step.ljust(self._width), completed=share, end=end)

    def _overall_line(self, phase: str, step: str, share: float, seconds_left: float | None, now: float) -> None:
        """Write a line when a phase begins, or after a while, but not before a tenth more is done."""
        last = self._overall
        if share >= 1:  # the result is printed next
            self._overall = None
            return
        if last is not None and share >= last.share:
            is_due = phase != last.phase or now - last.time >= LINE_INTERVAL
            if not is_due or share < last.share + LINE_SHARE:
                return
        self._overall = LastLine(phase, share, now)
        left = f", {time_left(seconds_left)}" if seconds_left is not None else ""
        sys.stderr.write(f"{step} ({share:.0%} done{left})\n")
        sys.stderr.flush()


def time_left(seconds: float) -> str:
    """Return a time in words, in one or two units.

    >>> [time_left(seconds) for seconds in (0.2, 59, 61, 3590, 4000, 90_000)]
    ['1 s left', '59 s left', '1 min left', '1 h left', '1 h 7 min left', '25 h left']
    """
    if seconds < 60:
        return f"{max(math.ceil(seconds), 1)} s left"
    hours, minutes = divmod(round(seconds / 60), 60)
    shown = [f"{hours} h"] * (hours > 0) + [f"{minutes} min"] * (minutes > 0 and hours < 10)
    return f"{' '.join(shown)} left"


class _Done(MofNCompleteColumn):
    """A column with what is done: a count for a step, a share for a whole."""

    def render(self, task: Task) -> Text:
        if "end" not in task.fields:
            return super().render(task)
        return Text(f"{task.percentage:3.0f}%", style="progress.percentage")


class _RateOrTimeLeft(TextColumn):
    """A column with the rate of a step, or the time left of a whole, which runs on between two reports."""

    def render(self, task: Task) -> Text:
        if "end" not in task.fields:
            return super().render(task)
        end = task.fields["end"]
        return Text("" if end is None or task.finished else time_left(end - time.monotonic()))


def bars() -> Progress:
    """Return bars on stderr; a task has the field ``rate``, a text, and a whole the field ``end``: its time or None."""
    name, rate = TextColumn("{task.description}", markup=False), _RateOrTimeLeft("{task.fields[rate]}")
    columns = (name, BarColumn(BAR_WIDTH), _Done(), TimeElapsedColumn(), rate)
    return Progress(*columns, console=Console(stderr=True), transient=True)
