"""A server as processes: under load, while its model is replaced, and when processes are killed."""

import http.client
import json
import os
import shutil
import signal
import socket
import time
import urllib.error
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from labelspace.data.source import open_source
from labelspace.server.database import open_database
from labelspace.server.served_model import version_of
from labelspace.store import read_manifest
from labelspace.tagger import Tagger
from tests.server.conftest import RunningServer, documents, running_servers, wait_until
from tests.server.load import (
    CASES,
    MODEL,
    asking,
    can_listen,
    clients,
    counted,
    kill_supervisor,
    loads,
    n_listening,
    retried,
    suggest,
    suggest_together,
    versions,
    wrong,
)

pytestmark = pytest.mark.slow
WORKERS = 2
LONG = {"text": "a loaf of rye sourdough with green tea " * 500, "k": 8}  # occupies a worker while others ask
BATCHES, DOCUMENTS = "labelspace_batch_documents_count", 'labelspace_documents_total{model="foods"}'
needs_proc = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc, which Linux has")


@dataclass
class Served:
    """A server with two workers, and what it was started with."""

    server: RunningServer
    folder: Path
    database: Path


@pytest.fixture(scope="module")
def served_once(trained, data_folder, tmp_path_factory):
    """Start a server, or give the one that runs: a start takes seconds."""
    base = tmp_path_factory.mktemp("served")
    folder, database, data = base / "foods", base / "feedback.db", base / "train.jsonl"
    shutil.copy(data_folder / "train.jsonl", data)  # without test.*, so that no version is measured
    running = None
    with running_servers(base) as start:

        def get():
            nonlocal running
            if running is None or running.process.poll() is not None:
                Tagger.load(trained).save(folder)
                arguments = ("--workers", WORKERS, "--data", data, "--database", f"sqlite:///{database}")
                running = start(str(folder), *map(str, arguments))
            return Served(running, folder, database)

        yield get


@pytest.fixture
def served(served_once):
    """A server that tests may stop and whose model they may replace."""
    return served_once()


@pytest.fixture(scope="module")
def other(data_folder):
    """A model of the same labels that answers in another way."""
    return Tagger(members="neighbors,lexical", boosting_rounds=5).fit_dataset(open_source(data_folder).train())


def version(folder):
    return version_of(read_manifest(folder))


# Under load.


def test_answers_to_many_clients_are_those_of_the_library(served):
    taggers = {version(served.folder): Tagger.load(served.folder)}
    assert versions(served.server) == set(taggers)
    before = [counted(served.server, name) for name in (BATCHES, DOCUMENTS)]
    with ThreadPoolExecutor(8) as threads:
        busy = [threads.submit(served.server.post, f"{MODEL}/explain", LONG) for _ in range(4)]
        bursts = [range(7 * turn, 7 * (turn + 1)) for turn in range(2 * len(CASES))]  # by at most 8 clients at once
        asked = [each for some in threads.map(partial(suggest_together, served.server), bursts) for each in some]
        assert all(each.result()["explanations"] for each in busy)
    assert wrong(asked, taggers) == []
    batches, tagged = (counted(served.server, name) - n for name, n in zip((BATCHES, DOCUMENTS), before, strict=True))
    assert tagged == len(asked)
    assert batches < tagged + len(busy)  # what waited was tagged together


def test_a_model_is_replaced_under_load(served, other):
    """Every request is answered, by the version that the answer names."""
    first = Tagger.load(served.folder)
    taggers = {version(served.folder): first}
    with asking(served.server) as asked:
        for model in (other, first, other):
            before = len(asked)
            model.save(served.folder)
            taggers[version(served.folder)] = model
            wait_until(lambda: versions(served.server) == {version(served.folder)}, served.server.log)
            wait_until(lambda before=before: {each.answer["version"] for each in asked[before:]} == set(taggers))
        for model in (first, other, first):  # faster than workers look
            model.save(served.folder)
        wait_until(lambda: versions(served.server) == {version(served.folder)}, served.server.log)
    assert len(taggers) == 2
    assert wrong(asked, taggers) == []


def test_a_model_learns_under_load(served):
    taggers = {version(served.folder): Tagger.load(served.folder)}
    entries = [{"text": f"a glass of orange juice {i}", "added": ["drink > juice"]} for i in range(6)]
    served.server.post(f"{MODEL}/feedback", [{**entry, "allow_new_labels": True} for entry in entries])
    with asking(served.server) as asked:
        job = served.server.post(f"{MODEL}/learn")
        wait_until(lambda: served.server.get(f"/v1/jobs/{job['id']}")["state"] in ("done", "failed"), seconds=300)
        ended = served.server.get(f"/v1/jobs/{job['id']}")
        assert (ended["error"], ended["result"]["swapped"]) == (None, True)
        taggers[version(served.folder)] = Tagger.load(served.folder)
        wait_until(lambda: versions(served.server) == {version(served.folder)}, served.server.log)
    assert {each.answer["version"] for each in asked} == set(taggers)
    assert wrong(asked, taggers) == []
    best = served.server.post(f"{MODEL}/suggest", {"text": "orange juice", "k": 1})["suggestions"][0]
    assert best["label"] == "drink > juice"


# A folder that is no model.


def flip(folder):
    with (folder / "model.safetensors").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)[0]
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last ^ 1]))


def test_a_damaged_model_is_not_served(served, tmp_path):
    """The old one is, though its files are no longer there."""
    server, folder = served.server, served.folder
    good, old = Tagger.load(folder), version(folder)
    damages = {
        "flipped": flip,
        "truncated": lambda folder: os.truncate(folder / "features.safetensors", 100),
        "without labels": lambda folder: (folder / "labels.jsonl").unlink(),
        "no model": lambda folder: (folder / "model.json").write_text("{}"),
        "empty": lambda folder: (folder / "model.json").unlink(),
    }
    shutil.copytree(folder, tmp_path / "good")
    for name, damage in damages.items():
        shutil.copytree(tmp_path / "good", tmp_path / name)
        damage(tmp_path / name)
        failed = loads(server, "failed")
        shutil.rmtree(folder)
        os.rename(tmp_path / name, folder)
        with pytest.raises(urllib.error.HTTPError) as refused:
            server.post(f"{MODEL}/reload")
        with refused.value as answer:
            assert answer.code == 409
            assert "; the old model is still served" in json.load(answer)["detail"]
        if name != "empty":  # no folder of a model: perhaps it is about to be written
            wait_until(lambda failed=failed: loads(server, "failed") >= failed + WORKERS, server.log)
        assert versions(server) == {old}
        assert wrong([suggest(server, turn) for turn in range(len(CASES))], {old: good}) == []
    shutil.rmtree(folder)
    good.save(folder)
    assert server.post(f"{MODEL}/reload") == {"model": "foods", "version": old, "previous": old, "changed": False}


# Processes that are killed or stopped.


@needs_proc
def test_a_killed_worker_is_replaced_and_no_feedback_is_lost(served):
    """Clients try again where a connection is lost; nothing else goes wrong."""
    server, texts = served.server, documents()
    taggers = {version(served.folder): Tagger.load(served.folder)}
    stored, asked = [], []
    run = os.urandom(4).hex()

    def ask(turn):
        asked.append(retried(lambda: suggest(server, turn)))

    def post(name):
        def call(turn):
            row = texts[turn % len(texts)]
            entries = [
                {"id": f"{run}-{name}-{turn}-{i}", "text": row["text"], "accepted": [row["labels"][i]]}
                for i in range(2)
            ]
            stored.extend(retried(lambda: server.post(f"{MODEL}/feedback", entries))["ids"])

        return call

    workers = set(server.workers())
    assert len(workers) == WORKERS
    with clients(ask, ask, post("a"), post("b")):
        wait_until(lambda: len(stored) >= 20)
        killed, before = min(workers), len(stored)
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: len({*server.workers()} - {killed}) == WORKERS, server.log)
        wait_until(lambda: n_listening(server.url) == WORKERS, server.log)
        wait_until(lambda: len(stored) >= before + 40)
    now = set(server.workers())
    assert (len(now), len(now & workers)) == (WORKERS, WORKERS - 1)
    assert versions(server) == set(taggers)
    assert wrong(asked, taggers) == []
    database = open_database(str(served.database))
    found = [entry.id for entry in database.feedback("foods") if entry.id.startswith(run)]
    database.close()
    assert len(found) == len(set(found))
    assert set(stored) <= set(found)


@needs_proc
def test_workers_map_the_same_files_of_a_model(served):
    """And write to none of their pages, so that each is in memory once."""
    wait_until(lambda: all(dirty_kilobytes(worker, served.folder) for worker in served.server.workers()))
    for turn in range(len(CASES)):
        suggest(served.server, turn)
    workers = served.server.workers()
    assert len(workers) == WORKERS
    for worker in workers:
        found = dirty_kilobytes(worker, served.folder)
        assert {"model.safetensors", "features.safetensors"} <= set(found)
        assert set(found.values()) == {0}


def dirty_kilobytes(pid, folder):
    """By file of a folder that a process has mapped, how much of it the process has written to."""
    found, path = {}, None
    inodes = {path.stat().st_ino: path for path in folder.iterdir()}
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        fields = line.split()
        if "-" in fields[0]:  # addresses, rights, offset, device, inode and path of a mapping
            path = inodes.get(int(fields[4])) if line.endswith(".safetensors") else None
        elif fields[0] == "Private_Dirty:" and path is not None:
            found[path.name] = found.get(path.name, 0) + int(fields[1])
    return found


def test_a_stopped_server_answers_requests_under_way(served):
    """A request of which the head was read and the body was not sent is answered after the stop."""
    server, parts = served.server, urlsplit(served.server.url)
    body = json.dumps(CASES[0]).encode()
    expected = Tagger.load(served.folder).tag(**CASES[0])
    head = (
        f"POST {MODEL}/suggest HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
    )
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as connection:
        connection.sendall(head.encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 100 ")  # the server waits for the body
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: not is_listening(parts), server.log)
        time.sleep(0.5)  # a slow client
        connection.sendall(body)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        found = json.loads(answer.read())
    assert [each["label"] for each in found["suggestions"]] == [name for name, _ in expected]
    assert server.process.wait(60) == 0
    assert can_listen(server.url)


def is_listening(parts):
    try:
        socket.create_connection((parts.hostname, parts.port), timeout=60).close()
    except ConnectionError:
        return False
    return True


@needs_proc
def test_workers_end_when_their_supervisor_is_killed_before_they_serve(start_server, model_folder):
    """``test_jobs.py`` kills that of a server which serves."""
    server = start_server(str(model_folder), ready=False)
    wait_until(lambda: len(server.workers()) == 1)
    kill_supervisor(server)
