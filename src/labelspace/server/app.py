"""Build the application of one worker: routes, gate, and models that are loaded again when their folder is replaced."""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from labelspace.errors import LabelspaceError
from labelspace.server.database import open_database
from labelspace.server.gate import OPEN, Gate, with_cors
from labelspace.server.loading import LOOK_SECONDS, running
from labelspace.server.monitoring import Monitoring
from labelspace.server.problems import SCHEMA, ProblemError, answer_error, documented
from labelspace.server.routes import annif, feedback, label_edits, labels, learning, page, predict, service, suggest
from labelspace.server.schemas import ProblemAnswer
from labelspace.server.settings import SUPERVISOR, Settings, read_api_keys
from labelspace.server.state import ServerState
from labelspace.version import __version__

logger = logging.getLogger("labelspace.server")
ROUTES = (service, suggest, learning, labels, label_edits, feedback, annif, predict, page)
ROUTERS = (service.health, service.learning, feedback.review, *(routes.router for routes in ROUTES))
DESCRIPTION = """Suggest the right labels for a text, with reasons; search labels; store decisions; learn from them.

Errors are `application/problem+json`; `detail` says what is wrong and how to fix it. With API keys, send
`Authorization: Bearer KEY` or `X-API-Key: KEY`."""
PROBLEMS = {
    400: "A value is invalid.",
    401: "The API key is missing or unknown.",
    403: "The key may only read, the server is read-only, or the host or the web site is not allowed.",
    404: "No model, label, document, job or entry has this name or id.",
    413: "The body, the text or the batch is too large.",
    415: "The content type of the body is not supported.",
    422: "The request does not match the schema.",
    429: "The server is busy with too many requests; retry after the seconds in Retry-After.",
    503: "A model is still loading, or the answer took too long.",
}

ERRORS = (Exception, ProblemError, LabelspaceError, HTTPException, RequestValidationError)
MODEL_PARAMETERS = {"model", "project"}
KEYS = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}


class GatedApp(FastAPI):
    """An application behind the gate, with an OpenAPI description that names the served models.

    The gate is outside of all that FastAPI does: refusing a request must cost little when there are many.
    """

    def __init__(self, settings: Settings, gate: Callable[[ASGIApp], ASGIApp], **options: Any) -> None:  # noqa: ANN401 - of FastAPI
        super().__init__(**options)
        self._settings = settings
        self._gate = gate

    def build_middleware_stack(self) -> ASGIApp:
        """Return all layers that a request passes, with the gate as the outermost."""
        return self._gate(super().build_middleware_stack())

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI description of the service, made at the first call."""
        if self.openapi_schema is None:
            complete_description(super().openapi(), self._settings)
        return super().openapi()


def complete_description(description: dict[str, Any], settings: Settings) -> None:
    """Add what FastAPI does not know: the problem that every error is, the served models, and how to send a key."""
    description["components"]["schemas"][SCHEMA] = ProblemAnswer.model_json_schema()
    for path, operations in description["paths"].items():
        for operation in operations.values():
            for parameter in operation.get("parameters", []):
                if parameter["name"] in MODEL_PARAMETERS:
                    parameter["schema"]["enum"] = list(settings.models)
            if settings.api_key_file is not None and path in OPEN:
                operation["security"] = []
    if settings.api_key_file is not None:
        description["components"]["securitySchemes"] = KEYS
        description["security"] = [{name: []} for name in KEYS]


def create_app(settings: Settings, load_first: bool = False, on_load: Callable[[], None] = lambda: None) -> FastAPI:
    """Return the application with these settings; with ``load_first`` it takes no request before its models are ready.

    A worker that replaces a dead one loads first, since other workers answer meanwhile. At the start of a server there
    are no others, and a probe should learn that the server lives. ``on_load`` is called after each load of a model.
    """
    monitoring = Monitoring()
    keys = None if settings.api_key_file is None else read_api_keys(settings.api_key_file)
    app = GatedApp(
        settings,
        lambda inner: with_cors(Gate(inner, settings, keys, monitoring), settings.cors_origins),
        title="labelspace",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=lambda app: _lifespan(app, settings, monitoring, load_first, on_load),
        exception_handlers=dict.fromkeys(ERRORS, answer_error),
        responses={status: documented(text) for status, text in PROBLEMS.items()},
        redirect_slashes=False,
    )
    for router in ROUTERS:
        app.include_router(router)
    return app


@asynccontextmanager
async def _lifespan(
    app: FastAPI, settings: Settings, monitoring: Monitoring, load_first: bool, on_load: Callable[[], None]
) -> AsyncIterator[None]:
    """Run the models of a worker while it answers; end it with its supervisor."""
    state = ServerState(settings, open_database(settings.database_url), monitoring)
    app.state.server = state
    end = asyncio.create_task(_end_with_supervisor())
    try:
        async with running(state, on_load):
            while load_first and not all(model.current or model.error for model in state.models.values()):
                await asyncio.sleep(0.05)
            yield
    finally:
        end.cancel()
        monitoring.close()


async def _end_with_supervisor() -> None:
    """End this process when the supervisor is gone: after it was killed, nothing else would end the workers."""
    supervisor = int(os.environ.get(SUPERVISOR, os.getppid()))
    while os.getppid() == supervisor:
        await asyncio.sleep(LOOK_SECONDS)
    signal.raise_signal(signal.SIGTERM)
