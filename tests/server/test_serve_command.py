"""`labelspace serve`: what it starts, and what it refuses in one line."""

import socket
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.server.settings import RequestLimits, Settings
from labelspace.tagger import Tagger
from labelspace.types import Dataset, LabelSpace


@pytest.fixture
def started(monkeypatch):
    """The settings of servers that would have been started."""
    seen = []
    monkeypatch.setattr("labelspace.server.supervisor.serve", lambda settings, reserved: seen.append(settings))
    return seen


def refused(result, said):
    """Whether the command ended with one line on stderr."""
    assert result[0] == 2, result
    assert "Traceback" not in result[2]
    lines = [line for line in result[2].splitlines() if line.strip()]
    assert len(lines) == 1, lines
    assert said in lines[0]
    return True


def test_what_is_served_and_where_is_said(run, started, model_folder):
    code, out, err = run("serve", model_folder, "--port", 0)
    assert code == 0
    assert out.startswith("serving foods at http://127.0.0.1:")
    assert "with 1 worker; the API is at http://127.0.0.1:" in out
    assert f"feedback goes to sqlite:///{model_folder}.feedback.db" in err
    assert started == [Settings(models={"foods": str(model_folder)}, port=0)]


def test_every_option_arrives(run, started, trained, data_folder, tmp_path):
    keys, inbox = tmp_path / "keys.txt", tmp_path / "inbox.jsonl"
    keys.write_text("write 0123456789abcdef\n")
    inbox.write_text('{"text": "tea"}\n')
    code, out, err = run(
        "serve", f"tags={trained}", trained, "--host", "127.0.0.1", "--port", 0, "--workers", 2,
        "--data", data_folder, "--inbox", inbox, "--database", f"sqlite:///{tmp_path}/f.db", "--api-key-file", keys,
        "--read-only", "--cors-origin", "https://a.example", "--cors-origin", "https://b.example",
        "--allowed-host", "c.example", "--max-body-bytes", 1000, "--max-documents", 2, "--max-text-characters", 3,
        "--max-k", 4, "--max-concurrent-requests", 5, "--timeout-seconds", 6.5, "--access-log",
    )  # fmt: skip
    assert code == 0, err
    assert out.startswith("serving tags, foods at http://127.0.0.1:")
    assert "with 2 workers" in out
    assert "feedback goes to" not in err  # it takes none
    folder = str(trained)
    assert started == [
        Settings(
            models={"tags": folder, "foods": folder}, port=0, workers=2, database=f"sqlite:///{tmp_path}/f.db",
            data=str(data_folder), inbox=str(inbox), api_key_file=str(keys), read_only=True,
            cors_origins=["https://a.example", "https://b.example"], allowed_hosts=["c.example"], access_log=True,
            limits=RequestLimits(1000, 2, 3, 4, 5, 6.5),
        )
    ]  # fmt: skip


def test_the_defaults_of_the_command_are_those_of_the_server(run, started, trained):
    run("serve", trained, "--port", 0)
    assert started[0].limits == RequestLimits()
    assert (started[0].host, started[0].workers) == (Settings(models={}).host, Settings(models={}).workers)


def test_everyone_may_use_it_only_where_that_is_said(run, started, trained):
    result = run("serve", trained, "--host", "0.0.0.0", "--port", 0)
    assert refused(result, "a server that other machines can reach needs API keys, but --host is 0.0.0.0")
    assert started == []
    code, _, err = run("serve", trained, "--host", "0.0.0.0", "--port", 0, "--no-auth")
    assert code == 0
    assert "everyone who can reach this machine may use the server" in err


def test_an_address_in_brackets(run, started, trained):
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    code, out, err = run("serve", trained, "--host", "::1", "--port", 0)
    if code and "cannot" in err:
        pytest.skip("this machine has no address ::1")
    assert "at http://[::1]:" in out


def test_a_port_in_use(run, started, trained):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        result = run("serve", trained, "--port", port)
    assert refused(result, f"the server must be able to listen on 127.0.0.1:{port}, but cannot")
    assert started == []


def test_an_address_of_another_machine(run, started, trained):
    result = run("serve", trained, "--host", "203.0.113.7", "--port", 0, "--no-auth")
    assert refused(result, "the server must be able to listen on 203.0.113.7:0, but cannot")
    result = run("serve", trained, "--host", "no such host", "--port", 0, "--no-auth")
    assert refused(result, "the server must be able to listen on no such host:0, but cannot")
    assert started == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing"], "missing"),
        (["{tmp}"], "model.json"),
        (["{model}", "x={model}", "x={model}"], "served models must have different names, but two are 'x'"),
        (["{model}", "{model}"], "served models must have different names, but two are 'foods'"),
        (["a b={model}"], "the name of a served model must be letters, digits"),
        (["{model}", "--data", "missing"], "missing"),
        (["{model}", "--inbox", "missing.jsonl"], "--inbox must be a file of documents, but missing.jsonl is none"),
        (["{model}", "--api-key-file", "missing.txt"], "API keys must be readable, but missing.txt is not"),
        (["{model}", "--database", "mysql://x"], "a database must be FILE, sqlite:///FILE or postgresql://"),
        (["{model}", "--database", "sqlite:///{tmp}/missing/f.db"], "missing"),
        (["{model}", "--no-auth", "--api-key-file", "x"], "--api-key-file and --no-auth exclude each other"),
        (["{model}", "--cors-origin", "*"], "--cors-origin is * without --api-key-file"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_before_anything_is_started(run, started, trained, tmp_path, arguments, said):
    given = [each.format(model=trained, tmp=tmp_path) for each in arguments]
    assert refused(run("serve", *given, "--port", 0), said)
    assert started == []


@pytest.mark.parametrize(
    "arguments", [[], ["--port", "-1"], ["--port", "70000"], ["--workers", "0"], ["--max-k", "0"], ["--nope"]]
)
def test_options_that_are_none(run, started, trained, arguments):
    code, _, err = run("serve", *([trained] if arguments else []), *arguments)
    assert code == 2
    assert "Traceback" not in err
    assert started == []


def test_a_model_of_ready_made_features(run, started, tmp_path):
    X = sp.csr_matrix(np.eye(4, dtype=np.float32))
    Tagger(method="neighbors").fit_dataset(Dataset(X, LabelSpace(list("abcd")), X=X)).save(tmp_path / "features")
    result = run("serve", tmp_path / "features", "--port", 0)
    assert refused(result, "a served model must read the text and nothing else, but")
    assert started == []


def test_a_damaged_model(run, started, model_folder):
    array = max(model_folder.glob("*.safetensors"), key=lambda path: path.stat().st_size)
    array.write_bytes(array.read_bytes()[:100])
    assert refused(run("serve", model_folder, "--port", 0), array.name)
    assert started == []


@pytest.mark.parametrize("package", ["fastapi", "uvicorn"])
def test_the_extra_that_is_missing_is_named(run, started, trained, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    result = run("serve", trained, "--port", 0)
    said = (
        f"labelspace serve needs the package '{package}', which is not installed; run: pip install 'labelspace[serve]'"
    )
    assert refused(result, said)


def test_help_names_every_option(run):
    code, out, _ = run("serve", "--help")
    assert code == 0
    for option in ("--host", "--port", "--workers", "--data", "--inbox", "--database", "--api-key-file", "--no-auth"):
        assert option in out
    for option in ("--read-only", "--cors-origin", "--allowed-host", "--max-body-bytes", "--timeout-seconds"):
        assert option in out
    assert "Limits of a request" in out
