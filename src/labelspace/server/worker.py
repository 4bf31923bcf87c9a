"""Run a worker as a process: ``python -m labelspace.server.worker``, with the server's settings in its environment."""

import ctypes
import gc
import logging
import os
import signal
import sys

from labelspace.server.app import create_app
from labelspace.server.http_server import http_server
from labelspace.server.settings import VARIABLE, Settings
from labelspace.server.supervisor import REPLACEMENT, worker_socket


def after_load() -> None:
    """Settle memory, and let SIGTERM end the server again, in case Ray (for models on a cluster) took it over."""
    settle_memory()
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))


def settle_memory() -> None:
    """Give freed memory back to the system, and let Python look for garbage only among objects made from now on.

    Loading needs more memory than serving. A search for garbage through all modules and models takes a tenth of a
    second, in which no request is answered.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only in the GNU C library
        if trim is not None:
            trim(0)


def main() -> int:
    """Answer requests until the server is stopped; return an exit code, 0 if the server came up."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    settings = Settings.from_json(os.environ[VARIABLE])
    app = create_app(settings, load_first=os.environ.get(REPLACEMENT) == "1", on_load=after_load)
    server = http_server(app)
    server.run(sockets=[worker_socket(settings)])
    return 0 if server.started else 1


if __name__ == "__main__":
    sys.exit(main())
