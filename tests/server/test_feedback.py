"""Decisions over HTTP: stored before the answer, once, and only what makes sense; taken back on request."""

import json
import sqlite3
from urllib.parse import quote

import pytest

from labelspace.server.settings import RequestLimits

URL = "/v1/models/foods/feedback"
RYE, TEA, TUNA = "food > bread > rye", "drink > tea", "food > fish > tuna"


def stored(client):
    return client.get(URL).json()["feedback"]


def counts(client):
    return client.get("/v1/models/foods").json()["n_inbox"]


def into_inbox(client, text="a cup of tea and a loaf"):
    assert client.post("/v1/models/foods/review", json={"documents": [{"id": "mine", "text": text}]}).status_code == 201
    return client.get("/v1/models/foods/review").json()["documents"][0]["id"]


def test_what_is_sent_is_stored(client):
    entry = {"id": "7", "text": "rye 🍞", "accepted": [RYE], "rejected": [TEA], "added": [TUNA], "by": "anna"}
    answer = client.post(URL, json=[entry])
    assert (answer.status_code, answer.json()) == (201, {"stored": 1, "ids": ["7"]})
    found = stored(client)
    version = client.get("/v1/models/foods").json()["version"]
    assert found == [{**entry, "document": None, "version": version, "created": found[0]["created"], "learned": False}]
    assert found[0]["created"].endswith("+00:00")


def test_it_is_on_disk_before_the_answer(client, tmp_path):
    client.post(URL, json=[{"id": "1", "text": "rye", "accepted": [RYE]}])
    with sqlite3.connect(f"file:{tmp_path / 'feedback.db'}?mode=ro", uri=True) as other:
        assert other.execute("SELECT id FROM labelspace_feedback").fetchall() == [("1",)]
    other.close()


def test_an_id_that_is_sent_twice_is_stored_once(client):
    entry = {"id": "7", "text": "rye", "accepted": [RYE]}
    assert [client.post(URL, json=[entry]).status_code for _ in range(2)] == [201, 201]
    assert client.get(URL).json()["total"] == 1
    answer = client.post(URL, json=[{**entry, "accepted": [TEA]}])
    assert answer.status_code == 400
    assert "ids of feedback must be unique, but '7' is stored with another text" in answer.json()["detail"]
    assert stored(client)[0]["accepted"] == [RYE]


def test_without_an_id_each_is_new(client):
    ids = [client.post(URL, json=[{"text": "rye", "accepted": [RYE]}]).json()["ids"][0] for _ in range(2)]
    assert len(set(ids)) == 2
    assert [each["id"] for each in stored(client)] == ids


def test_a_label_that_is_named_twice_counts_once(client):
    client.post(URL, json=[{"text": "rye", "accepted": [RYE, RYE]}])
    assert stored(client)[0]["accepted"] == [RYE]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"accepted": ["rye"]}, "a label must be one of the model's 10, but 'rye' is none"),
        ({"rejected": ["rye"]}, "a label must be one of the model's 10, but 'rye' is none"),
        ({"added": ["brand new"]}, "send it in added with allow_new_labels"),
        ({"accepted": ["brand new"], "allow_new_labels": True}, "send it in added with allow_new_labels"),
        ({"accepted": [RYE], "rejected": [RYE]}, f"a label is right or wrong, but '{RYE}' is in both lists"),
        ({"added": [RYE], "rejected": [RYE]}, "is in both lists; leave one out"),
        ({}, "feedback must name a label, but accepted, rejected and added are empty"),
        ({"accepted": [RYE], "document": "nope"}, "document must be the id of a document in the inbox"),
    ],
)  # fmt: skip
def test_feedback_that_makes_no_sense_is_refused(shared_client, entry, said):
    answer = shared_client.post(URL, json=[{"text": "rye", "accepted": [RYE]}, {"text": "rye", **entry}])
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json")
    assert said in answer.json()["detail"]
    assert shared_client.get(URL).json()["total"] == 0  # the good one of the same request neither


def test_new_labels_are_taken_where_they_are_said_to_be_new(client):
    entry = {"text": "rye", "added": ["brand new"], "allow_new_labels": True}
    assert client.post(URL, json=[entry]).status_code == 201
    assert stored(client)[0]["added"] == ["brand new"]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ([], 422, "list should have at least 1 item"),
        ({}, 422, "the body: input should be a valid list"),
        ([{"text": "", "accepted": [RYE]}], 422, "0.text: string should have at least 1 character"),
        ([{"accepted": [RYE]}], 422, "0.text: field required"),
        ([{"text": "a", "accepted": RYE}], 422, "0.accepted: input should be a valid list"),
        ([{"text": "a", "accepted": [1]}], 422, "0.accepted.0: input should be a valid string, but is 1"),
        ([{"text": "a", "accepted": [""]}], 422, "0.accepted.0: string should have at least 1 character"),
        ([{"text": "a", "accepted": [RYE] * 1001}], 422, "0.accepted: list should have at most 1000 items"),
        ([{"id": "", "text": "a", "accepted": [RYE]}], 422, "0.id: string should have at least 1 character"),
        ([{"id": "x" * 201, "text": "a", "accepted": [RYE]}], 422, "0.id: string should have at most 200 characters"),
        ([{"text": "a", "labels": [RYE]}], 422, "0.labels: extra inputs are not permitted"),
        ([{"text": "a", "accepted": [RYE]}] * 33, 413, "a batch must have at most 32 documents, but has 33"),
    ],
)  # fmt: skip
def test_bad_requests_get_one_line(shared_client, body, status, said):
    answer = shared_client.post(URL, json=body)
    assert answer.status_code == status
    assert said in answer.json()["detail"]
    assert "\n" not in answer.json()["detail"]
    assert len(answer.json()["detail"]) < 400


def test_as_many_entries_as_the_limit_are_taken(make_client):
    client = make_client(limits=RequestLimits(max_documents=2))
    entry = {"text": "a", "accepted": [RYE]}
    assert client.post(URL, json=[entry] * 2).status_code == 201
    assert client.post(URL, json=[entry] * 3).status_code == 413
    assert client.get(URL).json()["total"] == 2


@pytest.mark.parametrize("bad", ["\x00", "\ud800", "a \udfff z"])
@pytest.mark.parametrize("field", ["id", "text", "by", "accepted", "added", "document"])
def test_what_no_database_stores_is_refused_in_one_line(shared_client, field, bad):
    entry = {"text": "rye", "accepted": [RYE], "allow_new_labels": True}
    entry[field] = [bad] if field in ("accepted", "added") else bad
    answer = shared_client.post(URL, content=json.dumps([entry]), headers={"Content-Type": "application/json"})
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    detail = answer.json()["detail"]
    assert detail.isascii()  # so that every terminal and log can show it
    assert detail.isprintable()


def test_withdrawn_feedback_is_gone(client):
    client.post(URL, json=[{"id": key, "text": "rye", "accepted": [RYE]} for key in "ab"])
    answer = client.delete(f"{URL}/a")
    assert (answer.status_code, answer.json()) == (200, {"withdrawn": "a"})
    assert [each["id"] for each in stored(client)] == ["b"]
    again = client.delete(f"{URL}/a")
    assert again.status_code == 404
    assert "the id must be that of stored feedback, but 'a' is not" in again.json()["detail"]


def test_any_id_can_be_withdrawn(client):
    for key in ("a/b", "two\nlines", "é ?#%", "a/../b"):
        assert client.post(URL, json=[{"id": key, "text": "rye", "accepted": [RYE]}]).status_code == 201
        assert client.delete(f"{URL}/{quote(key, safe='')}").json() == {"withdrawn": key}
        assert stored(client) == []


@pytest.mark.parametrize("key", ["%00", "%ED%A0%80", "x" * 300, ""])
def test_ids_that_cannot_be(shared_client, key):
    answer = shared_client.delete(f"{URL}/{key}")
    assert answer.status_code in (400, 404)
    assert "id must" in answer.json()["detail"]


def test_feedback_on_a_document_of_the_inbox_makes_it_done_until_it_is_withdrawn(client):
    document = into_inbox(client)
    client.post(URL, json=[{"id": "1", "text": "a cup of tea", "accepted": [TEA], "document": document}])
    assert counts(client) == {"pending": 0, "done": 1, "skipped": 0}
    client.delete(f"{URL}/1")
    assert counts(client) == {"pending": 1, "done": 0, "skipped": 0}


def test_a_document_with_two_decisions_is_done_until_both_are_withdrawn(client):
    document = into_inbox(client)
    for key in "12":
        client.post(URL, json=[{"id": key, "text": "a cup of tea", "accepted": [TEA], "document": document}])
    client.delete(f"{URL}/1")
    assert counts(client)["done"] == 1
    client.delete(f"{URL}/2")
    assert counts(client)["pending"] == 1


def test_feedback_is_listed_in_pages_oldest_first(client):
    for key in "abcde":
        client.post(URL, json=[{"id": key, "text": "rye", "accepted": [RYE]}])
    pages = [client.get(URL, params={"limit": 2, "offset": start}).json() for start in (0, 2, 4, 6)]
    assert [each["id"] for page in pages for each in page["feedback"]] == list("abcde")
    assert {page["total"] for page in pages} == {5}
    assert client.get(URL, params={"limit": 1001}).status_code == 422
    assert client.get("/v1/models/foods").json()["n_feedback"] == 5


def test_feedback_of_an_unknown_model(shared_client):
    for answer in (
        shared_client.post("/v1/models/nope/feedback", json=[{"text": "a", "accepted": [RYE]}]),
        shared_client.get("/v1/models/nope/feedback"),
        shared_client.delete("/v1/models/nope/feedback/1"),
    ):
        assert answer.status_code == 404
        assert "a model must be one of foods, odd, but is 'nope'" in answer.json()["detail"]


def test_feedback_outlives_the_server(make_client):
    make_client().post(URL, json=[{"id": "1", "text": "rye", "accepted": [RYE]}])
    assert [each["id"] for each in stored(make_client())] == ["1"]
