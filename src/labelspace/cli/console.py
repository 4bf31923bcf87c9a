"""Output of the command line: text and tables, JSON, progress and the notice of compilation on stderr."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from labelspace.cli.exit_codes import print_error
from labelspace.report.terminal import json_text, printable

if TYPE_CHECKING:  # heavy imports are delayed, so that --help stays fast
    from pathlib import Path

    from rich.console import Console
    from rich.live import Live

    from labelspace.report.progress import StepProgress

MESSAGE = "compiling kernels, once per machine"
PATIENCE = 1.0  # seconds of compilation before it is reported: one kernel of a few is not worth a line


def print_line(text: str) -> None:
    """Print one line on stdout; control characters in names are escaped."""
    print(printable(text))


def print_json(value: object) -> None:
    """Print one JSON object on stdout, on one line."""
    is_unicode = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    print(json_text(value, ensure_ascii=not is_unicode))


def write_page(path: Path, text: str) -> None:
    """Write a page, or other text, to a file."""
    from labelspace.data.files import writing_text

    with writing_text(path) as file:
        file.write(text)


def console() -> Console:
    """Return the console for tables, which is wide if stdout is not a terminal."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=160)


def progress(quiet: bool = False) -> StepProgress:
    """Return progress on stderr, as a context."""
    from labelspace.report.progress import StepProgress

    return StepProgress(quiet)


class CompilationNotice:
    """A watcher of ``labelspace.kernels.compilation``."""

    def __init__(self) -> None:
        self._depth, self._count = 0, 0
        self._start, self._seconds = 0.0, 0.0
        self._printed = False
        self._live: Live | None = None

    def __call__(self, name: str, starts: bool) -> None:
        """Count a kernel whose compilation starts or ends, and say so if it takes long."""
        now = time.monotonic()
        if starts:
            self._start = now if self._depth == 0 else self._start
            self._depth += 1
            if self._seconds + now - self._start > PATIENCE:
                self._show()
            return
        self._depth -= 1
        self._count += name.startswith("labelspace.")
        if self._depth == 0:
            self._seconds += now - self._start
            if self._live is not None:
                self._live.stop()
                self._live = None

    def _show(self) -> None:
        shows_bars = type(sys.stderr).__module__.startswith("rich.")  # bars print other lines above them
        if not sys.stderr.isatty() or shows_bars:
            if not self._printed:
                print_error(MESSAGE)
            self._printed = True
            return
        from rich.console import Console
        from rich.live import Live
        from rich.spinner import Spinner

        spinner = Spinner("dots", f"{MESSAGE}: {self._count} done")
        if self._live is not None:
            self._live.update(spinner)
            return
        screen = Console(stderr=True)
        self._live = Live(spinner, console=screen, transient=True, redirect_stdout=False, redirect_stderr=False)
        self._live.start()
