"""Answer errors as ``application/problem+json`` (RFC 9457), whose detail has the rule, the value and the remedy."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from labelspace.errors import InputError, LabelspaceError, MissingExtraError
from labelspace.report.terminal import json_text, printable

MEDIA_TYPE = "application/problem+json"
SCHEMA = "ProblemAnswer"  # in OpenAPI
FAILED = "the request should have been answered, but failed in the server; see its log"
SHOWN_VALUE = 60  # characters of a value in a message


class ProblemError(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})


class ProblemResponse(JSONResponse):
    """The answer of a problem."""

    media_type = MEDIA_TYPE

    def __init__(self, problem: ProblemError, path: str) -> None:
        title = HTTPStatus(problem.status).phrase
        detail = printable(problem.detail)
        values = {"type": "about:blank", "title": title, "status": problem.status, "detail": detail, "instance": path}
        super().__init__(values, problem.status, problem.headers)

    def render(self, content: Any) -> bytes:  # noqa: ANN401 - any JSON
        """Return the problem as JSON, with control characters and lone surrogates of the request escaped."""
        return json_text(content, ensure_ascii=True).encode()


def documented(text: str) -> dict[str, Any]:
    """Describe an answer that is a problem, for OpenAPI."""
    return {"description": text, "content": {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{SCHEMA}"}}}}


_DETAILS = {
    400: "a body must match its content type, in UTF-8 and not nested too deeply, but cannot be read; see /docs",
    404: "a path must be one of those at /docs, but {path} is none; see /docs",
    405: "a path takes the methods listed at /docs, but {path} was requested with {method}; see /docs",
}


def problem_of(error: Exception, request: Request) -> ProblemError:
    """Return the problem for an error: 400 for bad input, 501 for a missing package, 503 for any other refusal."""
    match error:
        case ProblemError():
            return error
        case InputError():
            return ProblemError(400, str(error))
        case LabelspaceError():
            return ProblemError(501 if isinstance(error, MissingExtraError) else 503, str(error))
        case HTTPException(status_code=status):
            detail = _DETAILS.get(status, str(error.detail)).format(method=request.method, path=request.url.path)
            return ProblemError(status, detail, error.headers)
        case RequestValidationError(body=bytes()):  # FastAPI reads JSON only if the content type says so
            given = request.headers.get("content-type", "not said")[:SHOWN_VALUE]
            detail = f"a body must be application/json, but its type is {given}; send Content-Type: application/json"
            return ProblemError(415, detail)
        case RequestValidationError():
            return ProblemError(422, described(error.errors()))
    return ProblemError(500, FAILED)


async def answer_error(request: Request, error: Exception) -> ProblemResponse:
    """Answer an error as a problem."""
    return ProblemResponse(problem_of(error, request), request.url.path)


def described(errors: Sequence[Mapping[str, Any]]) -> str:
    """Describe the errors of a request in one line: the first error, and the number of further ones."""
    first = errors[0]
    where = ".".join(str(part) for part in first["loc"] if part != "body") or "the body"
    if first["type"] == "json_invalid":
        return "the body must be JSON, but is not; send valid JSON as application/json"
    given = first.get("input")
    value = "" if first["type"] == "missing" or isinstance(given, (dict, list)) else f", but is {_shown(given)}"
    more = f" ({len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}{value}; see /docs for what is expected{more}"


def _shown(value: object) -> str:
    text = json_text(value, ensure_ascii=True) if isinstance(value, (str, int, float, bool, type(None))) else "no JSON"
    return text if len(text) <= SHOWN_VALUE else f"{text[:SHOWN_VALUE]}..."
