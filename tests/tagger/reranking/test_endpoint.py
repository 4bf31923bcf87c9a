"""A chat endpoint that is down, slow, wrong or hostile: one reason, in time, and nothing of what it said."""

import socket
import time

import pytest

from labelspace.errors import ParameterError
from labelspace.tagger.reranking.endpoint import MAX_ANSWER_BYTES, AnswerError, ChatEndpoint, read_completion
from tests.tagger.reranking.stub import completion, endpoint  # noqa: F401 - a fixture

MESSAGES = [{"role": "user", "content": "caf\u00e9"}]


def ask(stub, seconds=5.0, key=None):
    return ChatEndpoint(stub.url, "tiny", key).ask(MESSAGES, seconds)


def test_an_answer_with_its_tokens(endpoint):  # noqa: F811
    stub = endpoint(completion("{}", prompt_tokens=7, completion_tokens=2))
    assert ask(stub, key="secret") == ("{}", 7, 2)
    path, headers, body = stub.requests[0]
    assert (path, headers["Authorization"]) == ("/v1/chat/completions", "Bearer secret")
    assert (body["model"], body["messages"]) == ("tiny", MESSAGES)


def hang(handler):
    handler.server.stopped.wait(30)


def drip(handler):
    """Send the head of an answer, then a byte now and then: each arrives within the time limit of a socket."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    while not handler.server.stopped.wait(0.05):
        handler.wfile.write(b" ")


def drip_head(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while not handler.server.stopped.wait(0.05):
        handler.wfile.write(b"a")


@pytest.mark.parametrize("behavior", [hang, drip, drip_head])
def test_the_time_limit_ends_what_is_slow(endpoint, behavior):  # noqa: F811
    stub, start = endpoint(behavior), time.monotonic()
    with pytest.raises(AnswerError, match="no answer in time"):
        ask(stub, seconds=0.3)
    assert time.monotonic() - start < 10  # not a time of ours: a hang would take 30


def test_an_encrypted_connection_that_never_begins():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = ChatEndpoint(f"https://127.0.0.1:{silent.getsockname()[1]}", "tiny")
        with pytest.raises(AnswerError, match="no answer in time"):
            endpoint.ask(MESSAGES, 0.2)


def redirect(handler):
    handler.send_response(302)
    handler.send_header("Location", f"{handler.server.url}/elsewhere")
    handler.end_headers()


def status(number):
    def answer(handler):
        handler.send_response(number)
        handler.end_headers()
        handler.wfile.write(b"\x1b[31mthe reason\n")

    return answer


def close(handler):
    handler.connection.shutdown(socket.SHUT_RDWR)


def cut_off(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + completion({})[:20])
    handler.close_connection = True


CASES = {
    "redirect": (redirect, "status 302"),
    "500": (status(500), "status 500"),
    "429": (status(429), "status 429"),
    "closed": (close, "broken connection"),
    "cut off": (cut_off, "not a chat completion"),
    "large": (b" " * 10_000_000, f"an answer over {MAX_ANSWER_BYTES:,} bytes"),
    "no HTTP": (lambda handler: handler.wfile.write(b"SSH-2.0\r\n\r\n") and None, "broken connection"),
}


@pytest.mark.parametrize("case", CASES)
def test_one_reason(endpoint, case):  # noqa: F811
    behavior, reason = CASES[case]
    stub = endpoint(behavior)
    with pytest.raises(AnswerError) as error:
        ask(stub)
    assert str(error.value) == reason
    assert len(stub.requests) == 1  # a redirect is not followed


def test_a_port_where_nobody_listens():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(AnswerError, match="cannot be reached"):
        ChatEndpoint(f"http://127.0.0.1:{port}", "tiny").ask(MESSAGES, 5)


@pytest.mark.parametrize(
    "answer",
    [b"", b"[]", b"{}", b"\xff", b'{"choices": []}', completion("x").replace(b'"x"', b"null"), b"[" * 200_000]
    + [b'{"choices": [{"message": {"content": "{}"}}], "created": NaN}'],
)
def test_what_is_no_completion(answer):
    with pytest.raises(AnswerError, match="not a chat completion"):
        read_completion(answer)


@pytest.mark.parametrize("tokens", [-1, 1e9, 10**10, "7", None, True])
def test_tokens_that_cannot_be_are_none(tokens):
    assert read_completion(completion("{}", prompt_tokens=tokens)).prompt_tokens == 0


@pytest.mark.parametrize(
    "url",
    ["", "ftp://a", "file:///etc/passwd", "127.0.0.1:80", "http://", "http://a:b@c", "http://a/?q=1", "http://a:x"]
    + ["http://a b", "http://a/\r\nX: y", "http://[::1", "http://a#b", "http://caf\u00e9"],
)
def test_addresses_that_are_refused(url):
    with pytest.raises(ParameterError, match="a rerank endpoint must be http://HOST") as error:
        ChatEndpoint(url, "tiny")
    assert "a:b@" not in str(error.value)


def test_what_goes_over_a_network_in_the_open():
    assert ChatEndpoint("http://example.org/v1", "tiny").is_open
    assert not any(ChatEndpoint(url, "tiny").is_open for url in ("https://example.org", "http://[::1]:8080"))


@pytest.mark.parametrize("key", ["", "a b", "a\nX-Other: b", "caf\u00e9"])
def test_a_wrong_key_is_refused_and_not_shown(key):
    with pytest.raises(ParameterError, match="LABELSPACE_RERANK_KEY must be visible ASCII") as error:
        ChatEndpoint("http://127.0.0.1", "tiny", key)
    assert not key or key not in str(error.value)
