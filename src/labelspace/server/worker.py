"""A worker as a process: ``python -m labelspace.server.worker``, with the settings of the server in its environment."""

import logging
import os
import signal
import sys

import uvicorn

from labelspace.server.app import create_app
from labelspace.server.listening import worker_socket
from labelspace.server.readiness import REPLACEMENT
from labelspace.server.settings import VARIABLE, Settings
from labelspace.server.settled_memory import settle_memory

BACKLOG = 2048
STOP_SECONDS = 10  # for requests under way when the server is stopped


def after_load() -> None:
    """Settle memory; and have SIGTERM end the server again, where Ray, which a cluster is asked by, took it over."""
    settle_memory()
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))


def main() -> int:
    """Answer requests until told to stop; the exit code says whether the server came up."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    settings = Settings.from_json(os.environ[VARIABLE])
    app = create_app(settings, load_first=os.environ.get(REPLACEMENT) == "1", on_load=after_load)
    config = uvicorn.Config(
        app, backlog=BACKLOG, access_log=False, log_level=logging.WARNING, server_header=False, proxy_headers=False,
        timeout_graceful_shutdown=STOP_SECONDS, lifespan="on", ws="none",
    )  # fmt: skip
    server = uvicorn.Server(config)
    server.run(sockets=[worker_socket(settings)])
    return 0 if server.started else 1


if __name__ == "__main__":
    sys.exit(main())
