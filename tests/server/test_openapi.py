"""The description of the API: it holds for whatever is sent, and says which models there are and how keys are sent."""

import io

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from labelspace.server.app import create_app
from labelspace.server.settings import Settings
from tests.server.conftest import serving

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
requests = pytest.importorskip("requests")
urllib3 = pytest.importorskip("urllib3")

HOST = "http://127.0.0.1:8000"
DESCRIPTION = create_app(Settings(models={"foods": "foods"})).openapi()
OPERATIONS = {
    f"{method.upper()} {path}": operation
    for path, operations in DESCRIPTION["paths"].items()
    for method, operation in operations.items()
}
CHECKED = ("status_code_conformance", "content_type_conformance", "response_schema_conformance")
NOT_OFFERED = "POST /v1/detect-language"
EXAMPLES = 12


@pytest.mark.slow
def test_the_description_is_valid_openapi(shared_client):
    description = shared_client.get("/openapi.json").json()
    schemathesis.openapi.from_dict(description).validate()
    assert description["openapi"].startswith("3.1")
    assert "securitySchemes" not in description["components"]


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_is_described(name):
    operation = OPERATIONS[name]
    assert operation["summary"]
    assert operation["description"]
    assert operation["tags"]
    for status, answer in operation["responses"].items():
        is_health = (name, status) == ("GET /readyz", "503")
        if int(status) >= 400 and not is_health:
            assert set(answer["content"]) == {"application/problem+json"}, status


def test_served_models_are_named(shared_client):
    paths = shared_client.get("/openapi.json").json()["paths"]
    for path, name in (("/v1/models/{model}", "model"), ("/v1/projects/{project}", "project")):
        parameter = next(each for each in paths[path]["get"]["parameters"] if each["name"] == name)
        assert parameter["schema"]["enum"] == ["foods", "odd"]


def test_how_keys_are_sent(tmp_path):
    keys = tmp_path / "keys.txt"
    keys.write_text("read 0123456789abcdef\n")
    description = create_app(Settings(models={"foods": "foods"}, api_key_file=str(keys))).openapi()
    assert description["components"]["securitySchemes"] == {
        "bearer": {"type": "http", "scheme": "bearer"},
        "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    }
    assert description["security"] == [{"bearer": []}, {"header": []}]
    without = {path for path, each in description["paths"].items() if each.get("get", {}).get("security") == []}
    assert without == {"/livez", "/readyz", "/health"}


class InProcess(requests.adapters.HTTPAdapter):
    """Sends requests to the application in this process, which runs on while many are sent."""

    def __init__(self, client):
        super().__init__()
        self._client = client

    def send(self, request, **_):
        answer = self._client.request(
            request.method, request.url, headers=request.headers, content=request.body, follow_redirects=False
        )
        raw = urllib3.HTTPResponse(
            io.BytesIO(answer.content), answer.headers, answer.status_code, preload_content=False
        )
        return self.build_response(request, raw)


@pytest.fixture(scope="module")
def session(trained, tmp_path_factory):
    """Requests to a server of its own: what is sent is also stored."""
    with serving({"foods": trained}, tmp_path_factory.mktemp("api")) as client, requests.Session() as session:
        session.mount(HOST, InProcess(client))
        yield session


def answers(session, name, mode, checks):
    """The states of the answers to requests that are made from the description; each answer is checked."""
    method, path = name.split(" ")
    operation = schemathesis.openapi.from_dict(DESCRIPTION)[path][method]
    named = [getattr(schemathesis.checks, check) for check in checks]
    seen = []

    @settings(
        max_examples=EXAMPLES, derandomize=True, deadline=None, database=None, suppress_health_check=HealthCheck,
        phases=[Phase.generate],  # to make a failing request smaller takes minutes
    )  # fmt: skip
    @given(operation.as_strategy(generation_mode=mode))
    def ask(case):
        seen.append(case.call_and_validate(base_url=HOST, session=session, checks=named).status_code)

    ask()
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_answers_are_as_described(session, name):
    checks = CHECKED if name == NOT_OFFERED else (*CHECKED, "not_a_server_error")
    assert answers(session, name, schemathesis.GenerationMode.POSITIVE, checks)


def takes_data(operation):
    queries = [parameter for parameter in operation.get("parameters", []) if parameter["in"] == "query"]
    return "requestBody" in operation or bool(queries)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, operation in OPERATIONS.items() if takes_data(operation)])
def test_what_is_not_as_described_is_refused(session, name):
    checks = (*CHECKED, "not_a_server_error", "negative_data_rejection")
    seen = answers(session, name, schemathesis.GenerationMode.NEGATIVE, checks)
    assert [status for status in seen if status in (400, 404, 422)]
