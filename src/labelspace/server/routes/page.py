"""Serve the web page and the API page: files of this package only, nothing from elsewhere."""

import base64
import hashlib
import re
from functools import cache
from gzip import compress
from importlib.resources import files
from typing import NamedTuple
from zlib import crc32

from fastapi import APIRouter, Request
from fastapi.responses import Response

from labelspace.server.problems import ProblemError

router = APIRouter(include_in_schema=False)
MEDIA_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {"Cache-Control": "no-cache", "Content-Security-Policy": POLICY, "Vary": "Accept-Encoding"}
PAGES = {"/": "index.html", "/docs": "docs.html", "/favicon.ico": "icon.svg"}
INLINE = re.compile(r"<(script|style)([^>]*)>(.*?)</\1>", re.DOTALL)


@router.get("/")
@router.get("/docs")
@router.get("/favicon.ico")
async def page(request: Request) -> Response:
    """Return the web page, the API page (which reads /openapi.json) or the icon."""
    return asset(PAGES[request.scope["route"].path], request)


@router.get("/page/{name}")
async def part(name: str, request: Request) -> Response:
    """Return a script, a style or a picture."""
    return asset(name, request)


def asset(name: str, request: Request) -> Response:
    """Return a file of the page, or 304 to a browser that has this version."""
    found = assets().get(name)
    if found is None:
        raise ProblemError(404, f"a file of the page must be one of its own, but {name[:80]!r} is none; see /")
    headers = {**HEADERS, "ETag": found.tag}
    if request.headers.get("if-none-match") == found.tag:
        return Response(status_code=304, headers=headers)
    content = found.content
    if "gzip" in request.headers.get("accept-encoding", ""):
        content, headers["Content-Encoding"] = found.compressed, "gzip"
    return Response(content, media_type=MEDIA_TYPES[name.rsplit(".", 1)[-1]], headers=headers)


class Asset(NamedTuple):
    """A file of the page."""

    content: bytes
    compressed: bytes
    tag: str


@cache
def assets() -> dict[str, Asset]:
    """Read every file of the page once, so that no path of a request is ever opened."""
    folder = files("labelspace.server").joinpath("page")
    found = (entry for entry in folder.iterdir() if entry.name.rsplit(".", 1)[-1] in MEDIA_TYPES)
    contents = {entry.name: entry.read_bytes() for entry in found}
    tags = {name: f'"{crc32(content):08x}"' for name, content in contents.items()}
    return {name: Asset(content, compress(content, mtime=0), tags[name]) for name, content in contents.items()}


def hashed_policy(page: str) -> str:
    """Return the Content-Security-Policy of a page that allows only its inline scripts and styles, by their hashes.

    >>> hashed_policy("<style>p{}</style><script>go()</script>").count("sha256-")
    2
    """
    hashes: dict[str, list[str]] = {"script": [], "style": []}
    for kind, _, content in INLINE.findall(page):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        hashes[kind].append(f"'sha256-{digest}'")
    listed = "; ".join(f"{kind}-src {' '.join(found) or repr('none')}" for kind, found in hashes.items())
    return f"default-src 'none'; {listed}; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
