"""Failed commands: one line on stderr, and an exit code."""

import errno
import os
import re
import shlex
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import NoReturn

from labelspace.errors import LabelspaceError
from labelspace.report.terminal import printable, shortened

INTERRUPTED = 130  # the exit code after Ctrl-C
DEBUG = "LABELSPACE_DEBUG"
MAX_REASON = 300  # characters; libraries explain at length
OUT_OF_MEMORY = (
    "the data must fit into memory, but it ran out; use fewer features (--set features.max_features=100000), "
    "or a smaller model"
)


def is_debugging() -> bool:
    """Return whether tracebacks are requested."""
    return os.environ.get(DEBUG) == "1"


def fail(message: str, code: int) -> NoReturn:
    """Exit with one line on stderr."""
    print_error(f"error: {message}")
    sys.exit(code)


def print_error(message: str) -> None:
    """Print one line on stderr, if that can be written."""
    with suppress(OSError):
        print(printable(" ".join(message.split())), file=sys.stderr, flush=True)


def failure(error: BaseException) -> tuple[str, int]:
    """Return the line and the exit code of an error; the line is empty if there is nothing to say."""
    report = f"this may be a bug of labelspace: please report it, with what {DEBUG}=1 in the environment prints"
    internal = f"internal error: {type(error).__name__}: {_reason(error)}; {report}"
    return _foreseen(error) or (internal, 1)


def with_flags(message: str, options: Iterable[str]) -> str:
    """Return a message of the library that names options, with the flags of the command line in place of the names.

    >>> with_flags("inputs must be names; write for example inputs=['a', 'b'], format='csv'", ["inputs", "format"])
    '--inputs must be names; write for example --inputs a,b --format csv'
    >>> with_flags("the text must be in a column; write text='title'", ["text="])
    'the text must be in a column; write --text title'
    """
    for option in options:
        name = option.removesuffix("=")
        message = re.sub(rf"\b{name}=(\[[^]]*\]|'[^']*'|[^\s,;]+)(, (?=\w+=))?", _given, message)
        if name == option:
            message = re.sub(rf"(?<![-'\w]){name}\b(?!=)", as_flag(name), message)
    return message


def as_flag(name: str) -> str:
    """Return the flag of an option of the library.

    >>> as_flag("label_separator")
    '--label-separator'
    """
    return f"--{name.replace('_', '-')}"


def _given(assignment: re.Match[str]) -> str:
    """Return ``name=value`` as it is typed; a comma before the next assignment becomes a space."""
    name, value = assignment[0].split("=", 1)[0], assignment[1]
    typed = re.sub(r"[]'[ ]", "", value) if value.startswith("[") else shlex.quote(value.strip("'"))
    return f"{as_flag(name)} {typed}{' ' if assignment[2] else ''}"


def _foreseen(error: BaseException) -> tuple[str, int] | None:
    """Return the line and the exit code of an error of the input or of the machine; None for any other."""
    if isinstance(error, LabelspaceError):
        return with_flags(str(error), error.options), 2
    if hasattr(error, "format_message"):  # of the option parser; typer does not export the class
        return _usage(error)
    if is_interrupt(error):
        return "interrupted; nothing half-written is left", INTERRUPTED
    if isinstance(error, MemoryError):
        return OUT_OF_MEMORY, 1
    if isinstance(error, RecursionError):
        levels = f"less than {sys.getrecursionlimit():,} levels"
        return f"what is read must be nested {levels} deep, but is nested deeper; check the file", 2
    if isinstance(error, UnicodeError):
        return f"text must be valid Unicode, but is not ({_reason(error)}); replace the invalid characters", 2
    if isinstance(error, ImportError) or "shared object" in str(error):
        needed = "the installed packages must load, but one does not"
        return f"{needed} ({_reason(_first_cause(error))}); free some memory, or install labelspace again", 1
    return _failed_file(error) if isinstance(error, OSError) else None


def is_interrupt(error: BaseException | None) -> bool:
    """Return whether an error is Ctrl-C; in a compiled kernel, Ctrl-C becomes the cause of another error."""
    return isinstance(error, KeyboardInterrupt) or (isinstance(error, SystemError) and is_interrupt(error.__cause__))


def _usage(error: object) -> tuple[str, int]:
    message = error.format_message()  # type: ignore[attr-defined]
    if not message:  # no command was given, and the help was printed
        return "", 0
    context = getattr(error, "ctx", None)
    command = "labelspace" if context is None else context.command_path
    return f"{message.rstrip('.')}; see: {command} --help", 2


def _failed_file(error: OSError) -> tuple[str, int]:
    if error.errno == errno.EPIPE:  # whoever read the output has seen enough
        return "", 1
    if error.errno == errno.ENOMEM:
        return OUT_OF_MEMORY, 1
    reason = error.strerror or _reason(error)
    if error.filename is None:
        return f"files and the output must be readable and writable, but one is not ({reason}); check the disk", 1
    return f"files must be readable and folders writable, but {error.filename} is not ({reason}); check it", 2


def _first_cause(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _reason(error: BaseException) -> str:
    return shortened(" ".join(str(error).split()), MAX_REASON)
