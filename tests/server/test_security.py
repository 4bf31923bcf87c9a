"""Who may ask, from where, and what answers, logs and counters never give away."""

import json
import logging

import pytest

from labelspace.errors import DataError, ParameterError
from labelspace.server.settings import ApiKeys, Settings, read_api_keys
from tests.server.conftest import ODD_NAMES, serving

URL = "/v1/models/foods"
READ, WRITE = "r" * 20, "w" * 20
RYE = "food > bread > rye"
ENTRY = [{"text": "rye", "accepted": [RYE]}]
OPEN_PATHS = ("/", "/docs", "/livez", "/readyz", "/health", "/openapi.json", "/favicon.ico", "/page/main.js")
READS = (
    ("GET", "/v1", None),
    ("GET", "/v1/models", None),
    ("GET", URL, None),
    ("GET", "/v1/projects", None),
    ("GET", "/v1/jobs", None),
    ("GET", "/metrics", None),
    ("GET", f"{URL}/labels", None),
    ("GET", f"{URL}/tree", None),
    ("GET", f"{URL}/review", None),
    ("GET", f"{URL}/versions", None),
    ("POST", f"{URL}/suggest", {"text": "rye"}),
    ("POST", f"{URL}/explain", {"text": "rye"}),
    ("POST", "/predict", {"inputs": "rye"}),
    ("POST", "/setup", {}),
)
WRITES = (
    ("POST", f"{URL}/feedback", ENTRY),
    ("GET", f"{URL}/feedback", None),
    ("DELETE", f"{URL}/feedback/1", None),
    ("POST", f"{URL}/review", {"documents": [{"text": "rye"}]}),
    ("POST", f"{URL}/review/1", {"status": "skipped"}),
    ("POST", f"{URL}/learn", None),
    ("POST", f"{URL}/reload", None),
    ("POST", f"{URL}/rollback", {"to": 7}),
    ("POST", f"{URL}/labels", {"name": RYE}),
    ("PATCH", f"{URL}/labels/nope", {"name": "new"}),
    ("DELETE", f"{URL}/labels/nope", None),
    ("POST", f"{URL}/labels/nope/merge", {"into": RYE}),
    ("POST", "/v1/projects/foods/learn", [{"text": "rye", "subjects": [{"label": RYE}]}]),
    ("POST", "/webhook", {"action": "ANNOTATION_CREATED", "task": {"data": {"text": "rye"}}}),
)


@pytest.fixture(scope="module")
def key_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("keys") / "keys.txt"
    path.write_text(f"# of the team\nread {READ}\n\nwrite {WRITE}  # anna\n")
    return str(path)


@pytest.fixture(scope="module")
def guarded(trained, key_file, tmp_path_factory):
    """A client of a server with keys, which no test changes."""
    with serving({"foods": trained}, tmp_path_factory.mktemp("guarded"), api_key_file=key_file) as client:
        yield client


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


def ask(client, request, headers=None):
    method, path, body = request
    return client.request(method, path, json=body, headers=headers)


# Keys


def test_without_keys_this_machine_may_do_everything(client):
    assert client.get("/v1").json()["authentication"] == "none"
    assert {ask(client, request).status_code for request in READS} == {200}
    assert client.post(f"{URL}/feedback", json=ENTRY).status_code == 201


def test_with_keys_nothing_of_models_or_people_is_told_without_one(guarded):
    for request in (*READS, *WRITES, ("GET", "/nope", None)):
        answer = ask(guarded, request)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert answer.headers["content-type"] == "application/problem+json"
        assert "a request needs an API key, but has no known one" in answer.json()["detail"]
    assert guarded.get("/v1", headers=bearer(READ)).json()["authentication"] == "key"


def test_pages_and_health_are_open(guarded):
    assert {path: guarded.get(path).status_code for path in OPEN_PATHS} == dict.fromkeys(OPEN_PATHS, 200)


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Bearer wrong-wrong-wrong-wrong"},
        {"Authorization": f"Basic {WRITE}"},
        {"Authorization": f"Bearer {WRITE}x"},
        {"Authorization": f"Bearer {WRITE[:-1]}"},
        {"Authorization": "Bearer"},
        {"Authorization": ""},
        {"X-API-Key": "wrong-wrong-wrong-wrong"},
        {"X-API-Key": "wrong", "Authorization": f"Bearer {WRITE}"},
        {"X-API-Key": b"\xff\xfe"},
        {"Cookie": f"key={WRITE}"},
    ],
)  # fmt: skip
def test_wrong_keys_are_refused(guarded, headers):
    assert guarded.get("/v1", headers=headers).status_code == 401


def test_a_key_in_the_address_does_not_count(guarded):
    assert guarded.get("/v1", params={"key": READ, "api_key": READ}).status_code == 401


@pytest.mark.parametrize(
    "headers", [bearer(READ), bearer(WRITE), {"X-API-Key": READ}, {"Authorization": f"bearer {READ}"}]
)
def test_keys_are_sent_in_two_ways(guarded, headers):
    assert guarded.get("/v1", headers=headers).status_code == 200


def test_a_read_key_reads_and_a_write_key_also_writes(make_client, key_file):
    guarded = make_client(api_key_file=key_file)
    assert {ask(guarded, request, bearer(READ)).status_code for request in READS} == {200}
    for request in WRITES:
        answer = ask(guarded, request, bearer(READ))
        assert answer.status_code == 403, request
        assert "changes need a write key, but this key may only read" in answer.json()["detail"]
    assert {ask(guarded, request, bearer(WRITE)).status_code for request in READS} == {200}
    assert guarded.post(f"{URL}/feedback", json=ENTRY, headers=bearer(WRITE)).status_code == 201
    assert guarded.get(f"{URL}/feedback", headers=bearer(WRITE)).json()["total"] == 1


def test_a_read_only_server_takes_no_changes(make_client, key_file):
    for settings, headers in (({}, None), ({"api_key_file": key_file}, bearer(WRITE))):
        client = make_client(read_only=True, **settings)
        assert {ask(client, request, headers).status_code for request in READS} == {200}
        for request in WRITES:
            answer = ask(client, request, headers)
            assert answer.status_code == 403, request
            assert "it was started with --read-only" in answer.json()["detail"]
        assert client.get("/v1", headers=headers).json()["read_only"] is True
        assert client.get(URL, headers=headers).json()["can_learn"] is False


def test_a_key_cannot_both_only_read_and_also_write():
    with pytest.raises(DataError, match=r"keys.txt:2: a key must stand on one line, but this one stands on two"):
        ApiKeys.parse([f"write {WRITE}", f"read {WRITE}"], "keys.txt")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "must have at least one, but"),
        (b"# only a comment\n\n", "must have at least one, but"),
        (b"read short\n", ":1: a line must be 'read KEY' or 'write KEY' with a key of at least 16 characters"),
        (b"\nadmin 0123456789abcdef0\n", ":2: a line must be 'read KEY' or 'write KEY'"),
        (b"0123456789abcdef0\n", ":1: a line must be 'read KEY' or 'write KEY'"),
        (b"read 0123456789abcdef 0\n", ":1: a line must be"),
        (b"\xff\xfe\n", "it is not UTF-8"),
        (b"read 0123456789abcdef0\n" * 50_000, "at most 1048576 bytes"),
    ],
)  # fmt: skip
def test_faults_of_a_key_file_are_said_without_a_key(tmp_path, content, said):
    path = tmp_path / "keys.txt"
    path.write_bytes(content)
    with pytest.raises(DataError) as fault:
        read_api_keys(path)
    assert said in str(fault.value)
    assert "0123456789abcdef" not in str(fault.value)


def test_a_key_file_that_cannot_be_read(tmp_path):
    for path in (tmp_path / "missing.txt", tmp_path):
        with pytest.raises(DataError, match="check --api-key-file"):
            read_api_keys(path)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", ""])
def test_other_machines_need_keys(host, key_file):
    with pytest.raises(ParameterError, match=r"needs API keys, but --host is .*; give the file, or --no-auth"):
        Settings(models={"foods": "foods"}, host=host)
    assert Settings(models={"foods": "foods"}, host=host, api_key_file=key_file).host == host
    assert Settings(models={"foods": "foods"}, host=host, no_auth=True).host == host


# Web sites


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "LOCALHOST", "[::1]:8000", "[::1]", "127.0.0.1"])
def test_names_of_this_machine_are_answered(shared_client, host):
    assert shared_client.get("/v1", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["attacker.example", "attacker.example:8000", "127.0.0.1.attacker.example", "localhost.attacker.example", ""],
)  # fmt: skip
def test_a_site_that_points_its_name_here_gets_nothing(shared_client, host):
    for path in ("/", "/v1", "/livez", f"{URL}/labels"):
        answer = shared_client.get(path, headers={"Host": host})
        assert answer.status_code == 403
        assert "a request must name a host of this machine" in answer.json()["detail"]


def test_names_that_are_allowed(make_client):
    client = make_client(allowed_hosts=["tags.example"])
    assert client.get("/v1", headers={"Host": "tags.example:8000"}).status_code == 200
    assert client.get("/v1", headers={"Host": "other.example"}).status_code == 403


def test_with_keys_any_name_will_do(guarded):
    assert guarded.get("/v1", headers={**bearer(READ), "Host": "tags.example"}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://attacker.example"},
        {"Origin": "https://attacker.example", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "null"},
    ],
)  # fmt: skip
def test_pages_of_other_sites_cannot_send_anything(shared_client, headers):
    for path in (f"{URL}/reload", f"{URL}/learn", "/setup", "/v1/projects/foods/suggest"):
        answer = shared_client.post(path, headers=headers)
        assert answer.status_code == 403, path
        assert "a web site that sends data must be this server's own" in answer.json()["detail"]
    assert shared_client.delete(f"{URL}/feedback/1", headers=headers).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://127.0.0.1:8000"},
        {"Origin": "https://tags.example", "Sec-Fetch-Site": "same-origin"},  # behind a proxy that names another host
        {"Sec-Fetch-Site": "none"},
        {},
    ],
)  # fmt: skip
def test_our_own_page_and_programs_can(shared_client, headers):
    assert shared_client.post("/setup", headers=headers).status_code == 200


def test_a_key_is_proof_enough(guarded):
    headers = {**bearer(WRITE), "Origin": "https://other.example"}
    assert guarded.post("/setup", headers=headers).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", None])
def test_data_that_a_form_can_send_is_no_json(shared_client, kind):
    headers = {} if kind is None else {"Content-Type": kind}
    answer = shared_client.post(f"{URL}/feedback", content=json.dumps(ENTRY), headers=headers)
    assert answer.status_code == 415
    assert "a body must be application/json, but its type is" in answer.json()["detail"]


def test_no_other_site_may_read_answers(shared_client):
    headers = {"Origin": "https://other.example"}
    asked = shared_client.get("/v1", headers=headers)
    preflight = shared_client.options("/v1", headers={**headers, "Access-Control-Request-Method": "POST"})
    for answer in (asked, preflight):
        assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert preflight.status_code == 405


def test_a_site_that_is_named_may_ask(make_client):
    client = make_client(cors_origins=["https://site.example"])
    preflight = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    for origin, allowed in (("https://site.example", "https://site.example"), ("https://other.example", None)):
        asked = client.post(f"{URL}/suggest", json={"text": "rye"}, headers={"Origin": origin})
        assert asked.headers.get("access-control-allow-origin") == allowed
        assert "access-control-allow-credentials" not in asked.headers
        before = client.options(f"{URL}/suggest", headers={"Origin": origin, **preflight})
        assert before.headers.get("access-control-allow-origin") == allowed
        assert before.status_code == (200 if allowed else 400)


def test_refusals_too_can_be_read_by_a_site_that_is_named(make_client, key_file):
    client = make_client(cors_origins=["https://site.example"], api_key_file=key_file)
    answer = client.get("/v1", headers={"Origin": "https://site.example"})
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (401, "https://site.example")


# Headers


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1", 200),
        ("GET", "/", 200),
        ("GET", "/docs", 200),
        ("GET", "/page/main.js", 200),
        ("GET", "/metrics", 200),
        ("GET", "/nope", 404),
        ("GET", "/v1/models/nope", 404),
        ("GET", "/page/nope.js", 404),
        ("PUT", "/v1", 405),
        ("POST", f"{URL}/suggest", 422),
        ("DELETE", f"{URL}/feedback/nope", 404),
        ("OPTIONS", "/v1", 405),
    ],
)  # fmt: skip
def test_every_answer_has_the_headers_that_browsers_obey(shared_client, method, path, status):
    answer = shared_client.request(method, path)
    assert answer.status_code == status
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["x-frame-options"] == "SAMEORIGIN"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert answer.headers["cache-control"] in ("no-store", "no-cache")
    assert "server" not in answer.headers


def test_a_page_may_load_its_own_files_alone(shared_client):
    policy = dict(
        part.strip().split(" ", 1) for part in shared_client.get("/").headers["content-security-policy"].split(";")
    )
    assert (policy["default-src"], policy["script-src"], policy["style-src"]) == ("'none'", "'self'", "'self'")
    assert (policy["frame-ancestors"], policy["base-uri"]) == ("'none'", "'none'")


def test_a_file_that_a_browser_has_is_not_sent_again(shared_client):
    first = shared_client.get("/page/main.js")
    again = shared_client.get("/page/main.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    [
        "/page/..%2f..%2fsettings.py",
        "/page/..%2Fsettings.py",
        "/page/%2e%2e%2fsettings.py",
        "/page/..%5c..%5csettings.py",
        "/page/%2fetc%2fpasswd",
        "/page/main.js%00.html",
        "/page/",
        "/page//etc/passwd",
    ],
)  # fmt: skip
def test_no_path_leaves_the_folder_of_the_page(shared_client, path):
    answer = shared_client.get(path, follow_redirects=False)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
    assert "root:" not in answer.text
    assert "class Settings" not in answer.text


def test_labels_that_are_names_of_files_are_not_read(shared_client, tmp_path):
    path = tmp_path / "labels.txt"
    path.write_text("food > bread > rye\n")
    answer = shared_client.post(f"{URL}/suggest", json={"text": "rye", "include": [str(path)]})
    assert answer.status_code == 400
    assert "is none; search" in answer.json()["detail"]


# Hostile names


@pytest.mark.parametrize(("name", "word"), ODD_NAMES.items())
def test_names_come_back_as_they_are_and_only_as_data(shared_client, name, word):
    answer = shared_client.post("/v1/models/odd/suggest", json={"text": f"{word} one", "k": 1})
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["suggestions"][0]["label"] == name
    assert "\n" not in answer.text


def test_a_hostile_text_comes_back_in_an_error_as_data(shared_client):
    hostile = "<script>alert(1)</script>\u202e\n"
    answer = shared_client.get(f"{URL}/tree", params={"path": hostile})
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
    assert "\u202e" not in answer.text
    assert "\n" not in answer.json()["detail"]


# What is never told


def test_no_text_and_no_name_is_logged_or_counted(make_client, caplog):
    caplog.set_level(logging.DEBUG)
    client = make_client(access_log=True)
    secret, label = "sourdoughsecret", "secretlabel"
    client.post(f"{URL}/suggest", json={"text": secret})
    client.post(f"{URL}/suggest", json={"text": secret, "include": [label]})
    client.post(f"{URL}/suggest", json={"text": secret, "k": secret})
    client.post(f"{URL}/explain", json={"text": f"rye {secret}", "labels": [RYE]})
    client.get(f"{URL}/labels/{label}")
    client.get(f"{URL}/labels", params={"q": label})
    client.get(f"{URL}/labels/{RYE}")
    client.get(f"/{secret}")
    client.post(f"{URL}/feedback", json=[{"id": label, "text": secret, "accepted": [RYE], "by": secret}])
    client.delete(f"{URL}/feedback/{label}")
    client.request(secret.upper(), "/v1")
    ours = [record for record in caplog.records if record.name.startswith("labelspace")]
    logged = [record.getMessage() for record in ours]
    counted = client.get("/metrics").text
    assert any(line.startswith("POST /v1/models/{model}/suggest 200 ") for line in logged)
    assert 'route="/v1/models/{model}/suggest"' in counted
    for text in (*logged, counted):
        assert secret not in text.lower()
        assert label not in text
        assert "rye" not in text


def test_without_the_option_requests_are_not_logged(make_client, caplog):
    caplog.set_level(logging.INFO, "labelspace.server")
    client = make_client()
    client.get("/v1")
    assert not [record for record in caplog.records if "GET" in record.getMessage()]


def test_unknown_paths_do_not_make_new_counters(shared_client):
    before = shared_client.get("/metrics").text.count("labelspace_requests_total{")
    for number in range(20):
        shared_client.get(f"/unknown/{number}")
        shared_client.get(f"/v1/models/unknown-{number}")
        shared_client.request(f"M{number}", "/v1")
    after = shared_client.get("/metrics").text.count("labelspace_requests_total{")
    assert after - before <= 4


def test_a_fault_of_the_server_is_not_told_but_logged(client, monkeypatch, caplog):
    def broken(*_):
        raise RuntimeError("the secret of the server")

    monkeypatch.setattr("labelspace.server.routes.labels.found_labels", broken)
    answer = client.get(f"{URL}/labels")
    assert answer.status_code == 500
    assert json.loads(answer.text)["detail"].startswith("the request should have been answered, but failed")
    assert "secret" not in answer.text
    assert "the secret of the server" in caplog.text


def test_a_password_of_the_database_is_not_shown():
    settings = Settings(models={"foods": "foods"}, database="postgresql://anna:pa:ss@db.example/tags")
    assert settings.shown_database == "postgresql://anna:***@db.example/tags"
