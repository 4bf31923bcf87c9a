"""Suggestions over HTTP are those of the library."""

import pytest

URL = "/v1/models/foods"
TEXT = "a loaf of rye sourdough"


def names(answer):
    return [suggestion["label"] for suggestion in answer.json()["suggestions"]]


def test_suggestions_are_those_of_the_library(client, tagger):
    answer = client.post(f"{URL}/suggest", json={"text": TEXT, "k": 4})
    found = [(each["label"], each["score"]) for each in answer.json()["suggestions"]]
    expected = tagger.tag(TEXT, k=4)
    assert [name for name, _ in found] == [name for name, _ in expected]
    assert [score for _, score in found] == pytest.approx([score for _, score in expected], abs=1e-6)


def test_a_suggestion_has_its_place_in_the_hierarchy(client):
    best = client.post(f"{URL}/suggest", json={"text": TEXT, "include": ["food > bread > rye"]}).json()["suggestions"][
        0
    ]
    assert (best["name"], best["path"], best["rank"]) == ("rye", ["food", "bread"], 1)
    assert best["probability"] == best["score"]


def test_options_are_those_of_the_library(client, tagger):
    for options in (
        {"exclude": ["food > bread > rye"]},
        {"under": ["food > fish"]},
        {"consistent": True},
        {"min_probability": 0.2},
    ):
        answer = client.post(f"{URL}/suggest", json={"text": TEXT, "k": 5, **options})
        assert names(answer) == [name for name, _ in tagger.tag(TEXT, k=5, **options)]


def test_what_is_left_out_has_a_reason(client):
    answer = client.post(f"{URL}/suggest", json={"text": TEXT, "min_probability": 0.999}).json()
    assert answer["left_out"]
    assert "is below 0.999" in answer["left_out"][0]["reason"]


@pytest.mark.parametrize(
    ("text", "note"), [("", "the text is empty"), ("zzqq xxyy", "the text has no word that the model knows")]
)
def test_texts_in_which_nothing_is_read_are_said(client, text, note):
    assert client.post(f"{URL}/suggest", json={"text": text}).json()["note"] == note


def test_a_batch_keeps_order_and_ids(client, tagger):
    texts = ["green tea", "tuna steak", TEXT]
    rows = [{"id": str(at), "text": text} for at, text in enumerate(texts)]
    results = client.post(f"{URL}/suggest-batch", json={"documents": rows, "k": 1}).json()["results"]
    assert [row["id"] for row in results] == ["0", "1", "2"]
    assert [row["suggestions"][0]["label"] for row in results] == [tags[0][0] for tags in tagger.tag_batch(texts, 1)]


def test_reasons_add_up_and_mark_words(client):
    found = client.post(f"{URL}/explain", json={"text": TEXT, "labels": ["food > bread > rye"]}).json()["explanations"][
        0
    ]
    total = sum(word["share"] for word in found["words"]) + found["remainder"]
    assert total == pytest.approx(found["log_odds"] - found["baseline"], abs=1e-4)
    assert {word["text"] for word in found["marked"]} & {"rye", "sourdough", "loaf"}
    assert all(TEXT[word["start"] : word["end"]] == word["text"] for word in found["words"])


def test_suggestions_with_reasons(client):
    answer = client.post(f"{URL}/suggest", json={"text": TEXT, "k": 2, "explain": True}).json()
    assert [each["explanation"]["label"] for each in answer["suggestions"]] == [
        each["label"] for each in answer["suggestions"]
    ]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"text": "a", "k": 0}, 422, "k: input should be greater than or equal to 1, but is 0"),
        ({"text": "a", "k": 101}, 400, "k must be at most 100, but is 101"),
        ({"text": "a", "k": "5"}, 422, "k: input should be a valid integer"),
        ({"text": 7}, 422, "text: input should be a valid string, but is 7"),
        ({}, 422, "text: field required"),
        ({"text": "a", "kk": 3}, 422, "kk: extra inputs are not permitted"),
        ({"text": "a", "include": ["ryee"]}, 400, "a label must be one of the model's"),
        ({"text": "a", "precision": 0.9, "min_probability": 0.5}, 400, "leave one out"),
        ({"text": "x" * 200_001}, 413, "a text must have at most 200000 characters, but has 200001"),
    ],
)  # fmt: skip
def test_bad_requests_get_one_line(client, body, status, said):
    answer = client.post(f"{URL}/suggest", json=body)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert said in answer.json()["detail"]


def test_bodies_that_are_no_json(client):
    answer = client.post(f"{URL}/suggest", content=b'{"text": ', headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert "the body must be JSON" in answer.json()["detail"]


def test_an_unknown_model_and_an_unknown_path(client):
    assert "a model must be one of foods, but is 'nope'" in client.get("/v1/models/nope").json()["detail"]
    assert client.get("/v2/infer").json()["detail"].startswith("a path must be one of those at /docs")
    assert client.get(f"{URL}/suggest").status_code == 405
