"""Clients that ask a server from several threads while something happens to it, and what they should be answered."""

import json
import os
import signal
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from http.client import HTTPConnection, IncompleteRead
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from labelspace.tagger import Tagger
from tests.server.conftest import RunningServer, wait_until

MODEL = "/v1/models/foods"
TEXTS = (
    "a loaf of rye sourdough",
    "smoked salmon from the river",
    "a cup of green tea with lemon",
    "canned tuna, or is it coffee?",
    "fresh wheat flour today",
    "nothing that anyone knows",
)
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"k": 1},
    {"k": 3, "exclude": ["food > bread > rye"]},
    {"k": 8, "consistent": True},
    {"under": ["food"]},
    {"min_probability": 0.1},
    {"include": ["drink > tea", "drink > coffee", "food > fish > tuna"]},
)
CASES = [{"text": text, **options} for text in TEXTS for options in OPTIONS]
PAUSE = 0.05  # seconds between two requests of a client, or two attempts: others use the machine too
MANY = 24  # connections, of which each worker gets one, but for a chance of one in millions


class Asked(NamedTuple):
    """A case, and the server's answer."""

    case: int
    answer: dict[str, Any]


@contextmanager
def clients(*calls: Callable[[int], object], most: int = 5000) -> Iterator[None]:
    """Functions that are called in threads of their own, with 0, 1, ..., until the context ends; errors are raised."""
    stop = threading.Event()

    def client(call: Callable[[int], object]) -> None:
        for turn in range(most):
            if stop.is_set():
                return
            call(turn)
            time.sleep(PAUSE)

    with ThreadPoolExecutor(len(calls)) as threads:
        running = [threads.submit(client, call) for call in calls]
        try:
            yield
        finally:
            stop.set()
    for each in running:
        each.result()


@contextmanager
def asking(server: RunningServer, n: int = 4) -> Iterator[list[Asked]]:
    """n clients that ask one case after another, and take no error; the list grows by each answer."""
    asked: list[Asked] = []

    def client(first: int) -> Callable[[int], None]:
        return lambda turn: asked.append(suggest(server, first + n * turn))

    with clients(*map(client, range(n))):
        yield asked


def suggest(server: RunningServer, turn: int) -> Asked:
    """Ask one of the cases."""
    case = turn % len(CASES)
    return Asked(case, server.post(f"{MODEL}/suggest", CASES[case]))


def suggest_together(server: RunningServer, turns: Iterable[int]) -> list[Asked]:
    """Ask cases at once, each over an open connection of its own; answers are read when all requests are sent.

    Nothing is asked over a connection before its case: the server closes one that is idle for seconds after an answer,
    and these pass while it is busy.
    """
    cases = [turn % len(CASES) for turn in turns]
    connections = [HTTPConnection(urlsplit(server.url).netloc, timeout=60) for _ in cases]
    with ExitStack() as opened:
        for connection in connections:
            opened.callback(connection.close)
            connection.connect()
        for connection, case in zip(connections, cases, strict=True):
            body, headers = json.dumps(CASES[case]), {"Content-Type": "application/json"}
            connection.request("POST", f"{MODEL}/suggest", body, headers)
        answers = [connection.getresponse() for connection in connections]
        assert [answer.status for answer in answers] == [200] * len(cases)
        return [Asked(case, json.load(answer)) for case, answer in zip(cases, answers, strict=True)]


def retried(call: Callable[[], Any], times: int = 100) -> Any:
    """What a call answers, repeated where the connection is lost; an answer that is an error is raised."""
    for _ in range(times):
        try:
            return call()
        except urllib.error.HTTPError:
            raise
        except (urllib.error.URLError, ConnectionError, IncompleteRead):
            time.sleep(PAUSE)
    return call()


def wrong(asked: list[Asked], taggers: Mapping[str, Tagger]) -> list[Asked]:
    """The answers that are not those of the library, by the version that they name."""

    @lru_cache(None)
    def expected(version: str, case: int) -> list[tuple[str, float]]:
        return taggers[version].tag(**CASES[case])

    return [each for each in asked if not _is_equal(each.answer, expected(each.answer["version"], each.case))]


def _is_equal(answer: dict[str, Any], tags: list[tuple[str, float]]) -> bool:
    found = [(each["label"], each["score"]) for each in answer["suggestions"]]
    return [name for name, _ in found] == [name for name, _ in tags] and all(
        abs(a - b) <= 1e-6 for (_, a), (_, b) in zip(found, tags, strict=True)
    )


def versions(server: RunningServer) -> set[str]:
    """What is served, by all workers."""
    return {server.get(MODEL)["version"] for _ in range(MANY)}


def loads(server: RunningServer, result: str = "loaded") -> int:
    """How often all workers together loaded the model."""
    return counted(server, f'labelspace_model_loads_total{{model="foods",result="{result}"}}')


def counted(server: RunningServer, name: str) -> int:
    """A number of ``/metrics``; 0 where it is not there yet."""

    def metrics() -> str:
        with urllib.request.urlopen(f"{server.url}/metrics", timeout=60) as answer:
            return str(answer.read(), "utf-8")

    lines = (line.rpartition(" ") for line in retried(metrics).splitlines())
    return sum(int(float(value)) for found, _, value in lines if found == name)


def kill_supervisor(server: RunningServer) -> None:
    """Kill the process that looks after the workers, and wait until these end and the port is free."""
    workers = server.workers()
    server.process.kill()
    server.process.wait()
    try:
        wait_until(lambda: not any(map(is_alive, workers)), server.log)
    finally:
        for worker in filter(is_alive, workers):
            os.kill(worker, signal.SIGKILL)
    assert can_listen(server.url)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def n_listening(url: str) -> int:
    """How many workers take connections (Linux, where each has a socket of its own)."""
    port = f":{urlsplit(url).port:04X}"
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines())
    return sum(fields[1].endswith(port) and fields[3] == "0A" for fields in rows)


def can_listen(url: str) -> bool:
    """Whether another server could take the address."""
    parts = urlsplit(url)
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            free.bind((parts.hostname, parts.port))
        except OSError:
            return False
        return True
