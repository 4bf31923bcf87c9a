"""The inbox over HTTP: documents in, the most telling ones out first, skipped and taken up again."""

import json

import pytest

from labelspace.server.routes import feedback
from labelspace.server.routes.feedback import review_values
from labelspace.server.served_model import LoadedModel
from labelspace.server.settings import RequestLimits
from labelspace.tagger import Tagger
from tests.server.conftest import documents, wait_until

URL = "/v1/models/foods/review"
CLEAR = "green tea leaves cup lemon"
UNCLEAR = "salmon tea rye coffee"
TEXTS = [CLEAR, UNCLEAR, "tuna steak", "baguette and espresso"]
ORDERS = ("uncertain", "uncertainty", "disagreement", "rare", "random")


def add(client, texts, url=URL):
    return client.post(url, json={"documents": [{"id": f"n{at}", "text": text} for at, text in enumerate(texts)]})


def review(client, url=URL, **query):
    answer = client.get(url, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def values(client, order, url=URL):
    return {each["text"]: each["value"] for each in review(client, url, order=order)["documents"]}


def test_a_text_is_stored_once(client):
    answer = add(client, [CLEAR, UNCLEAR, CLEAR])
    assert (answer.status_code, answer.json()) == (201, {"stored": 2, "known": 1})
    assert add(client, [CLEAR, "tuna"]).json() == {"stored": 1, "known": 1}
    found = review(client)
    assert found["progress"] == {"pending": 3, "done": 0, "skipped": 0}
    assert {each["text"]: each["document"] for each in found["documents"]} == {CLEAR: "n0", UNCLEAR: "n1", "tuna": "n1"}
    assert len({each["id"] for each in found["documents"]}) == 3


def test_values_are_those_of_the_library_and_the_highest_comes_first(client, trained):
    add(client, TEXTS)
    expected = dict(zip(TEXTS, review_values(LoadedModel.load(trained), TEXTS), strict=True))
    for order in ORDERS:
        found = values(client, order)
        assert list(found.values()) == sorted(found.values(), reverse=True)
        stored_as = "uncertainty" if order == "uncertain" else order
        assert found == pytest.approx({text: of_text[stored_as] for text, of_text in expected.items()})


def test_an_unclear_text_comes_before_a_clear_one(client):
    add(client, [CLEAR, UNCLEAR])
    found = values(client, "uncertainty")
    assert found[UNCLEAR] > found[CLEAR]
    assert [each["text"] for each in review(client)["documents"]] == [UNCLEAR, CLEAR]


def test_only_labels_with_few_documents_count_as_rare(client, make_client, tmp_path):
    add(client, [UNCLEAR])
    assert values(client, "rare") == {UNCLEAR: 0.0}  # each label has more than five
    rows = [row for row in documents() if "food > fish > tuna" not in row["labels"]]
    rows += [{"text": f"tuna {word}", "labels": ["food > fish > tuna"]} for word in ("steak", "ocean")]
    folder = tmp_path / "rare" / "foods"
    Tagger(method="neighbors").fit([row["text"] for row in rows], [row["labels"] for row in rows]).save(folder)
    rare = make_client(models={"foods": str(folder)}, database=f"sqlite:///{tmp_path / 'rare.db'}")
    add(rare, ["tuna and tea", "coffee and tea"])
    found = values(rare, "rare")
    assert found["tuna and tea"] > found["coffee and tea"] == 0.0


def test_the_random_order_is_the_same_for_every_server_and_another_than_that_of_the_inbox(
    client, make_client, tmp_path
):
    texts = [f"text {number}" for number in range(12)]
    other = make_client(database=f"sqlite:///{tmp_path / 'other.db'}")
    add(client, texts)
    add(other, texts[::-1])
    assert values(client, "random") == values(other, "random")
    assert list(values(client, "random")) == list(values(other, "random"))
    assert list(values(client, "random")) not in (texts, texts[::-1])
    assert all(0 <= value < 1 for value in values(client, "random").values())


def test_a_model_without_members_and_probabilities(make_client, odd):
    client = make_client(models={"odd": str(odd)})
    url = "/v1/models/odd/review"
    add(client, ["alpha one", "alpha beta"], url)
    found = values(client, "uncertainty", url)
    assert 0 <= found["alpha one"] < found["alpha beta"] <= 1
    refused = client.get(url, params={"order": "disagreement"})
    assert refused.status_code == 400
    assert "label_tree" in refused.json()["detail"]
    refused = client.get(url, params={"order": "suspicious"})
    assert refused.status_code == 400
    assert "a probability needs a method that is calibrated" in refused.json()["detail"]


def decided(client, text, id, labels):
    """Add a document, and accept labels of it."""
    add(client, [text])
    at = {each["text"]: each["id"] for each in review(client, n=100)["documents"]}[text]
    entry = {"id": id, "text": text, "accepted": labels, "document": at}
    assert client.post("/v1/models/foods/feedback", json=[entry]).is_success
    return at


def test_a_decision_that_the_model_finds_impossible_gets_a_second_look(client):
    assert review(client, order="suspicious")["documents"] == []
    wrong = decided(client, CLEAR, "1", ["food > fish > salmon"])
    decided(client, "salmon fillet smoked river", "2", ["food > fish > salmon"])
    found = review(client, order="suspicious")
    assert [(each["id"], each["text"]) for each in found["documents"]] == [(wrong, CLEAR)]
    assert 0 < found["documents"][0]["value"] <= 1
    assert found["progress"]["done"] == 2
    entry = {"id": "3", "text": CLEAR, "accepted": ["drink > tea"], "document": wrong}
    client.post("/v1/models/foods/feedback", json=[entry])
    assert review(client, order="suspicious")["documents"] == []  # decided twice


def test_values_of_an_older_definition_are_made_again(client, monkeypatch):
    add(client, TEXTS)
    before = values(client, "uncertain")
    monkeypatch.setattr(feedback, "DEFINITION", 3)
    monkeypatch.setattr(feedback, "review_values", lambda model, texts: [{"uncertainty": 0.5}] * len(texts))
    assert values(client, "uncertain") == dict.fromkeys(before, 0.5)


def test_as_many_as_are_asked_for(client):
    add(client, TEXTS)
    assert [len(review(client, n=n)["documents"]) for n in (1, 3, 100)] == [1, 3, 4]
    assert review(client, n=1)["documents"] == review(client, n=4)["documents"][:1]


def test_skip_and_take_up_again(client):
    add(client, TEXTS)
    first = review(client)["documents"][0]
    answer = client.post(f"{URL}/{first['id']}", json={"status": "skipped"})
    assert answer.json() == {"id": first["id"], "status": "skipped"}
    found = review(client)
    assert found["progress"] == {"pending": 3, "done": 0, "skipped": 1}
    assert first["id"] not in {each["id"] for each in found["documents"]}
    client.post(f"{URL}/{first['id']}", json={"status": "pending"})
    assert review(client)["documents"][0] == first


def test_a_document_that_was_decided_on_is_done(client):
    add(client, TEXTS)
    first = review(client)["documents"][0]
    entry = {"id": "1", "text": first["text"], "accepted": ["drink > tea"], "document": first["id"]}
    client.post("/v1/models/foods/feedback", json=[entry])
    assert review(client)["progress"] == {"pending": 3, "done": 1, "skipped": 0}
    client.delete("/v1/models/foods/feedback/1")
    assert review(client)["documents"][0] == first


def test_values_are_made_again_when_the_model_changes(client, model_folder):
    add(client, TEXTS)
    skipped = review(client)["documents"][-1]
    client.post(f"{URL}/{skipped['id']}", json={"status": "skipped"})
    before = values(client, "uncertainty")
    rows = documents()[::3]
    Tagger(method="neighbors").fit([row["text"] for row in rows], [row["labels"] for row in rows]).save(model_folder)
    assert client.post("/v1/models/foods/reload").json()["changed"] is True
    texts = list(before)
    expected = review_values(LoadedModel.load(model_folder), texts)
    after = values(client, "uncertainty")
    assert after == pytest.approx({text: found["uncertainty"] for text, found in zip(texts, expected, strict=True)})
    assert after != before
    client.post(f"{URL}/{skipped['id']}", json={"status": "pending"})  # of the old version until it is asked for
    expected = review_values(LoadedModel.load(model_folder), [skipped["text"]])[0]["uncertainty"]
    assert values(client, "uncertainty")[skipped["text"]] == pytest.approx(expected)


def test_a_file_of_documents(make_client, tmp_path):
    inbox = tmp_path / "inbox.jsonl"
    rows = [{"id": str(at), "text": text} for at, text in enumerate([*TEXTS, CLEAR, "", "  "])]
    inbox.write_text("".join(json.dumps(row) + "\n" for row in rows))
    client = make_client(inbox=str(inbox))
    wait_until(lambda: review(client)["progress"]["pending"] == len(TEXTS))
    found = review(client)["documents"]
    assert {each["text"]: each["document"] for each in found} == {text: str(at) for at, text in enumerate(TEXTS)}
    assert [each["value"] for each in found] == sorted((each["value"] for each in found), reverse=True)
    assert found[-1]["value"] > 0  # all were scored before the first answer


def test_a_file_that_is_read_again_adds_nothing(make_client, tmp_path, caplog):
    caplog.set_level("INFO", "labelspace.server")
    inbox = tmp_path / "inbox.txt"
    inbox.write_text("\n".join(TEXTS) + "\n")
    first = make_client(inbox=str(inbox))
    wait_until(lambda: "4 documents of the file are new, 0 were there" in caplog.text)
    done = review(first)["documents"][0]["id"]
    first.post(f"{URL}/{done}", json={"status": "skipped"})
    again = make_client(inbox=str(inbox))
    wait_until(lambda: "0 documents of the file are new, 4 were there" in caplog.text)
    assert review(again)["progress"] == {"pending": 3, "done": 0, "skipped": 1}


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({}, 422, "documents: field required"),
        ({"documents": []}, 422, "documents: list should have at least 1 item"),
        ({"documents": [{"id": "1"}]}, 422, "documents.0.text: field required"),
        ({"documents": [{"text": "a", "labels": []}]}, 422, "documents.0.labels: extra inputs are not permitted"),
        ({"documents": [{"text": "a"}] * 33}, 413, "a batch must have at most 32 documents, but has 33"),
        ({"documents": [{"text": "a\x00"}]}, 400, "text must be without NUL and lone surrogates"),
        ({"documents": [{"text": "a", "id": "\x00"}]}, 400, "the id of a document must be without NUL"),
    ],
)  # fmt: skip
def test_bad_documents_get_one_line(shared_client, body, status, said):
    answer = shared_client.post(URL, json=body)
    assert answer.status_code == status
    assert said in answer.json()["detail"]


def test_lone_surrogates_get_one_line(shared_client):
    answer = shared_client.post(
        URL, content=b'{"documents": [{"text": "a \\ud800"}]}', headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 400
    assert "must be without NUL and lone surrogates" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("nope", {"status": "skipped"}, 404, "the id must be that of a document of the inbox, but 'nope' is not"),
        ("nope", {"status": "done"}, 422, "status: input should be 'skipped' or 'pending', but is \"done\""),
        ("nope", {}, 422, "status: field required"),
        ("%00", {"status": "skipped"}, 400, "id must be without NUL"),
    ],
)  # fmt: skip
def test_bad_states_get_one_line(shared_client, path, body, status, said):
    answer = shared_client.post(f"{URL}/{path}", json=body)
    assert answer.status_code == status
    assert said in answer.json()["detail"]


@pytest.mark.parametrize("query", [{"order": "best"}, {"n": 0}, {"n": 101}, {"n": "x"}])
def test_bad_questions_get_one_line(shared_client, query):
    answer = shared_client.get(URL, params=query)
    assert answer.status_code == 422
    assert f"query.{next(iter(query))}: input should be" in answer.json()["detail"]


def test_texts_that_are_too_long_are_refused(make_client):
    client = make_client(limits=RequestLimits(max_text_characters=5))
    assert add(client, ["fives"]).status_code == 201
    assert add(client, ["sixsix"]).status_code == 413
    assert review(client)["progress"]["pending"] == 1
