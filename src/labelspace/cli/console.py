"""Output of the command line: text and tables, JSON, progress on stderr."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from labelspace.report.terminal import json_text, printable

if TYPE_CHECKING:  # heavy imports are delayed, so that --help stays fast
    from rich.console import Console

    from labelspace.report.progress import StepProgress


def print_line(text: str) -> None:
    """Print one line on stdout; control characters in names are escaped."""
    print(printable(text))


def print_json(value: object) -> None:
    """Print one JSON object on stdout, on one line."""
    is_unicode = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    print(json_text(value, ensure_ascii=not is_unicode))


def console() -> Console:
    """The console for tables; wide where stdout is not a terminal."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=160)


def progress(quiet: bool = False) -> StepProgress:
    """Progress on stderr, as a context."""
    from labelspace.report.progress import StepProgress

    return StepProgress(quiet)
