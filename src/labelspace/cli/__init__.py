"""The command line: parses options, calls the library and prints."""

import sys
import traceback

from labelspace.cli.exit_codes import INTERRUPTED, fail, failure, is_debugging
from labelspace.cli.streams import discard_unwritable, prepare_streams


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
