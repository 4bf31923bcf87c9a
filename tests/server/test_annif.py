"""The API of Annif: by requests, and with the client that people have, as it is."""

from types import SimpleNamespace

import pytest

from labelspace.server.routes.annif import AnnifSubject, results, subject_names
from labelspace.server.routes.suggest import document_answer
from labelspace.server.served_model import LabelDetails, Tagged
from labelspace.types import Concept, LabelSpace

URL = "/v1/projects"
RYE, TEA = "food > bread > rye", "drink > tea"
TEXT = "a loaf of rye sourdough"


def test_projects_are_models(shared_client):
    projects = shared_client.get(URL).json()["projects"]
    assert [project["project_id"] for project in projects] == ["foods", "odd"]
    assert projects[0] == shared_client.get(f"{URL}/foods").json()
    assert (projects[0]["is_trained"], projects[0]["backend"]) == (True, {"backend_id": "blend"})
    assert projects[0]["vocab"]["size"] == 10


def test_suggestions_are_those_of_the_library(shared_client, tagger):
    answer = shared_client.post(f"{URL}/foods/suggest", data={"text": TEXT, "limit": 3}).json()
    expected = tagger.tag(TEXT, k=3)
    assert [each["uri"] for each in answer["results"]] == [name for name, _ in expected]
    assert [each["score"] for each in answer["results"]] == pytest.approx([score for _, score in expected], abs=1e-6)
    assert (answer["results"][0]["label"], answer["results"][0]["notation"]) == ("rye", None)


def test_limit_threshold_and_language(shared_client):
    every = shared_client.post(f"{URL}/foods/suggest", data={"text": TEXT, "language": "en"}).json()["results"]
    middle = every[1]["score"]
    kept = shared_client.post(f"{URL}/foods/suggest", data={"text": TEXT, "threshold": middle}).json()["results"]
    assert kept == [each for each in every if each["score"] >= middle]
    assert shared_client.post(f"{URL}/foods/suggest", data={"text": TEXT, "limit": 1}).json()["results"] == every[:1]


def test_a_form_of_either_kind(shared_client):
    plain = shared_client.post(f"{URL}/foods/suggest", data={"text": TEXT}).json()
    in_parts = shared_client.post(f"{URL}/foods/suggest", files={"text": (None, TEXT)}).json()
    assert in_parts == plain


def test_a_batch(shared_client, tagger):
    documents = [{"document_id": "a", "text": TEXT}, {"text": "green tea", "metadata": {"year": "1999"}}]
    found = shared_client.post(f"{URL}/foods/suggest-batch", json={"documents": documents}, params={"limit": 1}).json()
    assert [each["document_id"] for each in found] == ["a", None]
    assert [each["results"][0]["uri"] for each in found] == [
        tagger.tag(text, k=1)[0][0] for text in (TEXT, "green tea")
    ]


def test_learning_stores_feedback(client):
    examples = [{"text": TEXT, "subjects": [{"uri": f"<{RYE}>", "label": "Roggen"}, {"label": TEA}, {"uri": TEA}]}]
    answer = client.post(f"{URL}/foods/learn", json=examples)
    assert (answer.status_code, answer.content) == (204, b"")
    entry = client.get("/v1/models/foods/feedback").json()["feedback"][0]
    assert (entry["text"], entry["accepted"]) == (TEXT, [RYE, TEA])
    assert client.post(f"{URL}/foods/learn", json=[]).status_code == 204


@pytest.mark.parametrize(
    ("path", "request_", "status", "said"),
    [
        ("foods/suggest", {"data": {}}, 422, "text: field required"),
        ("foods/suggest", {"data": {"text": "a", "limit": 0}}, 422, "limit: input should be greater than"),
        ("foods/suggest", {"data": {"text": "a", "limit": 101}}, 400, "k must be at most 100, but is 101"),
        ("foods/suggest", {"data": {"text": "a", "threshold": "nan"}}, 422, "threshold: input should be"),
        ("foods/suggest", {"data": {"text": "a", "threshold": 2}}, 422, "threshold: input should be less than"),
        ("foods/suggest", {"json": {"text": "a"}}, 422, "text: field required"),
        ("foods/suggest", {"files": {"text": ("a.txt", b"tea")}}, 422, "text: input should be a valid string"),
        ("foods/suggest-batch", {"json": {"documents": []}}, 422, "documents: list should have at least 1 item"),
        ("foods/suggest-batch", {"json": {"documents": [{}]}}, 422, "documents.0.text: field required"),
        ("nope/suggest", {"data": {"text": "a"}}, 404, "a model must be one of foods, odd, but is 'nope'"),
        ("foods/learn", {"json": {}}, 422, "the body: input should be a valid list"),
        ("foods/learn", {"json": [{"text": "a", "subjects": [{"uri": "x"}]}]}, 400, "a subject must be a label of the"),
        ("foods/learn", {"json": [{"text": "a", "subjects": [{}]}]}, 400, "a subject must be a label of the model"),
        ("foods/learn", {"json": [{"text": "a\x00", "subjects": [{"uri": TEA}]}]}, 400, "text must be without NUL"),
    ],
)  # fmt: skip
def test_bad_requests_get_one_line(shared_client, path, request_, status, said):
    answer = shared_client.post(f"{URL}/{path}", **request_)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert said in answer.json()["detail"]


def test_no_language_is_detected(shared_client):
    answer = shared_client.post("/v1/detect-language", json={"text": "a", "languages": ["en"]})
    assert (answer.status_code, answer.headers["content-type"]) == (501, "application/problem+json")
    assert "does not offer" in answer.json()["detail"]


@pytest.mark.slow
def test_the_client_that_people_have_works_as_it_is(start_server, model_folder, tagger):
    annif_client = pytest.importorskip("annif_client", reason="annif-client is not installed")
    requests = pytest.importorskip("requests")
    server = start_server(str(model_folder))
    annif = annif_client.AnnifClient(api_base=f"{server.url}/v1/")

    assert annif.api_info["title"]
    assert annif.api_info["version"]
    assert [project["project_id"] for project in annif.projects] == ["foods"]
    assert annif.get_project("foods") == annif.projects[0]
    with pytest.raises(ValueError, match="a model must be one of foods, but is 'nope'"):
        annif.get_project("nope")

    names = [name for name, _ in tagger.tag(TEXT, k=10)]
    every = annif.suggest("foods", TEXT)
    assert [each["uri"] for each in every] == names
    assert annif.suggest("foods", TEXT, limit=2) == every[:2]
    assert annif.suggest("foods", TEXT, limit=10, threshold=every[0]["score"]) == every[:1]
    with pytest.raises(ValueError, match="a model must be one of"):
        annif.suggest("nope", TEXT)

    documents = [{"document_id": "a", "text": TEXT}, {"document_id": "b", "text": "green tea"}]
    batch = annif.suggest_batch("foods", documents, limit=2, threshold=0.01)
    assert [each["document_id"] for each in batch] == ["a", "b"]
    assert batch[0]["results"] == every[:2]

    annif.learn("foods", [{"text": TEXT, "subjects": [{"uri": RYE, "label": "rye"}]}])
    stored = server.get("/v1/models/foods/feedback")["feedback"]
    assert [(each["text"], each["accepted"]) for each in stored] == [(TEXT, [RYE])]

    with pytest.raises(requests.HTTPError, match="501"):
        annif.detect_language(TEXT, ["en", "fi"])


def test_concepts_of_a_vocabulary_have_uri_notation_and_names_by_language():
    uri = "http://example.org/p1"
    space = LabelSpace(["cats", "dogs"], concepts=[Concept(uri, "01", {"en": "cats", "fi": "kissat"}), Concept()])
    model = SimpleNamespace(labels=LabelDetails(space), tagger=SimpleNamespace(labels_=space))
    tagged = Tagged([0, 1], [0.9, 0.5], None, [], None)
    assert results(model, tagged, 0.0, "fi") == [
        {"uri": uri, "label": "kissat", "notation": "01", "score": 0.9},
        {"uri": "dogs", "label": "dogs", "notation": None, "score": 0.5},
    ]
    assert results(model, tagged, 0.6, None)[0]["label"] == "cats"
    assert [each["name"] for each in document_answer(model, tagged, "fi")["suggestions"]] == ["kissat", "dogs"]
    given = [AnnifSubject(uri=f"<{uri}>"), AnnifSubject(uri="http://example.org/none", label="dogs")]
    assert subject_names(model, given) == ["cats", "dogs"]
