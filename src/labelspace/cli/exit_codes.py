"""How a command ends that could not do its work: one line on stderr, and an exit code."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import typer

STOPPED = 130  # the exit code after Ctrl-C
UsageError: Any = typer.BadParameter.__mro__[1]
"""What the option parser raises; typer brings its own copy of click, so it is reached through typer's public class."""


def usage_line(error: Any) -> str:  # noqa: ANN401 - the option parser's own type
    """An option parser's complaint as one line with a remedy."""
    command = error.ctx.command_path if error.ctx is not None else "labelspace"
    return f"{error.format_message().rstrip('.')}; see: {command} --help"


def fail(message: str, code: int) -> NoReturn:
    """End with one line on stderr."""
    print("error: " + " ".join(message.split()), file=sys.stderr)
    sys.exit(code)
