"""Progress of long work on stderr: a bar on a terminal, a line a step elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

LINE_EVERY = 10.0  # seconds between two lines of one step where there is no terminal


class StepProgress:
    """A context whose instance is a ``labelspace.types.Progress``: call it as ``progress(step, done, total)``."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self._bars: Any = None
        self._tasks: dict[str, Any] = {}
        self._last: dict[str, float] = {}

    def __enter__(self) -> Self:
        if not self.quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
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
        if self._bars is not None:
            if step not in self._tasks:
                self._tasks[step] = self._bars.add_task(step, total=total)
            self._bars.update(self._tasks[step], completed=done, total=total)
            return
        now = time.monotonic()
        if done >= total or now - self._last.get(step, -LINE_EVERY) >= LINE_EVERY:
            self._last[step] = now
            sys.stderr.write(f"{step}: {done:,} of {total:,}\n")
            sys.stderr.flush()
