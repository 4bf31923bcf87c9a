"""Clients of Hugging Face's text classification and of Label Studio's ML backend, as they ask."""

import pytest

RYE, TEA = "food > bread > rye", "drink > tea"
CHOICES = '<View><Text name="t" value="$title"/><Choices name="c" toName="t"><Choice value="a"/></Choices></View>'
TAXONOMY = '<View><Text name="t" value="$text"/><Taxonomy name="x" toName="t" apiUrl="http://127.0.0.1/tree"/></View>'
TEXT = "a loaf of rye sourdough"
CHOSEN = [{"value": {"choices": [RYE]}}]


# Hugging Face


def test_one_text_and_several(shared_client, tagger):
    one = shared_client.post("/predict", json={"inputs": TEXT, "parameters": {"top_k": 3}}).json()
    assert [each["label"] for each in one] == [name for name, _ in tagger.tag(TEXT, k=3)]
    assert [each["score"] for each in one] == pytest.approx([score for _, score in tagger.tag(TEXT, k=3)], abs=1e-6)
    several = shared_client.post("/predict", json={"inputs": [TEXT, "green tea"], "parameters": {"top_k": 3}}).json()
    assert several[0] == one
    assert several[1][0]["label"].startswith("drink")


def test_five_labels_where_nothing_is_said(shared_client):
    assert len(shared_client.post("/predict", json={"inputs": TEXT}).json()) == 5


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"inputs": TEXT, "parameters": {"function_to_apply": "softmax"}}, 400, "function_to_apply must be sigmoid"),
        ({"inputs": TEXT, "parameters": {"top_k": 0}}, 422, "top_k: input should be greater than or equal to 1"),
        ({"inputs": TEXT, "parameters": {"top_k": 101}}, 400, "k must be at most 100, but is 101"),
        ({"inputs": TEXT, "parameters": {"temperature": 1}}, 422, "temperature: extra inputs are not permitted"),
        ({"inputs": []}, 422, "inputs.str: input should be a valid string"),
        ({"inputs": 7}, 422, "inputs.str: input should be a valid string, but is 7"),
        ({}, 422, "Hugging Face.inputs: field required"),
        ({"tasks": []}, 422, "Label Studio.tasks: list should have at least 1 item"),
        ({"tasks": [7]}, 422, "tasks.0: input should be a valid dictionary, but is 7"),
    ],
)  # fmt: skip
def test_bad_classifications_get_one_line(shared_client, body, status, said):
    answer = shared_client.post("/predict", json=body)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert said in answer.json()["detail"]


# Label Studio


def test_health_and_setup(shared_client):
    assert shared_client.get("/health").json() == {"status": "UP", "model_class": "labelspace"}
    body = {"project": "1.1700000000", "schema": CHOICES, "hostname": "http://localhost:8080", "access_token": "x"}
    version = shared_client.get("/v1/models/foods").json()["version"]
    assert shared_client.post("/setup", json=body).json() == {"model_version": version}


def test_choices_of_the_text_that_the_configuration_names(shared_client):
    task = {"id": 1, "data": {"note": "green tea", "title": TEXT}}
    body = {"tasks": [task, task], "label_config": CHOICES, "project": "1.17", "params": {"context": None}}
    answer = shared_client.post("/predict", json=body).json()
    assert len(answer["results"]) == 2
    result = answer["results"][0]["result"][0]
    assert (result["from_name"], result["to_name"], result["type"]) == ("c", "t", "choices")
    assert result["value"]["choices"][0] == RYE
    assert 0 < answer["results"][0]["score"] <= 1
    assert answer["model_version"] == shared_client.get("/v1/models/foods").json()["version"]


def test_a_taxonomy_gets_paths(shared_client):
    body = {"tasks": [{"data": {"text": TEXT}}], "label_config": TAXONOMY}
    result = shared_client.post("/predict", json=body).json()["results"][0]["result"][0]
    assert (result["from_name"], result["type"]) == ("x", "taxonomy")
    assert result["value"]["taxonomy"][0] == ["food", "food > bread", "food > bread > rye"]  # as /tree names them


def test_a_taxonomy_of_its_own_gets_names_to_show(shared_client):
    config = '<View><Text name="t" value="$text"/><Taxonomy name="x" toName="t"/></View>'
    body = {"tasks": [{"data": {"text": TEXT}}], "label_config": config}
    result = shared_client.post("/predict", json=body).json()["results"][0]["result"][0]
    assert result["value"]["taxonomy"][0] == ["food", "bread", "rye"]


def test_without_a_configuration_the_first_text(shared_client):
    body = {"tasks": [{"data": {"number": 7, "title": "green tea"}}]}
    result = shared_client.post("/predict", json=body).json()["results"][0]["result"][0]
    assert result["value"]["choices"][0].startswith("drink")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tasks": [{"data": {"number": 7}}]}, "a task must have a text in its data"),
        ({"tasks": [{}]}, "a task must have a text in its data"),
        ({"tasks": [{"data": []}]}, "a task must have a text in its data"),
        ({"label_config": "<View>"}, "label_config must be the XML of Label Studio"),
        ({"label_config": "<View>\x00</View>"}, "label_config must be the XML of Label Studio"),
        ({"label_config": '<!DOCTYPE x [<!ENTITY a "b">]><View>&a;</View>'}, "has a document type"),
        ({"label_config": '<!doctype x SYSTEM "file:///etc/passwd"><View/>'}, "has a document type"),
        ({"label_config": f"<View>{' ' * 1_000_000}</View>"}, "it is too long"),
    ],
)  # fmt: skip
def test_bad_tasks_get_one_line(shared_client, change, said):
    answer = shared_client.post("/predict", json={"tasks": [{"data": {"text": TEXT}}], **change})
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json")
    assert said in answer.json()["detail"]
    assert "\n" not in answer.json()["detail"]


def annotated(result, action="ANNOTATION_CREATED", **annotation):
    return {
        "action": action,
        "task": {"id": 1, "data": {"note": "green tea", "title": TEXT}},
        "annotation": {"id": 5, "result": result, **annotation},
        "project": {"id": 1, "label_config": CHOICES},
    }


def stored(client):
    return client.get("/v1/models/foods/feedback").json()["feedback"]


def test_annotations_are_feedback(client):
    choices = [{"from_name": "c", "value": {"choices": [RYE, "of another project"]}}]
    answer = client.post("/webhook", json=annotated(choices))
    assert (answer.status_code, answer.json()) == (201, {"stored": 1, "unknown_labels": 1})
    entry = stored(client)[0]
    assert (entry["text"], entry["accepted"], entry["by"]) == (TEXT, [RYE], "label-studio")
    assert client.post("/webhook", json=annotated(choices)).status_code == 201  # delivered again
    assert len(stored(client)) == 1


def test_a_changed_annotation_takes_the_place_of_what_it_was(client):
    client.post("/webhook", json=annotated([{"value": {"choices": [TEA]}}]))
    client.post("/webhook", json=annotated([{"value": {"choices": [RYE]}}], "ANNOTATION_UPDATED"))
    assert [entry["accepted"] for entry in stored(client)] == [[RYE]]
    client.post("/webhook", json=annotated([], "ANNOTATION_UPDATED"))
    assert stored(client) == []


@pytest.mark.parametrize(
    "path",
    [
        ["food", "bread", "rye"],
        ["food", "food > bread", RYE],  # as /tree names them
    ],
)  # fmt: skip
def test_a_taxonomy_by_steps_and_by_names(client, path):
    taxonomy = [{"value": {"taxonomy": [path, path[:2], ["nope"]]}}, {"value": {"choices": [RYE]}}]
    assert client.post("/webhook", json=annotated(taxonomy)).json() == {"stored": 1, "unknown_labels": 1}
    assert stored(client)[0]["accepted"] == [RYE, "food > bread"]


@pytest.mark.parametrize(
    "result",
    [
        None,
        7,
        {},
        [7],
        [{"value": 7}],
        [{"value": {"choices": 7}}],
        [{"value": {"choices": "drink"}}],
        [{"value": {"choices": {"drink": 1}}}],
        [{"value": {"choices": [7, None, []]}}],
        [{"value": {"taxonomy": 7}}],
        [{"value": {"taxonomy": [7, [], [[]], {}]}}],
    ],
)  # fmt: skip
def test_annotations_without_labels_store_nothing(shared_client, result):
    answer = shared_client.post("/webhook", json=annotated(result))
    assert (answer.status_code, answer.json()["stored"]) == (201, 0)


def test_other_events_are_taken_and_forgotten(shared_client):
    for event in ({"action": "PROJECT_UPDATED"}, {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": 1}]}):
        answer = shared_client.post("/webhook", json=event)
        assert (answer.status_code, answer.json()) == (201, {"stored": 0, "unknown_labels": 0})
    assert stored(shared_client) == []


@pytest.mark.parametrize(
    ("event", "status", "said"),
    [
        ({"task": {}}, 422, "action: field required"),
        ({"action": "ANNOTATION_CREATED", "task": []}, 422, "task: input should be a valid dictionary"),
        ({"action": "ANNOTATION_CREATED", "task": {"data": {}}}, 400, "a task must have a text in its data"),
        ({**annotated(CHOSEN), "task": {"data": {"title": "\x00"}}}, 400, "text must be without NUL"),
        ({**annotated([]), "project": {"label_config": "<"}}, 400, "label_config must be the XML of Label Studio"),
    ],
)  # fmt: skip
def test_bad_events_get_one_line(shared_client, event, status, said):
    answer = shared_client.post("/webhook", json=event)
    assert answer.status_code == status
    assert said in answer.json()["detail"]
