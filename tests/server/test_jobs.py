"""Learning and measuring in the background of a server, by processes that may be killed."""

import json
import os
import signal
import subprocess
import urllib.error

import pytest

from labelspace.data.source import open_source
from labelspace.errors import DatabaseError
from labelspace.server.database import open_database
from labelspace.server.job import EVALUATE, reporting
from labelspace.tagger import Tagger
from tests.server.conftest import running_servers, wait_until
from tests.server.load import MODEL, is_alive, kill_supervisor, versions

JOB_SECONDS = 300
JUICES = [f"a glass of orange juice {i}" for i in range(6)]


@pytest.fixture(scope="module")
def server_once(trained, data_folder, tmp_path_factory):
    """Start a server that can learn, or give the one that runs: a start takes seconds."""
    base = tmp_path_factory.mktemp("learning")
    running = None
    with running_servers(base) as start:

        def get():
            nonlocal running
            if running is None or running.process.poll() is not None:
                Tagger.load(trained).save(base / "foods")
                running = start(str(base / "foods"), "--workers", "2", "--data", str(data_folder))
            return running

        yield get


@pytest.fixture
def server(server_once):
    """A server with two workers, no feedback, and figures of its model."""
    running = server_once()
    wait_until(lambda: running.get(MODEL)["figures"] is not None, running.log, JOB_SECONDS)
    yield running
    if running.process.poll() is None:
        for entry in running.get(f"{MODEL}/feedback?limit=1000")["feedback"]:
            running.ask("DELETE", f"{MODEL}/feedback/{entry['id']}")


def give(server, entries):
    for at in range(0, len(entries), 32):
        server.post(f"{MODEL}/feedback", entries[at : at + 32])


def ended(server, job):
    """A job when it has ended; it leaves the machine to others."""
    wait_until(lambda: server.get(f"/v1/jobs/{job['id']}")["state"] in ("done", "failed"), server.log, JOB_SECONDS)
    return server.get(f"/v1/jobs/{job['id']}")


def process_of(job):
    """The id of the process of a job."""
    found = subprocess.run(["pgrep", "-f", f"labelspace.server.job {job['id']}"], capture_output=True, check=False)
    return next(map(int, found.stdout.split()), None)


def refused(call):
    """The status and the detail of an error."""
    with pytest.raises(urllib.error.HTTPError) as error:
        call()
    with error.value as answer:
        return answer.code, json.load(answer)["detail"]


@pytest.mark.slow
def test_a_new_label_is_learned_and_served_by_all_workers(server):
    old, measured = server.get(MODEL)["version"], server.get(MODEL)["figures"]
    give(server, [{"text": text, "added": ["drink > juice"], "allow_new_labels": True} for text in JUICES])
    job = server.post(f"{MODEL}/learn")
    assert (job["kind"], job["model"], job["state"]) == ("learn", "foods", "queued")
    done = ended(server, job)
    result = done["result"]
    assert (done["error"], done["state"], done["progress"]) == (None, "done", 1.0)
    assert (result["swapped"], result["n_feedback"], result["n_new_documents"]) == (True, 6, 6)
    assert result["held_out"] == {"n": 45, "from": "test.jsonl"}
    assert result["current"]["nDCG@5"] == measured["nDCG@5"]

    wait_until(lambda: old not in (found := versions(server)) and len(found) == 1, server.log)
    for _ in range(10):
        best = server.post(f"{MODEL}/suggest", {"text": "orange juice", "k": 1})["suggestions"][0]
        assert (best["label"], best["count"]) == ("drink > juice", 6)
    wait_until(lambda: server.get(MODEL)["figures"] is not None, server.log, JOB_SECONDS)
    assert server.get(MODEL)["figures"]["nDCG@5"] == result["candidate"]["nDCG@5"]
    assert server.get(f"{MODEL}/figures")["state"] == "ready"


@pytest.mark.slow
def test_a_worse_model_is_not_served(server, data_folder):
    """People say of every training document that it has the labels of another."""
    rows = [json.loads(line) for line in (data_folder / "train.jsonl").read_text().splitlines()]
    others = rows[len(rows) // 2 :] + rows[: len(rows) // 2]
    give(
        server,
        [
            {"text": row["text"], "rejected": row["labels"], "added": sorted({*other["labels"]} - {*row["labels"]})}
            for row, other in zip(rows, others, strict=True)
        ],
    )
    before = versions(server)
    for body in ({"full": True}, {}):
        done = ended(server, server.post(f"{MODEL}/learn", body))
        result = done["result"]
        assert (done["state"], result["swapped"], result["refused"]) == ("done", False, True)
        assert result["n_corrected_documents"] == (len(rows) if body else 0)
        assert result["candidate"]["nDCG@5"] < result["current"]["nDCG@5"]
        assert result["reason"].endswith("; the current model is kept")
    assert versions(server) == before
    assert server.post(f"{MODEL}/reload")["changed"] is False


@pytest.mark.slow
def test_one_training_runs_at_a_time_and_may_be_killed(server):
    job = server.post(f"{MODEL}/learn")
    status, detail = refused(lambda: server.post(f"{MODEL}/learn"))
    assert (status, "one change of a model runs at a time" in detail) == (409, True)
    wait_until(lambda: process_of(job) is not None)
    os.kill(process_of(job), signal.SIGKILL)
    done = ended(server, job)
    assert (done["state"], done["result"]) == ("failed", None)
    assert "the process of the job ended with code -9" in done["error"]
    assert done["ended"] >= done["created"]

    again = server.post(f"{MODEL}/learn")
    assert again["id"] != job["id"]
    assert [each["id"] for each in server.get("/v1/jobs")["jobs"]][:2] == [again["id"], job["id"]]
    wait_until(lambda: process_of(again) is not None)
    os.kill(process_of(again), signal.SIGKILL)
    ended(server, again)


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc, which Linux has")
def test_workers_and_jobs_end_when_the_supervisor_is_killed(server):
    """The port is free, and the next server may train at once."""
    job = server.post(f"{MODEL}/learn", {"full": True})  # long enough to be killed
    wait_until(lambda: process_of(job) is not None)
    process = process_of(job)
    database = open_database(str(server.log.parent / "foods.feedback.db"))
    kill_supervisor(server)
    wait_until(lambda: not is_alive(process))
    stored = database.job(job["id"])
    database.close()
    assert (stored.state, "ended with code -15" in stored.error) == ("failed", True)


def test_a_training_needs_data(client):
    answer = client.post(f"{MODEL}/learn", json={"full": True})
    assert answer.status_code == 409
    assert "start it with --data DATA, the folder or file that foods was trained on" in answer.json()["detail"]
    about = client.get(MODEL).json()
    assert (about["can_learn"], about["can_train"]) == (True, False)
    assert client.get("/v1/jobs").json() == {"jobs": []}
    assert client.get("/v1/jobs/7").status_code == 404


@pytest.fixture
def other(data_folder):
    """Another model of the same labels."""
    return Tagger("neighbors").fit_dataset(open_source(data_folder).train())


def version(client):
    return client.get(MODEL).json()["version"]


@pytest.mark.slow
def test_a_version_is_measured_though_another_is_being_measured(
    make_client, model_folder, data_folder, tmp_path, other
):
    """By a job that another server started, for one."""
    database = open_database(str(tmp_path / "feedback.db"))
    job = database.start_job("foods", EVALUATE)
    client = make_client(data=str(data_folder))
    assert client.get(f"{MODEL}/figures").json() == {"state": "running"}
    other.save(model_folder)
    before = version(client)
    wait_until(lambda: version(client) != before)
    assert [each["id"] for each in client.get("/v1/jobs").json()["jobs"]] == [job.id]
    database.update_job(job.id, state="done")
    database.close()
    wait_until(lambda: len(client.get("/v1/jobs").json()["jobs"]) == 2)
    newest = client.get("/v1/jobs").json()["jobs"][0]
    assert (newest["kind"], newest["state"] in ("queued", "running")) == (EVALUATE, True)


@pytest.mark.slow
def test_models_are_looked_for_though_the_database_is_away(make_client, model_folder, data_folder, other, monkeypatch):
    client = make_client(data=str(data_folder))
    first, database = Tagger.load(model_folder), client.app.state.server.database
    versions = [version(client)]

    def away(*_):
        raise DatabaseError("the database must answer, but does not; start it")

    for model in (other, first):
        with monkeypatch.context() as patched:
            patched.setattr(database, "figures", away)
            model.save(model_folder)
            wait_until(lambda: client.app.state.server.models["foods"].current.version != versions[-1])
            assert client.get(MODEL).status_code == 503
        versions.append(version(client))
    assert versions[0] == versions[2] != versions[1]


def test_a_training_goes_on_without_a_database(tmp_path):
    database = open_database(str(tmp_path / "feedback.db"))
    job = database.start_job("foods", "learn")
    report = reporting(database, job.id)
    report("training", 1, 4)
    assert (database.job(job.id).step, database.job(job.id).progress) == ("training", 0.25)
    database.close()
    reporting(database, job.id)("training", 2, 4)
    with pytest.raises(DatabaseError, match="but was closed"):
        database.job(job.id)
