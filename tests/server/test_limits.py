"""What a request may ask for: bytes, documents, characters, labels, company and time."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict

import pytest

from labelspace.errors import ParameterError
from labelspace.server.settings import RequestLimits
from tests.server.conftest import serving, wait_until

URL = "/v1/models/foods"
LIMITS = RequestLimits(max_body_bytes=2000, max_documents=3, max_text_characters=100, max_k=4, timeout_seconds=20)
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def limited(trained, tmp_path_factory):
    """A client of a server that takes little; no test changes it."""
    with serving({"foods": trained}, tmp_path_factory.mktemp("limited"), limits=LIMITS) as client:
        yield client


def body_of(n_bytes):
    """A valid request with so many bytes."""
    body = b'{"text": "rye", "k": 1}'
    return body + b" " * (n_bytes - len(body))


def refused(answer, status, said):
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    assert said in answer.json()["detail"]
    return True


@contextmanager
def held_up(monkeypatch, client):
    """A request that is under way until the end of the block; gives the future of its answer."""
    begun, go_on = threading.Event(), threading.Event()

    def wait(*_):
        begun.set()
        assert go_on.wait(60)
        return []

    monkeypatch.setattr("labelspace.server.routes.labels.found_labels", wait)
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(client.get, f"{URL}/labels")
        try:
            assert begun.wait(60)
            yield answer
        finally:
            go_on.set()


def test_a_body_of_known_length(limited):
    assert limited.post(f"{URL}/suggest", content=body_of(2000), headers=JSON).status_code == 200
    answer = limited.post(f"{URL}/suggest", content=body_of(2001), headers=JSON)
    assert refused(answer, 413, "a body must have at most 2000 bytes, but has more")


def test_a_body_without_a_length(limited):
    for n_bytes, status in ((2000, 200), (2001, 413), (50_000, 413)):
        body = body_of(n_bytes)
        parts = (body[start : start + 500] for start in range(0, len(body), 500))
        answer = limited.post(f"{URL}/suggest", content=parts, headers=JSON)
        assert "content-length" not in answer.request.headers
        assert answer.status_code == status
    assert refused(answer, 413, "a body must have at most 2000 bytes, but has more")


@pytest.mark.parametrize("path", ["/v1/projects/foods/suggest", "/predict", f"{URL}/feedback", "/webhook"])
def test_every_body_is_limited(limited, path):
    def parts():
        for _ in range(5):
            yield b"text=" + b"x" * 500

    kind = "application/x-www-form-urlencoded" if path.startswith("/v1/projects") else "application/json"
    answer = limited.post(path, content=parts(), headers={"Content-Type": kind})
    assert refused(answer, 413, "a body must have at most 2000 bytes, but has more")


@pytest.mark.parametrize("size", ["-1", "1e3", "many", "", "99999999999999999999999"])
def test_a_length_that_is_none(limited, size):
    answer = limited.post(f"{URL}/suggest", content=b"{}", headers={**JSON, "Content-Length": size})
    assert answer.status_code == 413


def test_documents_of_a_batch(limited):
    for n, status in ((3, 200), (4, 413)):
        rows = [{"text": "rye"}] * n
        annif = limited.post("/v1/projects/foods/suggest-batch", json={"documents": rows, "k": 1}, params={"limit": 1})
        own = limited.post(f"{URL}/suggest-batch", json={"documents": rows, "k": 1})
        hugging_face = limited.post("/predict", json={"inputs": ["rye"] * n, "parameters": {"top_k": 1}})
        assert [each.status_code for each in (annif, own, hugging_face)] == [status] * 3
    assert refused(own, 413, "a batch must have at most 3 documents, but has 4; send several batches")
    tasks = limited.post("/predict", json={"tasks": [{"data": {"text": "rye"}}] * 4})
    learned = limited.post("/v1/projects/foods/learn", json=[{"text": "rye", "subjects": [{"uri": "drink"}]}] * 4)
    assert refused(tasks, 413, "at most 3 documents")
    assert refused(learned, 413, "at most 3 documents")


def test_labels_per_document(limited):
    assert len(limited.post(f"{URL}/suggest", json={"text": "rye", "k": 4}).json()["suggestions"]) == 4
    for path, body in (
        ("suggest", {"text": "rye", "k": 5}),
        ("suggest-batch", {"documents": [{"text": "rye"}], "k": 5}),
        ("explain", {"text": "rye", "k": 5}),
    ):
        answer = limited.post(f"{URL}/{path}", json=body)
        assert refused(answer, 400, "k must be at most 4, but is 5; ask for fewer labels"), path
    answer = limited.post(f"{URL}/explain", json={"text": "rye", "labels": ["drink"] * 5})
    assert refused(answer, 400, "at most 4, but")


def test_more_labels_than_there_are(shared_client):
    found = shared_client.post(f"{URL}/suggest", json={"text": "rye sourdough tea coffee tuna salmon", "k": 100}).json()
    assert 0 < len(found["suggestions"]) <= 10


def test_characters_of_a_text(limited):
    for n, status in ((100, 200), (101, 413)):
        text = "🍞" * n  # four bytes, one character
        answers = [
            limited.post(f"{URL}/suggest", json={"text": text, "k": 1}),
            limited.post(f"{URL}/suggest-batch", json={"documents": [{"text": text}], "k": 1}),
            limited.post(f"{URL}/explain", json={"text": text, "k": 1}),
            limited.post("/v1/projects/foods/suggest", data={"text": text, "limit": 1}),
            limited.post("/predict", json={"inputs": text, "parameters": {"top_k": 1}}),
        ]
        assert [answer.status_code for answer in answers] == [status] * len(answers)
    assert refused(answers[0], 413, "a text must have at most 100 characters, but has 101; send a part of it")


def test_feedback_has_the_same_limits(limited):
    entry = {"text": "x" * 101, "accepted": ["drink"]}
    assert refused(limited.post(f"{URL}/feedback", json=[entry]), 413, "at most 100 characters, but has 101")
    entry["text"] = "x"
    assert refused(limited.post(f"{URL}/feedback", json=[entry] * 4), 413, "at most 3 documents, but has 4")


def test_requests_at_once(make_client, monkeypatch):
    client = make_client(limits=RequestLimits(max_concurrent_requests=1))
    with held_up(monkeypatch, client) as answer:
        for method, path in (("GET", "/v1"), ("POST", f"{URL}/suggest"), ("GET", "/")):
            busy = client.request(method, path)
            assert refused(busy, 429, "a worker answers at most 1 requests at once, but has as many")
            assert busy.headers["retry-after"] == "1"
        never_busy = [client.get(path).status_code for path in ("/livez", "/readyz", "/metrics")]
        assert never_busy == [200, 200, 200]
    assert answer.result().status_code == 200
    assert client.get("/v1").status_code == 200


def test_requests_that_are_refused_do_not_keep_others_out(make_client, monkeypatch):
    client = make_client(limits=RequestLimits(max_concurrent_requests=2))
    with held_up(monkeypatch, client):
        for _ in range(5):
            assert client.get("/v1/models/nope").status_code == 404
            assert client.get("/v1").status_code == 200


def test_an_answer_that_takes_too_long(make_client, monkeypatch):
    client = make_client(limits=RequestLimits(timeout_seconds=0.2))
    with held_up(monkeypatch, client) as answer:
        assert refused(answer.result(), 503, "an answer must take at most 0.2 s, but this one took longer")
        assert answer.result().headers["retry-after"] == "1"
    wait_until(lambda: "labelspace_requests_in_progress 1.0" in client.get("/metrics").text)  # the question itself


def test_the_service_says_its_limits(limited):
    assert limited.get("/v1").json()["limits"] == asdict(LIMITS)


@pytest.mark.parametrize("name", list(asdict(RequestLimits())))
@pytest.mark.parametrize("value", [0, -1])
def test_limits_are_above_zero(name, value):
    option = f"--{name.replace('_', '-')}"
    with pytest.raises(ParameterError, match=f"{option} must be above 0, but is {value}; leave it out for"):
        RequestLimits(**{name: value})


@pytest.mark.parametrize(
    "body",
    [b"[" * 100_000, b'{"a":' * 20_000, b"\xff", b'{"text": "tea", "k": ' + b"9" * 6000 + b"}", b"\x00", b"nul"],
    ids=["deep list", "deep object", "no UTF-8", "long number", "NUL", "no JSON"],
)
def test_bodies_that_cannot_be_read(shared_client, body):
    answer = shared_client.post(f"{URL}/suggest", content=body, headers=JSON)
    assert answer.status_code in (400, 422)
    assert answer.json()["detail"].startswith(("a body must match its content type", "the body must be JSON"))


@pytest.mark.parametrize("value", ["1e400", "-1e400", "NaN", "Infinity", "1.0", "true", "null", '"5"'])
def test_numbers_that_are_no_count(shared_client, value):
    answer = shared_client.post(f"{URL}/suggest", content=f'{{"text": "a", "k": {value}}}', headers=JSON)
    assert answer.status_code == 422
    assert "k: input should be a valid integer" in answer.json()["detail"]


def test_lone_surrogates_and_nul_are_texts_too(shared_client):
    for text in (r"\ud800 green tea", r"green\u0000tea", r"green tea \ud83c"):
        body = f'{{"text": "{text}", "explain": true, "k": 1}}'
        answer = shared_client.post(f"{URL}/suggest", content=body, headers=JSON)
        assert answer.status_code == 200, answer.text
        best = answer.json()["suggestions"][0]
        assert best["label"].startswith("drink")
        given = json.loads(body)["text"]
        assert all(given[word["start"] : word["end"]] == word["text"] for word in best["explanation"]["words"])
