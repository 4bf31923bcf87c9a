"""Share the port and the readiness of a server between the supervisor and its workers.

The supervisor reserves the address, and every worker listens on a socket of its own, between which the system spreads
the connections. With one socket that all accept from, a burst of connections would go to the worker that wakes up
first. Where a system cannot spread them (all but Linux), the workers inherit one socket.
"""

import os
import socket
import sys
from pathlib import Path

from labelspace.errors import LabelspaceError
from labelspace.server.settings import Settings

# Variables in the environment of a worker.
INHERITED = "LABELSPACE_SERVE_SOCKET"  # the number of an inherited socket
PLACE = "LABELSPACE_SERVE_WORKER"  # the number of the worker
READY_FOLDER = "LABELSPACE_SERVE_READY"  # where each worker that is ready leaves a file
REPLACEMENT = "LABELSPACE_SERVE_REPLACEMENT"  # 1 for a worker that replaces a dead one
SHARES_PORT = sys.platform == "linux"


def reserve(settings: Settings) -> socket.socket:
    """Take the address for this server; port 0 takes a free one. An address that another program uses is an error."""
    bound = socket.socket(_family(settings))
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((settings.host, settings.port))
        if SHARES_PORT:  # only after bind: two servers must not share a port
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    except (OSError, OverflowError) as error:
        bound.close()
        raise LabelspaceError(
            f"the server must be able to listen on {settings.host}:{settings.port}, but cannot "
            f"({getattr(error, 'strerror', None) or error}); give another --port or --host, or end what uses it"
        ) from error
    bound.set_inheritable(not SHARES_PORT)
    return bound


def worker_socket(settings: Settings) -> socket.socket:
    """Return the socket of a worker, at the address that the supervisor has reserved."""
    if not SHARES_PORT:
        return socket.socket(fileno=int(os.environ[INHERITED]))
    bound = socket.socket(_family(settings))
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound.bind((settings.host, settings.port))
    return bound


def _family(settings: Settings) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in settings.host else socket.AF_INET


class Readiness:
    """Whether the workers of a server have been ready once: a client of a ready server may meet any of them.

    A worker without a supervisor has no others to wait for.
    """

    def __init__(self, n_workers: int) -> None:
        folder = os.environ.get(READY_FOLDER)
        self._folder = None if folder is None else Path(folder)
        self._n_workers = n_workers
        self._all_ready = self._folder is None

    def mark(self) -> None:
        """Record that this worker is ready."""
        if self._folder is not None:
            (self._folder / f"ready-{int(os.environ[PLACE])}").touch()

    @property
    def of_all(self) -> bool:
        """Return whether every worker was ready once; a replacement does not listen before it is ready."""
        if not self._all_ready and self._folder is not None:
            self._all_ready = sum(1 for _ in self._folder.glob("ready-*")) >= self._n_workers
        return self._all_ready
