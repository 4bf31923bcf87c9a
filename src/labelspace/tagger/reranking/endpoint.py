"""Ask a chat endpoint by the standard library, with limits on the time and the size of an answer.

The endpoint may be wrong, slow or hostile. No redirect is followed, no proxy of the environment is used, and no text of
the endpoint is in a message.
"""

from __future__ import annotations

import io
import json
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection, HTTPException
from typing import Any, NamedTuple, NoReturn
from urllib.parse import urlsplit

from labelspace.errors import ParameterError

KEY_VARIABLE = "LABELSPACE_RERANK_KEY"
MAX_ANSWER_BYTES = 2**20  # scores of 1,000 labels take some 10 kB
MAX_TOKENS = 10**9  # that an endpoint may report for one request
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_VISIBLE = re.compile("[!-~]+")  # what may stand in a URL or in a header


class AnswerError(Exception):
    """The endpoint gave no usable answer; the message is the reason, which is counted."""


class Completion(NamedTuple):
    """The text of an answer, and the tokens that the endpoint reports; 0 if it reports none."""

    content: str
    prompt_tokens: int
    completion_tokens: int


class ChatEndpoint:
    """A model behind ``POST URL/chat/completions``.

    >>> ChatEndpoint("http://127.0.0.1:8080/v1/", "qwen3").shown
    'http://127.0.0.1:8080/v1'
    """

    def __init__(self, url: str, model: str, key: str | None = None) -> None:
        scheme, self._host, self._port, path = _parsed(url)
        self._context = ssl.create_default_context() if scheme == "https" else None
        self._path = f"{path}/chat/completions"
        self._model = model
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        self.shown = url.rstrip("/")
        self.is_open = scheme == "http" and self._host not in LOOPBACK  # others may read the texts and the key
        if key is not None:
            if not _VISIBLE.fullmatch(key):
                rule = f"the key in {KEY_VARIABLE} must be visible ASCII characters"
                raise ParameterError(f"{rule}, but is empty or has others; set it again, without spaces or line ends")
            self._headers["Authorization"] = f"Bearer {key}"

    def ask(self, messages: Sequence[Mapping[str, str]], seconds: float) -> Completion:
        """Return the answer to messages; raise AnswerError if there is none within this time, or it is not usable."""
        request = {
            "model": self._model,
            "messages": messages,
            "temperature": 0,
            "response_format": {"type": "json_object"},
        }
        deadline = time.monotonic() + seconds
        try:
            answer = self._post(json.dumps(request).encode(), deadline)
        except (OSError, HTTPException, ValueError) as error:
            is_late = time.monotonic() >= deadline or isinstance(error, TimeoutError)
            raise AnswerError("no answer in time" if is_late else _reason(error)) from error
        if time.monotonic() >= deadline:  # the rest was cut off
            raise AnswerError("no answer in time")
        if len(answer) > MAX_ANSWER_BYTES:
            raise AnswerError(f"an answer over {MAX_ANSWER_BYTES:,} bytes")
        return read_completion(answer)

    def _post(self, body: bytes, deadline: float) -> bytes:
        """Return the body of the answer, cut off after the limit of its size."""
        with self._connected(deadline) as connection:
            connection.request("POST", self._path, body, self._headers)
            with connection.getresponse() as response:
                if response.status != 200:
                    raise AnswerError(f"status {response.status}")
                return response.read(MAX_ANSWER_BYTES + 1)

    @contextmanager
    def _connected(self, deadline: float) -> Iterator[HTTPConnection]:
        """Yield a connection that ends at the deadline."""
        with ExitStack() as opened:
            connected = opened.enter_context(socket.create_connection((self._host, self._port), timeout=left(deadline)))
            if self._context is not None:
                connected.settimeout(left(deadline))
                connected = opened.enter_context(self._context.wrap_socket(connected, server_hostname=self._host))
            connection = opened.enter_context(closing(HTTPConnection(self._host, self._port)))
            connection.sock = TimedSocket(connected, deadline)
            yield connection


def left(deadline: float) -> float:
    """Return the seconds until a deadline; raise TimeoutError if it has passed."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


class TimedSocket:
    """What ``http.client`` uses of a socket, ending at a deadline.

    The time limit of a socket is one of each operation: an endpoint that sends a byte now and then never reaches it.
    """

    def __init__(self, connected: socket.socket, deadline: float) -> None:
        self._connected, self._deadline = connected, deadline

    def sendall(self, data: bytes) -> None:
        """Send bytes."""
        rest = memoryview(data)
        while rest:
            self._connected.settimeout(left(self._deadline))
            rest = rest[self._connected.send(rest) :]

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return a file that reads what is received."""
        return io.BufferedReader(_Received(self._connected, self._deadline))

    def close(self) -> None:
        """Leave the socket open: an answer is read after its connection is closed."""


class _Received(io.RawIOBase):
    """The bytes that a socket receives before a deadline."""

    def __init__(self, connected: socket.socket, deadline: float) -> None:
        self._connected, self._deadline = connected, deadline

    def readable(self) -> bool:
        """Return that this can be read."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - Python 3.11 has no name for buffers
        """Receive some bytes; return their number, 0 at the end."""
        self._connected.settimeout(left(self._deadline))
        return self._connected.recv_into(buffer)


def _reason(error: Exception) -> str:
    match error:
        case ConnectionRefusedError() | socket.gaierror():
            return "cannot be reached"
        case ssl.SSLCertVerificationError():
            return "a certificate that is not trusted"
    return "broken connection"


def _parsed(url: str) -> tuple[str, str, int, str]:
    """Return scheme, host, port and path of a URL; raise ParameterError if it is not one of an endpoint."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        parts, port = urlsplit(""), 0
    is_plain = not (parts.username or parts.password or parts.query or parts.fragment) and _VISIBLE.fullmatch(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain:
        rule = "a rerank endpoint must be http://HOST:PORT/PATH or https://..., without a password or a query"
        remedy = f"write for example http://127.0.0.1:8080/v1, and give a key in the variable {KEY_VARIABLE}"
        raise ParameterError(f"{rule}, but is {url.rpartition('@')[2][:80]!r}; {remedy}")
    return parts.scheme, parts.hostname, port, parts.path.rstrip("/")


def read_completion(answer: bytes) -> Completion:
    """Return the text of the first choice; raise AnswerError if there is none.

    >>> read_completion(b'{"choices": [{"message": {"content": "{}"}}], "usage": {"prompt_tokens": 7}}')
    Completion(content='{}', prompt_tokens=7, completion_tokens=0)
    """
    try:
        found = strict_json(answer)
        content = found["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise AnswerError("not a chat completion") from error
    if not isinstance(content, str):
        raise AnswerError("not a chat completion")
    usage = found.get("usage")
    tokens = usage if isinstance(usage, dict) else {}
    return Completion(content, _count(tokens.get("prompt_tokens")), _count(tokens.get("completion_tokens")))


def strict_json(text: str | bytes) -> Any:  # noqa: ANN401 - any JSON
    """Return the value of JSON; raise ValueError for NaN and infinities too, which Python's reader accepts."""
    return json.loads(text, parse_constant=_refuse)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value <= MAX_TOKENS else 0
