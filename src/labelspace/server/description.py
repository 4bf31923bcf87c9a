"""The description of the API (OpenAPI): what FastAPI makes of the routes, with problems, models and keys."""

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp

from labelspace.server.gate import OPEN
from labelspace.server.problems import SCHEMA
from labelspace.server.schemas import ProblemAnswer
from labelspace.server.settings import Settings

MODEL_PARAMETERS = {"model", "project"}
KEYS = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}


class DescribedApp(FastAPI):
    """An application with its description, made when someone asks for it, behind a gate.

    The gate is outside of all that FastAPI does: refusing a request must cost little when there are many.
    """

    def __init__(self, settings: Settings, gate: Callable[[ASGIApp], ASGIApp], **options: Any) -> None:  # noqa: ANN401 - of FastAPI
        super().__init__(**options)
        self._settings, self._gate = settings, gate

    def build_middleware_stack(self) -> ASGIApp:
        """All that a request passes."""
        return self._gate(super().build_middleware_stack())

    def openapi(self) -> dict[str, Any]:
        """The description."""
        if self.openapi_schema is None:
            complete(super().openapi(), self._settings)
        return super().openapi()


def complete(description: dict[str, Any], settings: Settings) -> None:
    """Add what FastAPI does not know: the problem that all errors are, the served models, and how a key is sent."""
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
