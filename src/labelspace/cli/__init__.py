"""The command line: parses options, calls the library and prints."""

import atexit
import gc
import os
import sys
import traceback
from contextlib import suppress

from labelspace.cli.exit_codes import INTERRUPTED, fail, failure, is_debugging
from labelspace.cli.process import discard_unwritable, prepare_streams


def main() -> None:
    """Run the command line: exit code 0 on success; else one line on stderr, and 2 for bad input or 1."""
    prepare_streams()
    try:
        from labelspace.cli.app import app

        code = app(standalone_mode=False) or 0
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        if is_debugging():
            traceback.print_exc()
        discard_unwritable()
        message, code = failure(error)
        if message:
            fail(message, code)
    sys.exit(code)


def run() -> None:
    """``main`` as a process of its own, which ends without freeing all that was imported: that takes longer than a tag.

    Imports make objects that stay, so Python looks for garbage after more of them.
    """
    gc.set_threshold(20_000, 20)
    codes: list[int] = []
    atexit.register(end_at_once, codes)  # the first one registered is called last
    try:
        main()
    except SystemExit as done:
        codes.append(done.code if isinstance(done.code, int) else int(done.code is not None))
        raise


def end_at_once(codes: list[int]) -> None:
    """End the process with the code that is given; as Python does it where there is none, or output is left over."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
        for code in codes:
            os._exit(code)
