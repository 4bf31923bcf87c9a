"""Check every request before it is answered: host, key, size, number and time; and add headers to every answer.

This is plain ASGI: middleware of Starlette would take about as long as a fast request itself.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from labelspace.server.monitoring import Monitoring
from labelspace.server.problems import FAILED, ProblemError, ProblemResponse
from labelspace.server.settings import LOOPBACK, WRITE, ApiKeys, Settings

logger = logging.getLogger("labelspace.server")
# Paths that need no key: they show no data of models or people.
OPEN = {"/", "/livez", "/readyz", "/health", "/docs", "/openapi.json", "/favicon.ico"}
OPEN_PREFIX = "/page/"
NEVER_BUSY = {"/livez", "/readyz", "/metrics"}
ROLE = "labelspace.role"  # in the scope: what the key of the request allows
RETRY_SECONDS = 1
WITH_BODY = {"POST", "PUT", "PATCH"}
READING = {"GET", "HEAD", "OPTIONS"}
OWN_SITE = {b"same-origin", b"none"}  # sec-fetch-site of a request by our page, or by the user of the browser
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"SAMEORIGIN"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
NO_STORE = (b"cache-control", b"no-store")
NO_CONTENT = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'")


class Gate:
    """Check, limit and count requests, and complete the headers of answers."""

    def __init__(self, app: ASGIApp, settings: Settings, keys: ApiKeys | None, monitoring: Monitoring) -> None:
        self._app, self._settings, self._keys, self._monitoring = app, settings, keys, monitoring
        self._limits = settings.limits
        self._hosts = {*LOOPBACK, "[::1]", *settings.allowed_hosts} if settings.checks_host else None
        self._in_progress = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        counted = _Answer(send)
        self._in_progress += 1
        self._monitoring.in_progress.inc()
        try:
            await self._answer(scope, receive, counted)
        finally:
            self._in_progress -= 1
            self._monitoring.in_progress.dec()
            self._count(scope, counted.status, time.perf_counter() - started)

    async def _answer(self, scope: Scope, receive: Receive, send: "_Answer") -> None:
        headers = dict(scope["headers"])
        try:
            self._check(scope, headers)
            async with asyncio.timeout(self._limits.timeout_seconds):
                await self._app(scope, _limited(receive, self._limits.max_body_bytes), send)
        except ProblemError as problem:
            await self._refuse(problem, scope, receive, send)
        except TimeoutError:
            seconds = self._limits.timeout_seconds
            detail = f"an answer must take at most {seconds:g} s, but this one took longer; send less, or try again"
            await self._refuse(ProblemError(503, detail, {"Retry-After": str(RETRY_SECONDS)}), scope, receive, send)
        except Exception:
            await self._refuse(ProblemError(500, FAILED), scope, receive, send)
            logger.exception("%s %s failed", scope["method"], _route(scope))

    async def _refuse(self, problem: ProblemError, scope: Scope, receive: Receive, send: "_Answer") -> None:
        if not send.status:
            await ProblemResponse(problem, scope["path"])(scope, receive, send)

    def _check(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Raise ProblemError for a request that is not allowed or too large, before a byte of its body is read."""
        path = scope["path"]
        self._check_number(path)
        self._check_host(headers)
        if self._keys is None and scope["method"] not in READING:
            self._check_site(headers)
        scope[ROLE] = self._role(headers)
        if scope[ROLE] is None and path not in OPEN and not path.startswith(OPEN_PREFIX):
            detail = "a request needs an API key, but has no known one; send Authorization: Bearer KEY"
            raise ProblemError(401, detail, {"WWW-Authenticate": "Bearer"})
        size = headers.get(b"content-length", b"0")
        limit = self._limits.max_body_bytes
        if scope["method"] in WITH_BODY and not (size.isdigit() and int(size) <= limit):
            raise _too_large(limit)

    def _check_number(self, path: str) -> None:
        """Raise ProblemError if too many requests are in progress; checked first, since it costs least under load."""
        limit = self._limits.max_concurrent_requests
        if self._in_progress > limit and path not in NEVER_BUSY:
            detail = f"a worker answers at most {limit} requests at once, but has as many; try again in a second"
            raise ProblemError(429, detail, {"Retry-After": str(RETRY_SECONDS)})

    def _check_host(self, headers: dict[bytes, bytes]) -> None:
        if self._hosts is None:
            return
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        if name not in self._hosts:
            address = f"{self._settings.host}:{self._settings.port}"
            detail = f"a request must name a host of this machine, but names {host[:80]!r}; use {address}"
            raise ProblemError(403, f"{detail}, or start the server with --allowed-host NAME")

    def _check_site(self, headers: dict[bytes, bytes]) -> None:
        """Raise ProblemError for a change that a page of another site sends from the browser of an allowed user."""
        origin = headers.get(b"origin", b"").decode("latin-1")
        if not origin or headers.get(b"sec-fetch-site") in OWN_SITE or origin in self._settings.cors_origins:
            return
        if urlsplit(origin).netloc.lower() != headers.get(b"host", b"").decode("latin-1").lower():
            detail = f"a web site that sends data must be this server's own, but is {origin[:80]!r}"
            raise ProblemError(403, f"{detail}; start the server with --cors-origin ORIGIN to allow it")

    def _role(self, headers: dict[bytes, bytes]) -> str | None:
        if self._keys is None:
            return WRITE
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        given = headers.get(b"x-api-key") or (token if scheme.lower() == b"bearer" else b"")
        return self._keys.role(given.decode("latin-1").strip())

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        route = _route(scope)
        method = scope["method"]
        method = method if method in {"GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS"} else "other"
        self._monitoring.requests.labels(route, method, str(status)).inc()
        self._monitoring.seconds.labels(route).observe(seconds)
        if self._settings.access_log:
            logger.info("%s %s %d %.1f ms", method, route, status, 1e3 * seconds)


def with_cors(app: ASGIApp, origins: list[str]) -> ASGIApp:
    """Return an application whose answers may be read by pages of these web sites (CORS)."""
    if not origins:
        return app
    headers = ["Authorization", "X-API-Key", "Content-Type", "Mcp-Protocol-Version"]
    return CORSMiddleware(
        app, allow_origins=origins, allow_methods=["GET", "POST", "PATCH", "DELETE"], allow_headers=headers
    )


class _Answer:
    """Send an answer with the common headers, and remember its status."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0  # until the answer has started

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            names = {name for name, _ in message["headers"]}
            added = [*HEADERS, NO_STORE, NO_CONTENT]
            message["headers"] = [*message["headers"], *(each for each in added if each[0] not in names)]
        await self._send(message)


def _limited(receive: Receive, limit: int) -> Callable[[], Any]:
    """Return a function that receives a body and raises once it is over the limit: a chunked one has no size."""
    size = 0

    async def limited() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > limit:  # the only exception that FastAPI passes on while it reads a body
            raise HTTPException(413, _too_large(limit).detail)
        return message

    return limited


def _too_large(limit: int) -> ProblemError:
    return ProblemError(413, f"a body must have at most {limit} bytes, but has more; send less, or fewer documents")


def _route(scope: Scope) -> str:
    """Return the pattern of the path, never the path itself, which has names of labels."""
    route = scope.get("route")
    return getattr(route, "path", "other")
