"""Learning, versions and labels over HTTP: each change is a version, and one can go back to those that are kept."""

import pytest

from labelspace.server.database import ACTIVE
from labelspace.tagger import Tagger
from tests.server.conftest import wait_until

URL = "/v1/models/foods"
RYE, TEA, WHEAT = "food > bread > rye", "drink > tea", "food > bread > wheat"
JUICES = [f"a glass of orange juice {i}" for i in range(6)]
JOB_SECONDS = 120


def ended(client, answer):
    """A job when it has ended."""
    assert answer.status_code == 202, answer.json()
    path = f"/v1/jobs/{answer.json()['id']}"
    wait_until(lambda: client.get(path).json()["state"] not in ACTIVE, seconds=JOB_SECONDS)
    return client.get(path).json()


def done(client, answer):
    """The result of a job that ended well, once its version is served."""
    job = ended(client, answer)
    assert (job["error"], job["state"]) == (None, "done")
    client.post(f"{URL}/reload")
    return job["result"]


def listed(client):
    return client.get(f"{URL}/versions").json()["versions"]


def names(client, text, k=5):
    found = client.post(f"{URL}/suggest", json={"text": text, "k": k}).json()["suggestions"]
    return [each["label"] for each in found]


def test_a_trained_model_is_its_only_version(shared_client, tagger):
    answer = shared_client.get(f"{URL}/versions").json()
    assert answer["model"] == "foods"
    (only,) = answer["versions"]
    assert (only["number"], only["made_by"], only["is_current"], only["is_kept"]) == (1, "train", True, False)
    assert (only["n_documents"], only["held_out"]) == (tagger.labels_.n_documents, None)


@pytest.mark.slow
def test_feedback_is_learned_and_one_can_go_back(make_client, data_folder):
    client = make_client(data=str(data_folder), keep_versions=1)
    entries = [{"text": text, "added": ["drink > juice"], "allow_new_labels": True} for text in JUICES]
    client.post(f"{URL}/feedback", json=entries)
    assert client.get(URL).json()["n_new_feedback"] == len(JUICES)
    result = done(client, client.post(f"{URL}/learn"))
    assert (result["mode"], result["swapped"], result["version"]) == ("incremental", True, 2)
    assert result["held_out"]["from"] == "test.jsonl"
    assert names(client, "orange juice")[0] == "drink > juice"
    assert client.get(URL).json()["n_new_feedback"] == 0
    assert all(entry["learned"] for entry in client.get(f"{URL}/feedback").json()["feedback"])
    first, second = listed(client)
    assert (first["is_kept"], second["is_current"], second["data"]) == (True, True, "feedback")
    assert (second["n_new_documents"], second["new_labels"]) == (6, ["drink > juice"])
    new = second["held_out"]["new"]
    assert new["low"] <= new["value"] <= new["high"]

    back = client.post(f"{URL}/rollback", json={"to": 1})
    assert back.status_code == 200
    assert back.json() == {"model": "foods", "version": back.json()["version"], "number": 3, "restored": 1}
    assert client.get(URL).json()["version"] == back.json()["version"]
    assert "drink > juice" not in names(client, "orange juice")
    assert client.get(URL).json()["n_new_feedback"] == len(JUICES)
    assert [each["number"] for each in listed(client) if each["is_kept"]] == [2]  # --keep-versions 1
    gone = client.post(f"{URL}/rollback", json={"to": 1})
    assert (gone.status_code, "a rollback needs a version of" in gone.json()["detail"]) == (409, True)

    full = done(client, client.post(f"{URL}/learn", json={"full": True}))
    assert (full["mode"], full["n_feedback"], full["version"]) == ("full", 6, 4)
    assert client.get(URL).json()["n_new_feedback"] == 0


@pytest.mark.slow
def test_a_method_that_cannot_go_on_is_trained_again(make_client, data_folder, tmp_path):
    from labelspace.data.source import open_source

    folder = tmp_path / "popular"
    Tagger("popular").fit_dataset(open_source(data_folder).train()).save(folder)
    client = make_client(models={"foods": str(folder)}, database=f"sqlite:///{tmp_path / 'other.db'}")
    assert client.get(URL).json()["can_learn"] is False
    answer = client.post(f"{URL}/learn")
    assert (answer.status_code, "popular cannot go on learning" in answer.json()["detail"]) == (409, True)
    trained = make_client(
        models={"foods": str(folder)}, database=f"sqlite:///{tmp_path / 'other.db'}", data=str(data_folder)
    )
    assert done(trained, trained.post(f"{URL}/learn"))["mode"] == "full"


@pytest.mark.slow
def test_labels_are_added_renamed_merged_and_retired(client):
    body = {"name": "drink > juice", "alt": ["squash"], "description": "Pressed fruit.", "examples": JUICES}
    assert done(client, client.post(f"{URL}/labels", json=body))["action"] == "add"
    assert names(client, "orange juice")[0] == "drink > juice"

    rye = client.get(f"{URL}/labels/{RYE}").json()["id"]
    done(client, client.patch(f"{URL}/labels/{rye}", json={"name": "food > bread > dark", "description": "Of rye."}))
    done(client, client.patch(f"{URL}/labels/{rye}", json={"alt": ["ryebread"]}))
    assert client.get(f"{URL}/labels/{rye}").json()["description"] == "Of rye."
    assert names(client, "rye sourdough")[0] == "food > bread > dark"
    assert {RYE, "ryebread"} <= set(client.get(f"{URL}/labels/{rye}").json()["synonyms"])

    done(client, client.post(f"{URL}/labels/{WHEAT}/merge", json={"into": str(rye)}))
    assert WHEAT not in names(client, "wheat flour", 10)
    result = done(client, client.delete(f"{URL}/labels/{TEA}"))
    assert (result["action"], result["label"], result["version"]) == ("retire", TEA, 6)
    assert TEA not in names(client, "green tea leaves", 10)
    assert [each["made_by"] for each in listed(client)] == ["train", *["labels"] * 5]

    client.post(f"{URL}/rollback", json={"to": 1})
    assert names(client, "green tea leaves")[0] == TEA
    assert names(client, "rye sourdough")[0] == RYE


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        ("POST", "labels", {"name": RYE}, 400, "label names must be unique"),
        ("POST", "labels", {"name": "a\nb"}, 400, "one line"),
        ("POST", "labels", {"name": ""}, 422, "name"),
        ("POST", "labels", {"name": "new", "examples": ["text"] * 33}, 413, "at most 32 documents"),
        ("PATCH", "labels/nope", {"name": "new"}, 404, "search /labels?q="),
        ("PATCH", f"labels/{RYE}", {}, 400, "must have a name, further names or a description"),
        ("PATCH", f"labels/{RYE}", {"description": "\x1b[2J"}, 400, "a description without control characters"),
        ("POST", "labels", {"name": "new", "description": "a" * 10_001}, 400, "at most 10,000 characters"),
        ("PATCH", f"labels/{RYE}", {"name": TEA}, 400, "label names must be unique"),
        ("DELETE", "labels/nope", None, 404, "search /labels?q="),
        ("POST", f"labels/{RYE}/merge", {"into": "nope"}, 400, "search /labels?q="),
        ("POST", f"labels/{RYE}/merge", {"into": RYE}, 400, "is given twice"),
        ("POST", "labels/nope/merge", {"into": RYE}, 404, "search /labels?q="),
        ("POST", "rollback", {"to": 7}, 409, "a rollback needs"),
        ("POST", "rollback", {"to": 0}, 422, "to: "),
        ("POST", "rollback", {}, 422, "to: "),
        ("POST", "learn", {"force": "yes"}, 422, "force: "),
    ],
)
def test_bad_changes_get_one_line(shared_client, method, path, body, status, said):
    answer = shared_client.request(method, f"{URL}/{path}", json=body)
    assert (answer.status_code, said in answer.json()["detail"]) == (status, True), answer.json()


@pytest.mark.slow
def test_one_change_at_a_time(client):
    client.post(f"{URL}/feedback", json=[{"text": "rye", "accepted": [RYE]}])
    first = client.post(f"{URL}/learn")
    for again in (client.post(f"{URL}/learn"), client.delete(f"{URL}/labels/{RYE}")):
        assert again.status_code == 409
        assert "one change of a model runs at a time" in again.json()["detail"]
    done(client, first)


@pytest.mark.slow
def test_other_workers_notice_a_rollback(make_client, model_folder):
    """Each worker looks at the folder."""
    one = make_client()
    other = make_client()
    done(one, one.delete(f"{URL}/labels/{TEA}"))
    wait_until(lambda: TEA not in names(other, "green tea leaves", 10))
    one.post(f"{URL}/rollback", json={"to": 1})
    wait_until(lambda: TEA in names(other, "green tea leaves", 10))
