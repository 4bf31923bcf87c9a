"""Kills at random moments of learning, of the journal of feedback and of rollbacks: nothing acknowledged is lost.

The server runs on while its jobs and workers are killed; now and then all of it is killed, and started again. The
environment variable KILLS sets their number: ``KILLS=200 pytest tests/server/learning/test_kills.py`` takes 20 minutes.
"""

import os
import random
import signal
import subprocess
import time
import urllib.error
from contextlib import suppress

import pytest

from labelspace import store
from labelspace.errors import DataError
from labelspace.server.database import ACTIVE, Feedback, open_database
from labelspace.server.learning import LearnOptions, go_back, learn_more
from labelspace.server.learning.learned_batches import learned_batches
from labelspace.tagger import Tagger
from labelspace.tagger.versions import history
from labelspace.types import no_progress
from tests.server.conftest import is_ready, running_servers, wait_until
from tests.server.load import MODEL, PAUSE, kill_supervisor, retried
from tests.store.faults import ended, in_child

KILLS = int(os.environ.get("KILLS", "12"))
TEXTS = ["bake the bread", "knead bread dough", "grill the fish", "smoke a fish"] * 3
NAMES = [["bread"], ["bread"], ["fish"], ["fish"]] * 3
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")]


@pytest.fixture
def folder(tmp_path):
    """A model that counts what it learned: each text of feedback is one document."""
    Tagger("neighbors", n_neighbors=1).fit(TEXTS, NAMES).save(tmp_path / "foods")
    return tmp_path / "foods"


def check(folder, database):
    """Every version loads, and the model has learned exactly what the database says once this follows the lineage.

    Texts that were put aside to compare versions by are in the model too.
    """
    listed = history(folder)
    tagger = Tagger.load(folder, verify=True)
    lineage = tagger.lineage_
    for number in store.kept_versions(folder):
        Tagger.load(store.kept_versions(folder)[number], verify=True)
    batches = learned_batches(lineage or [each.version for each in listed])
    database.settle_feedback("foods", batches.names, batches.is_complete, batches.known)
    n_learned = sum(entry.learned for entry in database.feedback("foods"))
    n_put_aside = 0 if tagger.held_out_ is None else len(tagger.held_out_)
    assert tagger.labels_.n_documents + n_put_aside == len(TEXTS) + n_learned
    return n_learned


# Between any two steps of a learning.


@pytest.mark.parametrize("step", ["settle_feedback", "take_feedback"])
@pytest.mark.parametrize("is_before", [True, False])
@pytest.mark.parametrize("call", [1, 2])
def test_a_learning_that_is_killed_at_a_step_is_made_up_for(folder, tmp_path, step, is_before, call):
    url = str(tmp_path / "foods.feedback.db")
    database = open_database(url)
    database.add_feedback("foods", [Feedback(text=f"toast {at}", added=["toast"]) for at in range(3)])
    database.close()

    def learn():
        own = open_database(url)
        kept, calls = getattr(own, step), []

        def killed(*arguments, **options):
            calls.append(step)
            if is_before and len(calls) == call:
                os.kill(os.getpid(), signal.SIGKILL)
            answer = kept(*arguments, **options)
            if len(calls) == call:
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        setattr(own, step, killed)
        learn_more(folder, None, own, "foods", no_progress, LearnOptions())

    is_called = not (step == "take_feedback" and call == 2)
    assert ended(in_child(learn)) is not is_called
    database = open_database(url)
    is_saved = (step, call) == ("settle_feedback", 2) or not is_called
    assert check(folder, database) == 3 * is_saved
    assert learn_more(folder, None, database, "foods", no_progress, LearnOptions())["swapped"] is not is_saved
    assert check(folder, database) == 3
    database.close()


def test_a_rollback_that_is_killed_before_the_database_knows(folder, tmp_path, monkeypatch):
    database = open_database(str(tmp_path / "foods.feedback.db"))
    database.add_feedback("foods", [Feedback(text="a toast", added=["toast"])])
    learn_more(folder, None, database, "foods", no_progress, LearnOptions())

    def lost(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(database, "settle_feedback", lost)
        with pytest.raises(KeyboardInterrupt):
            go_back(folder, database, "foods", 1, 5)
    assert database.count_new_feedback("foods") == 0
    assert learn_more(folder, None, database, "foods", no_progress, LearnOptions())["n_feedback"] == 1
    assert check(folder, database) == 1
    database.close()


# At random moments of a server.


class Service:
    """A server of the model, which is started again when it was killed, and what it acknowledged."""

    def __init__(self, start, folder):
        self._start, self._folder = start, folder
        self.acknowledged, self.refused, self.n_killed_jobs = [], [], 0
        self.server = self.start()

    def start(self):
        self.server = self._start(str(self._folder), "--keep-versions", "3")
        return self.server

    def give(self, text):
        """Send feedback; its id is acknowledged where an answer comes."""
        entry = {"id": text, "text": text, "added": ["toast"], "allow_new_labels": True}
        try:
            self.acknowledged += self.server.post(f"{MODEL}/feedback", [entry])["ids"]
        except urllib.error.HTTPError as error:
            self.refuse(error)
        except (urllib.error.URLError, ConnectionError, OSError):  # the worker was killed
            time.sleep(PAUSE)

    def refuse(self, error):
        """Remember the status of an answer that is an error."""
        with error:
            self.refused.append(error.code)

    def change(self, chance):
        """Begin to learn, or go back to a version that is kept; another change may be running."""
        try:
            if chance < 0.75:
                self.server.post(f"{MODEL}/learn")
                return
            kept = [each["number"] for each in self.server.get(f"{MODEL}/versions")["versions"] if each["is_kept"]]
            if kept:
                self.server.post(f"{MODEL}/rollback", {"to": kept[int(chance * 1000) % len(kept)]})
        except urllib.error.HTTPError as error:
            self.refuse(error)
        except (urllib.error.URLError, ConnectionError, OSError):
            time.sleep(PAUSE)

    def kill(self, chance):
        """Kill a job, a worker, or all of the server."""
        if chance < 0.6:
            self.kill_jobs()
        elif chance < 0.9:
            for worker in self.server.workers()[:1]:
                os.kill(worker, signal.SIGKILL)
        else:
            self.kill_jobs()
            kill_supervisor(self.server)
        if self.server.process.poll() is not None:  # killed, or it gave up since its workers died too quickly
            self.start()

    def kill_jobs(self):
        """Kill active jobs, also those that a killed worker has left: nobody else would say that these have failed."""
        database = open_database(str(self._folder.with_name("foods.feedback.db")))
        for job in database.jobs():
            if job.state in ACTIVE:
                command = ["pgrep", "-f", f"labelspace.server.job {job.id}"]
                found = subprocess.run(command, capture_output=True, check=False).stdout.split()
                for process in map(int, found):
                    os.kill(process, signal.SIGKILL)
                    self.n_killed_jobs += 1
                with suppress(DataError):  # its worker was faster
                    database.update_job(job.id, state="failed", error="killed")
        database.close()

    def ask(self, method, path, body=None):
        """An answer, once the server gives one."""
        return retried(lambda: self.server.ask(method, path, body))

    def learn_the_rest(self):
        """Learn what is new, after a job of before was given up; return how many seconds the learning took."""
        for _ in range(30):
            wait_until(lambda: is_ready(self.server), self.server.log)
            started = time.monotonic()
            try:
                job = self.ask("POST", f"{MODEL}/learn")
            except urllib.error.HTTPError as error:
                self.refuse(error)
                time.sleep(5)  # a job without its watch is active for a minute
                continue
            wait_until(lambda job=job: self.ask("GET", f"/v1/jobs/{job['id']}")["state"] in ("done", "failed"))
            if self.ask("GET", f"/v1/jobs/{job['id']}")["state"] == "done":
                return time.monotonic() - started
        pytest.fail("nothing was learned")


def test_kills_at_random_moments_of_a_server(folder, tmp_path):
    chance = random.Random(39)
    with running_servers(tmp_path) as start:
        service = Service(start, folder)
        service.give("a first toast")
        seconds = service.learn_the_rest()
        for kill in range(KILLS):
            until = time.monotonic() + 1.5 * seconds * chance.random()  # every third learning comes to its end
            service.change(chance.random())
            turn = 0
            while time.monotonic() < until or turn == 0:
                service.give(f"toast {kill} {turn}")
                turn += 1
                time.sleep(PAUSE)
            service.kill(chance.random())
            Tagger.load(folder, verify=True)  # a model always loads
        service.learn_the_rest()
        service.server.stop()
    if KILLS >= 100:
        made_by = {each.version.made_by for each in history(folder)}
        assert made_by == {"train", "learn", "rollback"}
        assert service.n_killed_jobs >= KILLS / 5
    database = open_database(str(tmp_path / "foods.feedback.db"))
    stored = [entry.id for entry in database.feedback("foods")]
    assert set(service.refused) <= {409, 503}
    assert len(service.acknowledged) >= KILLS / 2
    assert set(service.acknowledged) <= set(stored)
    assert len(stored) == len(set(stored)) == check(folder, database)
    assert database.count_new_feedback("foods") == 0
    database.close()
