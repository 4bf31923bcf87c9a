"""Run a worker as a process: ``python -m labelspace.server.worker``, with the server's settings in its environment."""

import ctypes
import gc
import logging
import os
import signal
import sys

import uvicorn

from labelspace.server.app import create_app
from labelspace.server.settings import VARIABLE, Settings
from labelspace.server.supervisor import REPLACEMENT, worker_socket

BACKLOG = 2048  # connections that wait to be accepted; the system refuses further ones
STOP_SECONDS = 10  # for requests under way when the server is stopped


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
    config = uvicorn.Config(
        app,
        backlog=BACKLOG,
        access_log=False,
        log_level=logging.WARNING,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=STOP_SECONDS,
        lifespan="on",
        ws="none",
    )
    server = uvicorn.Server(config)
    server.run(sockets=[worker_socket(settings)])
    return 0 if server.started else 1


if __name__ == "__main__":
    sys.exit(main())
