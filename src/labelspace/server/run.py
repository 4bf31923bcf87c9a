"""Start and supervise the workers: processes that listen on one socket, and map one model."""

import logging
import os
import socket

from labelspace.errors import LabelspaceError
from labelspace.kernels.threads import THREADS_VARIABLE, n_threads
from labelspace.server.api_keys import read_api_keys
from labelspace.server.database import open_database
from labelspace.server.monitoring import share_between_processes
from labelspace.server.settings import VARIABLE, Settings

BACKLOG = 2048
STOP_SECONDS = 10  # for requests under way when the server is stopped
HEALTH_SECONDS = 120  # without a sign of life, after which a worker is replaced: compiling kernels takes a while
BLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")


def check(settings: Settings) -> None:
    """Refuse what no worker could work with: keys, database."""
    if settings.api_key_file is not None:
        read_api_keys(settings.api_key_file)
    database = open_database(settings.database_url)
    try:
        database.ping()
    finally:
        database.close()


def bind(settings: Settings) -> socket.socket:
    """The socket that all workers listen on."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except (OSError, OverflowError) as error:
        listening.close()
        raise LabelspaceError(
            f"the server must be able to listen on {settings.host}:{settings.port}, but cannot "
            f"({getattr(error, 'strerror', None) or error}); give another --port, or end what uses it"
        ) from error
    listening.set_inheritable(True)
    return listening


def serve(settings: Settings, listening: socket.socket) -> None:
    """Run workers until the server is stopped; one that dies is replaced."""
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    threads = max(n_threads() // settings.workers, 1)
    os.environ.setdefault(THREADS_VARIABLE, str(threads))
    for variable in BLAS_VARIABLES:
        os.environ.setdefault(variable, str(threads))
    os.environ[VARIABLE] = settings.to_json()
    config = uvicorn.Config(
        "labelspace.server.app:from_environment", factory=True, host=settings.host, port=settings.port,
        workers=settings.workers, backlog=BACKLOG, access_log=False, log_level=logging.WARNING, server_header=False,
        timeout_graceful_shutdown=STOP_SECONDS, timeout_worker_healthcheck=HEALTH_SECONDS, lifespan="on", ws="none",
    )  # fmt: skip
    with share_between_processes():
        Multiprocess(config, sockets=[listening]).run()
