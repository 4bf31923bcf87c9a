"""The tools of an agent: in this process, over HTTP behind keys, and as a process of its own."""

import asyncio
import json
import os
import sys

import pytest

from labelspace.server.database import open_database
from labelspace.server.settings import RequestLimits, Settings

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from mcp import Client, StdioServerParameters  # noqa: E402 - after the check that it is there
from starlette.testclient import TestClient  # noqa: E402

from labelspace.server.mcp import create_server, http_app  # noqa: E402

RYE = "food > bread > rye"
TEXT = "a loaf of rye sourdough"
READ, WRITE = "r" * 20, "w" * 20


@pytest.fixture
def settings(trained, tmp_path):
    """The settings of a server that takes feedback."""

    def make(**given):
        return Settings({"foods": str(trained)}, database=f"sqlite:///{tmp_path / 'feedback.db'}", **given)

    return make


def call(settings, *calls, mode="auto"):
    """The results of calls of tools, in this process; the client checks them by the output schemas."""

    async def asked():
        async with Client(create_server(settings), mode=mode) as client:
            await client.list_tools()
            return [await client.call_tool(name, arguments) for name, arguments in calls]

    return asyncio.run(asked())


def error(result):
    assert result.is_error
    assert result.structured_content is None
    (content,) = result.content
    assert "\n" not in content.text
    return content.text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_tools_answer_as_the_service_does(settings, shared_client, mode):
    service = "/v1/models/foods"
    body = {"text": TEXT, "k": 3, "under": ["food"], "explain": True}
    results = call(
        settings(),
        ("suggest", body),
        ("explain", {"text": TEXT, "labels": [RYE]}),
        ("search_labels", {"query": "brea", "limit": 2}),
        ("label_info", {"label": RYE}),
        mode=mode,
    )
    expected = [
        shared_client.post(f"{service}/suggest", json=body).json(),
        shared_client.post(f"{service}/explain", json={"text": TEXT, "labels": [RYE]}).json(),
        shared_client.get(f"{service}/labels", params={"q": "brea", "limit": 2}).json(),
        shared_client.get(f"{service}/labels/{RYE}").json(),
    ]
    assert [result.structured_content for result in results] == expected
    assert [json.loads(result.content[0].text) for result in results] == expected


def test_feedback_is_stored_under_the_name_of_its_maker(settings):
    given = settings()
    stored, named = call(
        given,
        ("feedback", {"text": TEXT, "accepted": [RYE], "rejected": ["drink > tea"]}),
        ("feedback", {"text": TEXT, "accepted": [RYE], "by": "anna"}),
    )
    assert stored.structured_content["stored"] == 1
    database = open_database(given.database_url)
    first, second = database.feedback("foods")
    database.close()
    assert (first.accepted, first.rejected, first.by, second.by) == ([RYE], ["drink > tea"], "mcp", "anna")


def test_without_feedback_there_is_no_tool_that_writes(settings, tmp_path):
    given = settings(read_only=True)

    async def listed():
        async with Client(create_server(given)) as client:
            return (await client.list_tools()).tools

    tools = asyncio.run(listed())
    assert [tool.name for tool in tools] == ["suggest", "explain", "search_labels", "label_info"]
    assert all(tool.annotations.read_only_hint for tool in tools)
    assert {"text", "k", "include", "min_probability"} <= tools[0].input_schema["properties"].keys()
    (result,) = call(given, ("feedback", {"text": TEXT, "accepted": [RYE]}))
    assert "a tool must be one of suggest, explain, search_labels, label_info, but is 'feedback'" in error(result)
    assert not (tmp_path / "feedback.db").exists()


@pytest.mark.parametrize(
    ("tool", "arguments", "line"),
    [
        ("suggest", {}, "text: field required; see the input schema of the tool"),
        ("suggest", {"text": 7}, "text: input should be a valid string, but is 7; see the input schema"),
        ("suggest", {"text": "a", "other": 1}, "other: extra inputs are not permitted"),
        ("suggest", {"text": "a", "k": 101}, "k must be at most 100, but is 101; ask for fewer labels"),
        ("suggest", {"text": "a", "k": 0}, "k: input should be greater than or equal to 1, but is 0"),
        ("suggest", {"text": "a" * 2001}, "a text must have at most 2000 characters, but has 2001; send a part of it"),
        ("suggest", {"text": "a", "include": ["nope\x1b\n"]}, r"'nope\x1b\n' is none; find it with search_labels"),
        ("suggest", {"text": "a", "include": ["a"] * 1001}, "include: list should have at most 1000 items"),
        ("suggest", {"text": "a", "precision": 0.5, "min_probability": 0.5}, "leave one out"),
        ("explain", {"text": "a", "labels": ["nope"]}, "nope"),
        ("search_labels", {"query": "a", "limit": 101}, "limit: input should be less than or equal to 100"),
        ("search_labels", {"query": "a", "under": "nope"}, "is none; find it with search_labels"),
        ("label_info", {"label": "nope"}, "'nope' is none of 10; find it with search_labels"),
        ("feedback", {"text": "a", "accepted": ["nope"]}, "but 'nope' is none; find it with search_labels"),
        ("feedback", {"text": "a", "accepted": [RYE], "rejected": [RYE]}, "is in both lists; leave one out"),
        ("feedback", {"text": "a"}, "accepted, rejected and added are empty; name one"),
        ("feedback", {"text": "a", "added": ["new"], "allow_new_labels": True}, "extra inputs are not permitted"),
        ("nope" * 100, {}, "a tool must be one of suggest, explain"),
    ],
)
def test_a_wrong_call_gets_one_line(settings, tool, arguments, line):
    (result,) = call(settings(limits=RequestLimits(max_text_characters=2000)), (tool, arguments))
    assert line in error(result)


def test_an_unforeseen_error_says_nothing_of_the_inside(settings, monkeypatch, caplog):
    def broken(*args):
        raise RuntimeError("a secret")

    monkeypatch.setattr("labelspace.server.mcp.label_answer", broken)
    (result,) = call(settings(), ("label_info", {"label": RYE}))
    assert "failed in the server; see its log" in error(result)
    assert "a secret" in caplog.text


def test_a_model_that_does_not_load_is_said(settings, tmp_path):
    (result,) = call(Settings({"foods": str(tmp_path / "none")}, read_only=True), ("suggest", {"text": TEXT}))
    assert "the model foods must be loaded, but is not yet (" in error(result)


def test_an_answer_has_a_time_limit(settings, monkeypatch):
    async def slow(*args):
        await asyncio.sleep(60)

    monkeypatch.setattr("labelspace.server.state.ServerState.in_thread", slow)
    limits = RequestLimits(timeout_seconds=0.1)
    (result,) = call(settings(limits=limits, read_only=True), ("search_labels", {"query": "a"}))
    assert "an answer must take at most 0.1 s" in error(result)


MODERN = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call"}  # with an envelope in each request
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def post(client, tool, arguments, **headers):
    params = {"name": tool, "arguments": arguments, "_meta": ENVELOPE}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return client.post("/mcp", json=body, headers={"Accept": "application/json, text/event-stream", **headers})


def test_over_http_the_gate_of_the_service_is_passed(settings):
    with TestClient(http_app(settings()), base_url="http://127.0.0.1:8000") as client:
        answer = post(client, "suggest", {"text": TEXT, "k": 1})
        assert answer.json()["result"]["structuredContent"]["suggestions"][0]["label"].startswith("food > bread")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert post(client, "suggest", {"text": TEXT}, Host="evil.org").status_code == 403
        assert post(client, "suggest", {"text": TEXT}, Origin="http://evil.org").status_code == 403
        assert post(client, "suggest", {"text": "a" * 2_000_000}).status_code == 413
        assert client.get("/mcp").status_code == 405


def test_a_key_that_may_only_read_stores_no_feedback(settings, tmp_path):
    keys = tmp_path / "keys.txt"
    keys.write_text(f"read {READ}\nwrite {WRITE}\n")
    entry = {"text": TEXT, "accepted": [RYE]}
    with TestClient(http_app(settings(api_key_file=str(keys))), base_url="http://127.0.0.1:8000") as client:
        assert post(client, "suggest", {"text": TEXT}).status_code == 401
        for protocol in ({}, {**MODERN, "Mcp-Name": "feedback"}):
            refused = post(client, "feedback", entry, Authorization=f"Bearer {READ}", **protocol).json()["result"]
            assert refused["isError"]
            assert "changes need a write key" in refused["content"][0]["text"]
            stored = post(client, "feedback", entry, Authorization=f"Bearer {WRITE}", **protocol).json()["result"]
            assert stored["structuredContent"]["stored"] == 1


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--port", 80), "--port is for a server over HTTP, but there is none; add --http"),
        (("--http", "--host", "0.0.0.0"), "a server that other machines can reach needs API keys"),
        (("--http", "--api-key-file", "none.txt"), "API keys must be readable, but none.txt is not"),
        (("--feedback", "broken"), "foods.feedback.db"),
    ],
)
def test_a_server_that_cannot_start_says_why(run, trained, arguments, line):
    os.mkdir("broken")
    with open("broken/foods.feedback.db", "wb") as file:
        file.write(b"no database" * 1000)
    code, out, err = run("mcp", trained, *arguments)
    assert code != 0
    assert (out, err.count("\n")) == ("", 1)
    assert line in err


@pytest.mark.slow
def test_a_process_answers_over_its_pipe(trained, tmp_path):
    command = [sys.executable, "-m", "labelspace", "mcp", str(trained), "--feedback", str(tmp_path / "store")]
    process = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))

    async def asked():
        async with Client(process) as client:
            found = await client.call_tool("suggest", {"text": TEXT, "k": 1})
            stored = await client.call_tool("feedback", {"text": TEXT, "accepted": [RYE]})
            return found, stored

    found, stored = asyncio.run(asked())
    assert found.structured_content["suggestions"][0]["label"].startswith("food > bread")
    assert stored.structured_content["stored"] == 1
    assert (tmp_path / "store" / "foods.feedback.db").exists()
