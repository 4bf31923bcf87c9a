"""The ordinary server with its models on a cluster, and what `labelspace serve` refuses."""

import json
import time
from contextlib import contextmanager
from dataclasses import asdict

import pytest

pytest.importorskip("fastapi", reason="the extra serve is not installed")

from fastapi.testclient import TestClient  # noqa: E402 - after the check that it is there

from labelspace.cluster import connect  # noqa: E402
from labelspace.cluster.serving import serving  # noqa: E402
from labelspace.server.app import create_app  # noqa: E402
from labelspace.server.settings import Settings  # noqa: E402
from labelspace.tagger import Tagger  # noqa: E402

FOODS = {"bread": "rye sourdough crust", "fish": "salmon tuna river", "tea": "green leaves cup"}


@pytest.fixture
def folder(tmp_path):
    texts = [f"{word} {way}" for words in FOODS.values() for word in words.split() for way in ("old", "new", "best")]
    Tagger("label_tree").fit(texts, [[label] for label in FOODS for _ in range(9)]).save(tmp_path / "foods")
    return tmp_path / "foods"


@contextmanager
def client_of(folder, **settings):
    given = Settings({"foods": str(folder)}, database=f"sqlite:///{folder.parent / 'feedback.db'}", **settings)
    with TestClient(create_app(given), base_url="http://127.0.0.1:8000") as client:
        while client.get("/readyz").status_code != 200:
            time.sleep(0.05)
        yield client


QUESTIONS = {
    "suggest": {"text": "an old salmon", "k": 3, "explain": True},
    "suggest-batch": {"documents": [{"id": "1", "text": "green tea"}, {"id": "2", "text": ""}], "exclude": ["fish"]},
    "explain": {"text": "rye crust", "labels": ["tea"]},
}


def asked(client):
    return {path: client.post(f"/v1/models/foods/{path}", json=body).json() for path, body in QUESTIONS.items()}


@pytest.mark.slow
def test_a_server_on_a_cluster_answers_as_another(folder, three_nodes):
    with client_of(folder) as client:
        expected = asked(client)
    assert expected["suggest"]["suggestions"][0]["label"] == "fish"
    with connect(three_nodes.address) as cluster:
        for n, sharded in ((2, True), (1, False)):
            with serving(cluster, {"foods": str(folder)}, n, sharded) as served:
                assert json.loads(json.dumps(asdict(served))) == asdict(served)
                with client_of(folder, cluster=asdict(served)) as client:
                    assert asked(client) == expected
                    bad = client.post("/v1/models/foods/suggest", json={"text": "a", "include": ["unheard of"]})
                    assert bad.status_code == 400


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--shards", 2), "but there is none; add --cluster"),
        (("--cluster", "local"), "but neither is given; use --replicas N for load"),
        (("--cluster", "local", "--shards", 2, "--replicas", 2), "but both are given"),
        (("--cluster", "nowhere", "--shards", 2), "a cluster must be local, auto, ray://HOST:PORT"),
    ],
)
def test_options_that_do_not_go_together_are_refused_in_one_line(run, folder, options, said):
    code, _, err = run("serve", folder, "--port", 0, *options)
    assert code == 2
    assert err.count("\n") == 1
    assert said in err
