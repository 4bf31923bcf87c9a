"""The HTTP server that runs an application."""

import logging

import uvicorn
from starlette.types import ASGIApp

BACKLOG = 2048  # connections that wait to be accepted; the system refuses further ones
STOP_SECONDS = 10  # for requests under way when the server is stopped


def http_server(app: ASGIApp) -> uvicorn.Server:
    """Return a server of an application, to be run on a socket."""
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
    return uvicorn.Server(config)
