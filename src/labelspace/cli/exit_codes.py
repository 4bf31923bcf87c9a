"""Failed commands: one line on stderr, and an exit code."""

import sys
from typing import Any, NoReturn

import typer

INTERRUPTED = 130  # the exit code after Ctrl-C
UsageError: Any = typer.BadParameter.__mro__[1]
"""The exception of the option parser; typer has its own copy of click, so take it from a public class of typer."""


def usage_line(error: Any) -> str:  # noqa: ANN401 - the option parser's own type
    """An error of the option parser as one line with a remedy."""
    command = error.ctx.command_path if error.ctx is not None else "labelspace"
    return f"{error.format_message().rstrip('.')}; see: {command} --help"


def fail(message: str, code: int) -> NoReturn:
    """Exit with one line on stderr."""
    print("error: " + " ".join(message.split()), file=sys.stderr)
    sys.exit(code)
