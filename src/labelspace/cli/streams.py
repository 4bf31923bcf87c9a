"""stdin, stdout and stderr: closed, of another encoding, or full."""

import io
import os
import signal
import sys
import warnings

from labelspace.cli.exit_codes import fail, is_debugging, print_error


def prepare_streams() -> None:
    """Names are Unicode, whatever the locale; what is closed stays unused, and a warning is one line."""
    if sys.stdin is None:  # this cannot be read, which is an error once it is needed
        sys.stdin = open(os.devnull, "w")
    is_closed = sys.stdout is None
    if is_closed:
        sys.stdout = open(os.devnull, "w")
    if sys.stderr is None:  # print would write to stdout instead
        sys.stderr = open(os.devnull, "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="backslashreplace")
    if is_closed:
        fail("stdout must be open, but is closed; write it to a file, or to /dev/null", 1)
    if hasattr(signal, "SIGPIPE"):  # end quietly where the output pipe is closed, as with `| head`
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if not is_debugging():
        warnings.showwarning = lambda message, *where, **options: print_error(f"warning: {message}")


def discard_unwritable() -> None:
    """Give up on output that cannot be written, else Python would complain about it at exit."""
    for name in ("stdout", "stderr"):
        try:
            getattr(sys, name).flush()
        except (OSError, ValueError):
            setattr(sys, name, open(os.devnull, "w"))
