"""What the service says of itself: models, figures, map, counters, and whether it is ready."""

import re
import shutil
import threading

import pytest

from labelspace.data.source import open_source
from labelspace.errors import ClusterError, ModelError
from labelspace.experiment.evaluate import evaluate
from labelspace.server.served_model import LoadedModel, ServedModel
from labelspace.tagger import Tagger
from labelspace.version import __version__
from tests.server.conftest import wait_until

URL = "/v1/models/foods"


@pytest.fixture
def quick_look(monkeypatch):
    """Folders are looked at more often than usual."""
    monkeypatch.setattr("labelspace.server.loading.LOOK_SECONDS", 0.05)


def counter(client, name):
    """The value of a counter, 0 where it has not begun."""
    found = re.search(rf"^{re.escape(name)} (\S+)$", client.get("/metrics").text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def test_the_service(shared_client):
    answer = shared_client.get("/v1").json()
    assert (answer["name"], answer["version"], answer["models"]) == ("labelspace", __version__, ["foods", "odd"])
    assert (answer["authentication"], answer["read_only"]) == ("none", False)
    assert shared_client.get("/v1/").json() == answer  # as clients of Annif ask it


def test_a_model(shared_client, tagger):
    answer = shared_client.get(URL).json()
    assert (answer["id"], answer["method"], answer["n_labels"]) == ("foods", "blend", 10)
    assert {member["method"] for member in answer["members"]} == {"neighbors", "label_tree", "lexical"}
    assert answer["n_documents"] == tagger.labels_.n_documents
    assert re.fullmatch("[0-9a-f]{8}", answer["version"])
    assert answer["size_bytes"] > 0
    assert answer["labelspace_version"] == __version__
    flags = ("calibrated", "explains", "has_hierarchy", "has_map", "ready", "can_learn", "can_train")
    assert [answer[flag] for flag in flags] == [True, True, True, False, True, True, False]
    assert (answer["figures"], answer["n_feedback"], answer["n_new_feedback"]) == (None, 0, 0)


def test_thresholds_grow_with_the_precision_and_coverage_falls(shared_client):
    rows = shared_client.get(URL).json()["precision"]
    assert [row["precision"] for row in rows] == [round(0.5 + step / 100, 2) for step in range(50)]
    reached = [row for row in rows if row["threshold"] is not None]
    assert reached == rows[: len(reached)]
    for name, sign in (("threshold", 1), ("coverage", -1)):
        values = [sign * row[name] for row in reached]
        assert values == sorted(values)


def test_a_model_without_members_and_hierarchy(shared_client):
    answer = shared_client.get("/v1/models/odd").json()
    assert (answer["method"], answer["members"], answer["has_hierarchy"]) == ("label_tree", [], False)
    assert [each["id"] for each in shared_client.get("/v1/models").json()["models"]] == ["foods", "odd"]


def test_a_method_that_cannot_explain_says_so(make_client, tmp_path):
    folder = tmp_path / "popular"
    Tagger(method="popular").fit(["green tea", "green leaf"], [["tea"], ["leaf"]]).save(folder)
    client = make_client(models={"popular": str(folder)})
    assert client.get("/v1/models/popular").json()["explains"] is False
    answer = client.post("/v1/models/popular/explain", json={"text": "green"})
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json")
    assert "popular" in answer.json()["detail"]
    suggestions = client.post("/v1/models/popular/suggest", json={"text": "green"}).json()["suggestions"]
    assert {each["probability"] for each in suggestions} == {None}


# Figures and map


def test_figures_that_were_never_measured(shared_client):
    answer = shared_client.get(f"{URL}/figures")
    assert answer.status_code == 404
    assert "start the server with --data DATA" in answer.json()["detail"]


def test_figures_while_they_are_measured(client):
    client.app.state.server.database.start_job("foods", "evaluate")
    assert client.get(f"{URL}/figures").json() == {"state": "running"}


def test_figures_that_were_measured(client, tagger, data_folder):
    figures = evaluate(tagger, open_source(data_folder).test(tagger.labels_))
    version = client.get(URL).json()["version"]
    client.app.state.server.database.put_figures("foods", version, {"data": "test.jsonl", "figures": figures})
    answer = client.get(f"{URL}/figures").json()
    assert (answer["state"], answer["data"]) == ("ready", "test.jsonl")
    assert answer["figures"]["nDCG@5"] == pytest.approx(figures["nDCG@5"])
    assert all(drawn.startswith("<svg") for drawn in answer["svg"].values())
    assert set(answer["svg"]) == {"reliability", "precision_coverage"}
    assert client.get(URL).json()["figures"]["P@1"] == pytest.approx(figures["P@1"])


def test_a_map_needs_points(shared_client):
    answer = shared_client.get(f"{URL}/map")
    assert answer.status_code == 400
    assert "train with --method poincare" in answer.json()["detail"]


@pytest.mark.slow
def test_the_map_is_one_page_that_runs_its_own_scripts_alone(make_client, data_folder, tmp_path):
    folder = tmp_path / "disk"
    Tagger(method="poincare").fit_dataset(open_source(data_folder).train()).save(folder)
    client = make_client(models={"disk": str(folder)})
    assert client.get("/v1/models/disk").json()["has_map"] is True
    page = client.get("/v1/models/disk/map")
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert policy.count("sha256-") == page.text.count("<script") + page.text.count("<style")
    assert "frame-ancestors 'self'" in policy
    assert "unsafe" not in policy


# Readiness


def test_not_ready_before_the_model_is_loaded(make_client, monkeypatch):
    go_on, load = threading.Event(), ServedModel.load

    def late(model):
        assert go_on.wait(60)
        return load(model)

    monkeypatch.setattr(ServedModel, "load", late)
    client = make_client(ready=False)
    try:
        waiting = client.get("/readyz")
        assert (waiting.status_code, waiting.headers["retry-after"]) == (503, "1")
        assert waiting.json() == {"status": "not ready", "detail": "foods: is being loaded"}
        assert client.get("/livez").json()["status"] == "ok"
        assert client.get("/health").json()["status"] == "LOADING"
        for method, path in (("GET", URL), ("GET", "/v1/models"), ("POST", f"{URL}/suggest"), ("POST", "/setup")):
            answer = client.request(method, path, json={"text": "tea"} if path.endswith("suggest") else None)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            assert "the model foods must be loaded, but is not yet; try again" in answer.json()["detail"]
        assert client.get("/v1").status_code == 200
    finally:
        go_on.set()
    wait_until(lambda: client.get("/readyz").status_code == 200)
    assert client.get("/readyz").json() == {"status": "ready", "detail": None}


def test_a_model_that_is_missing_at_the_start_is_loaded_when_it_comes(make_client, model_folder, quick_look):
    away = model_folder.with_name("away")
    model_folder.rename(away)
    client = make_client(ready=False)
    wait_until(lambda: "is being loaded" not in client.get("/readyz").json()["detail"])
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert str(model_folder) in answer.json()["detail"]
    assert "\n" not in answer.json()["detail"]
    refused = client.post(f"{URL}/suggest", json={"text": "tea"})
    assert (refused.status_code, str(model_folder) in refused.json()["detail"]) == (503, True)
    away.rename(model_folder)
    wait_until(lambda: client.get("/readyz").status_code == 200)
    assert client.post(f"{URL}/suggest", json={"text": "tea"}).status_code == 200


def test_a_damaged_model_says_why(make_client, model_folder):
    array = max(model_folder.glob("*.safetensors"), key=lambda path: path.stat().st_size)
    array.write_bytes(array.read_bytes()[:-100])
    client = make_client(ready=False)
    wait_until(lambda: "is being loaded" not in client.get("/readyz").json()["detail"])
    assert client.get("/readyz").status_code == 503
    assert array.name in client.get("/readyz").json()["detail"]
    assert counter(client, 'labelspace_model_loads_total{model="foods",result="failed"}') == 1


def test_a_cluster_that_did_not_answer_is_asked_again_and_the_log_says_so_once(
    make_client, monkeypatch, quick_look, caplog
):
    load, failures = LoadedModel.load, ["a machine was lost"] * 3

    def lost_at_first(*arguments):
        if failures:
            raise ClusterError(failures.pop())
        return load(*arguments)

    monkeypatch.setattr(LoadedModel, "load", lost_at_first)
    client = make_client()
    assert client.post(f"{URL}/suggest", json={"text": "green tea"}).status_code == 200
    assert not failures
    assert [row.message for row in caplog.records].count("foods could not be loaded: a machine was lost") == 1


@pytest.mark.parametrize(("kind", "again"), [(ClusterError, True), (ModelError, False), (OSError, False)])
def test_a_load_is_tried_again_where_the_cluster_failed_and_not_the_model(model_folder, kind, again):
    def failing(folder):
        raise kind("no")

    model = ServedModel("foods", model_folder, failing)
    with pytest.raises(kind):
        model.load()
    assert model.is_replaced() == again


def test_the_old_model_is_served_on_where_the_new_one_is_damaged(client, model_folder):
    before = client.post(f"{URL}/suggest", json={"text": "green tea"}).json()
    (model_folder / "model.json").write_text("{}")
    reloaded = client.post(f"{URL}/reload")
    assert (reloaded.status_code, reloaded.headers["content-type"]) == (409, "application/problem+json")
    assert reloaded.json()["detail"].endswith("; the old model is still served")
    shutil.rmtree(model_folder)
    assert client.post(f"{URL}/reload").status_code == 409
    assert client.post(f"{URL}/suggest", json={"text": "green tea"}).json() == before
    assert client.get("/readyz").status_code == 200


def test_a_folder_that_is_replaced_is_noticed(make_client, model_folder, quick_look):
    client = make_client()
    before = client.get(URL).json()["version"]
    Tagger(method="popular").fit(["green tea", "green leaf"], [["tea"], ["leaf"]]).save(model_folder)
    wait_until(lambda: client.get(URL).json()["version"] != before)
    assert client.get(URL).json()["method"] == "popular"
    names = [each["label"] for each in client.post(f"{URL}/suggest", json={"text": "green"}).json()["suggestions"]]
    assert set(names) <= {"tea", "leaf"}


def test_reading_the_folder_again_without_a_change(client):
    version = client.get(URL).json()["version"]
    answer = client.post(f"{URL}/reload").json()
    assert answer == {"model": "foods", "version": version, "previous": version, "changed": False}


def test_learning_without_data(shared_client):
    answer = shared_client.post(f"{URL}/learn", json={"full": True})
    assert answer.status_code == 409
    assert "start it with --data DATA" in answer.json()["detail"]


@pytest.mark.parametrize("job", ["nope", "%00", "x" * 201])
def test_a_job_that_is_none(shared_client, job):
    answer = shared_client.get(f"/v1/jobs/{job}")
    assert answer.status_code in (400, 404, 422)
    assert "id" in answer.json()["detail"]
    assert shared_client.get("/v1/jobs").json() == {"jobs": []}


# Counters


def test_counters(client):
    suggest = 'labelspace_requests_total{method="POST",route="/v1/models/{model}/suggest",status="200"}'
    documents = 'labelspace_documents_total{model="foods"}'
    before = {name: counter(client, name) for name in (suggest, documents, "labelspace_batch_documents_count")}
    client.post(f"{URL}/suggest", json={"text": "tea"})
    client.post(f"{URL}/suggest-batch", json={"documents": [{"text": "tea"}] * 3})
    client.post(f"{URL}/feedback", json=[{"text": "tea", "accepted": ["drink"]}])
    assert counter(client, suggest) - before[suggest] == 1
    assert counter(client, documents) - before[documents] == 4
    assert counter(client, "labelspace_batch_documents_count") - before["labelspace_batch_documents_count"] == 2
    assert counter(client, 'labelspace_feedback_total{model="foods"}') == 1
    assert counter(client, "labelspace_requests_in_progress") == 1  # the question itself
    assert client.get("/metrics").headers["content-type"].startswith("text/plain; version=0.0.4")
