"""A small model with a hierarchy, its data, the application in this process, and servers as processes of their own."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra serve is not installed")

from fastapi.testclient import TestClient  # noqa: E402 - after the check that it is there

from labelspace.server.app import create_app  # noqa: E402
from labelspace.server.settings import Settings  # noqa: E402
from labelspace.tagger import Tagger  # noqa: E402

FOODS = {
    "food > bread > rye": "rye sourdough crust loaf",
    "food > bread > wheat": "wheat flour baguette loaf",
    "food > fish > salmon": "salmon fillet smoked river",
    "food > fish > tuna": "tuna steak ocean canned",
    "drink > tea": "green tea leaves cup lemon",
    "drink > coffee": "coffee beans espresso roast",
}
WAYS = (
    "how to store {} well",
    "the best {} for breakfast",
    "buy fresh {} today",
    "why is {} so good",
    "old {} recipes",
)
ODD_NAMES = {
    "<script>alert(1)</script>": "alpha",
    "quotes \" and '": "beta",
    "two\nlines": "gamma",
    "\u202eright to left": "delta",
    "and/or, a b": "epsilon",
    "Crème brûlée": "zeta",
    "東京": "eta",
    "../../settings.py": "theta",
    "3": "iota",
    "100%": "kappa",
    "a?b#c&d=e+f": "lambda",
    "labels": "mu",
}  # each with a word of its own
ODD_DESCRIPTION = '<img src=x onerror="window.hit=1"> \u202e&lt;b>' + " on and on" * 50
START_SECONDS = 120  # within which a server must be ready, on a machine that is busy


def documents(copies: int = 3) -> list[dict[str, Any]]:
    """Texts about six foods, each with its label and the one above."""
    rows = []
    for label, words in FOODS.items():
        parent = label.rsplit(" > ", 1)[0]
        for way in WAYS:
            for first in words.split()[:copies]:
                text = way.format(f"{first} {words.split()[-1]}")
                rows.append({"id": f"d{len(rows)}", "text": text, "labels": [label, parent]})
    return rows


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data set as a folder with train and test."""
    folder = tmp_path_factory.mktemp("data")
    rows = documents()
    for name, some in (("train", rows[::2]), ("test", rows[1::2])):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some))
    return folder


@pytest.fixture(scope="session")
def trained(data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A blend of three members; not to be changed by tests (``model_folder`` is a copy)."""
    from labelspace.data.source import open_source

    folder = tmp_path_factory.mktemp("models") / "foods"
    tagger = Tagger(members="neighbors,label_tree,lexical", boosting_rounds=10)
    tagger.fit_dataset(open_source(data_folder).train(), keep_texts=True).save(folder)
    return folder


@pytest.fixture(scope="session")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A label tree, which has no members, of labels without a hierarchy, whose names are as odd as names can be."""
    folder = tmp_path_factory.mktemp("models") / "odd"
    texts = [f"{word} {rest}" for word in ODD_NAMES.values() for rest in ("one", "two", "three")]
    names = [[name] for name in ODD_NAMES for _ in range(3)]
    tagger = Tagger(method="label_tree").fit(texts, names)
    for name in ODD_NAMES:
        tagger.add_label(name, description=ODD_DESCRIPTION)
    tagger.save(folder)
    return folder


@pytest.fixture
def model_folder(trained: Path, tmp_path: Path) -> Path:
    """A model of the test's own."""
    return shutil.copytree(trained, tmp_path / "foods")


@pytest.fixture
def make_client(model_folder: Path, tmp_path: Path) -> Iterator[Callable[..., TestClient]]:
    """Clients of the application with these settings, whose model is ready."""
    open_ones = []

    def make(ready: bool = True, **settings: Any) -> TestClient:
        given = {
            "models": {"foods": str(model_folder)},
            "database": f"sqlite:///{tmp_path / 'feedback.db'}",
            **settings,
        }
        client = TestClient(create_app(Settings(**given)), base_url="http://127.0.0.1:8000")
        client.__enter__()
        open_ones.append(client)
        if ready:
            wait_until(lambda: client.get("/readyz").status_code == 200)
        return client

    yield make
    for client in open_ones:
        client.__exit__(None, None, None)


@pytest.fixture
def client(make_client: Callable[..., TestClient]) -> TestClient:
    """A client of the application with the default settings."""
    return make_client()


@contextmanager
def serving(models: dict[str, Path], folder: Path, **settings: Any) -> Iterator[TestClient]:
    """A client of the application, whose models are ready; its database is in the folder."""
    folders = {name: str(path) for name, path in models.items()}
    app = create_app(Settings(models=folders, database=f"sqlite:///{folder / 'feedback.db'}", **settings))
    with TestClient(app, base_url="http://127.0.0.1:8000") as client:
        wait_until(lambda: client.get("/readyz").status_code == 200)
        yield client


@pytest.fixture(scope="session")
def shared_client(trained: Path, odd: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A client for requests that change nothing, of both models: one for each test would take longer than the test."""
    with serving({"foods": trained, "odd": odd}, tmp_path_factory.mktemp("shared")) as client:
        yield client


@pytest.fixture
def tagger(trained: Path) -> Tagger:
    """The same model in the library."""
    return Tagger.load(trained)


@dataclass
class RunningServer:
    """`labelspace serve` as a process."""

    process: subprocess.Popen[bytes]
    url: str
    log: Path

    def get(self, path: str) -> Any:
        """The JSON at a path."""
        return self.ask("GET", path)

    def post(self, path: str, body: Any = None) -> Any:
        """The JSON that a POST of JSON answers with; an answer of 400 and above is an HTTPError."""
        return self.ask("POST", path, body)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of an answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, data, {"Content-Type": "application/json"} if data else {}, method=method
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            content = answer.read()
        return json.loads(content) if content else None

    def workers(self) -> list[int]:
        """The process ids of the workers."""
        found = subprocess.run(
            ["pgrep", "-P", str(self.process.pid), "-f", "labelspace.server.worker"],
            capture_output=True,
            text=True,
            check=False,
        )
        return [int(pid) for pid in found.stdout.split()]

    def stop(self) -> int:
        """End it as Ctrl-C does, and give its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[Callable[..., RunningServer]]:
    """Start servers on free ports, and wait until they are ready; they end with the test."""
    with running_servers(tmp_path) as start:
        yield start


@contextmanager
def running_servers(folder: Path) -> Iterator[Callable[..., RunningServer]]:
    """A function that starts servers with logs in a folder; they end with the context."""
    started: list[RunningServer] = []

    def start(*arguments: str, ready: bool = True) -> RunningServer:
        log = folder / f"server-{len(started)}.log"
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "TMPDIR": str(folder)}  # a killed one leaves something
        with log.open("wb") as output:
            command = [sys.executable, "-m", "labelspace", "serve", "--port", "0", *arguments]
            process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
        wait_until(lambda: process.poll() is not None or b"http://" in log.read_bytes())
        found = re.search(rb"at (http://[\w.\[\]:]+\d)", log.read_bytes())
        assert found is not None, log.read_text()
        server = RunningServer(process, found[1].decode(), log)
        started.append(server)
        if ready:
            wait_until(lambda: is_ready(server), log)
        return server

    try:
        yield start
    finally:
        for server in started:
            server.process.terminate()
        for server in started:
            try:
                server.process.wait(30)
            except subprocess.TimeoutExpired:
                server.process.kill()


def is_ready(server: RunningServer) -> bool:
    """Whether a server says that it is ready."""
    try:
        return bool(server.get("/readyz")["status"] == "ready")
    except (urllib.error.URLError, ConnectionError):
        return False


def wait_until(holds: Callable[[], bool], log: Path | None = None, seconds: float = START_SECONDS) -> None:
    """Wait for a condition; fail where it does not come true in time."""
    deadline, pause = time.monotonic() + seconds, 0.002
    while not holds():
        if time.monotonic() > deadline:
            pytest.fail(f"did not come true in {seconds:g} s" + ("" if log is None else f": {log.read_text()}"))
        time.sleep(pause)
        pause = min(2 * pause, 0.05)
