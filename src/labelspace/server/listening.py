"""The sockets of a server: the supervisor reserves the address, and every worker listens on a socket of its own.

The system shares connections out between these. One socket that all accept from would give a burst of connections to
the worker that wakes up first. Where a system cannot (it is not Linux), workers inherit one socket.
"""

import os
import socket
import sys

from labelspace.errors import LabelspaceError
from labelspace.server.settings import Settings

INHERITED = "LABELSPACE_SERVE_SOCKET"  # has the number of an inherited socket
SHARES_PORT = sys.platform == "linux"


def reserve(settings: Settings) -> socket.socket:
    """Take the address for this server; port 0 is a free one. An address that another program uses is an error."""
    bound = socket.socket(_family(settings))
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((settings.host, settings.port))
        if SHARES_PORT:  # not before: two servers must not share a port
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
    """The socket of a worker, at the address that the supervisor has reserved."""
    if not SHARES_PORT:
        return socket.socket(fileno=int(os.environ[INHERITED]))
    bound = socket.socket(_family(settings))
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound.bind((settings.host, settings.port))
    return bound


def _family(settings: Settings) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in settings.host else socket.AF_INET
