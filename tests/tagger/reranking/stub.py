"""A chat endpoint on this machine that answers as a test tells it to, or does not."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


def completion(content: object, **usage: Any) -> bytes:
    """The body of an answer with this content; what is no text is sent as JSON."""
    text = content if isinstance(content, str) else json.dumps(content)
    return json.dumps({"choices": [{"message": {"content": text}}], **({"usage": usage} if usage else {})}).encode()


class Handler(BaseHTTPRequestHandler):
    """Gives the request to the function of the test, which writes the answer, or returns the body of one."""

    server: "Stub"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, dict(self.headers), json.loads(body)))
        try:
            answer = self.server.answer(self)
            if answer is not None:
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
        except OSError:  # the client has given up
            self.close_connection = True

    def log_message(self, *args: Any) -> None:
        """Print nothing."""


class Stub(ThreadingHTTPServer):
    """The server; ``stopped`` ends answers that take forever."""

    daemon_threads = True

    def __init__(self, answer: Callable[[Handler], bytes | None]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer, self.requests, self.stopped = answer, [], threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}/v1"

    @property
    def user_messages(self) -> list[str]:
        """What was asked about each document."""
        return [body["messages"][1]["content"] for _, _, body in self.requests]


@contextmanager
def serving(answer: Callable[[Handler], bytes | None]) -> Iterator[Stub]:
    """Run an endpoint that answers by a function of the request."""
    stub = Stub(answer)
    thread = threading.Thread(target=stub.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield stub
    finally:
        stub.stopped.set()
        stub.shutdown()
        thread.join()
        stub.server_close()


@pytest.fixture
def endpoint() -> Iterator[Callable[..., Stub]]:
    """Start endpoints that end with the test."""
    running = []

    def start(answer: Callable[[Handler], bytes | None] | bytes) -> Stub:
        context = serving(answer if callable(answer) else lambda handler: answer)
        running.append(context)
        return context.__enter__()

    yield start
    for context in running:
        context.__exit__(None, None, None)
