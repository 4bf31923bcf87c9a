"""JSON of any size, value by value."""

import io
import itertools
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelspace.data.formats import json_stream
from labelspace.data.formats.json_stream import JsonStream, documents
from labelspace.errors import DataError
from tests.data.formats.text_cases import damaged, few, refusal, texts

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, values, max_size=3)


def read(content, encoding=None):
    data = content if isinstance(content, bytes) else content.encode()
    return [value for _, value in documents(JsonStream("a.json", io.BytesIO(data), encoding))]


@pytest.fixture(params=[1, 2, 7, 64])
def small_blocks(request, monkeypatch):
    """Blocks that end anywhere: in a string, an escape, a number, a character."""
    monkeypatch.setattr(json_stream, "BLOCK", request.param)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("indent", [None, 1])
def test_blocks_may_end_anywhere(ascii_only, indent):
    rows = [{"a": '日本 😀 \\ " \n', "b": [1.5e-300, -1234567890123, True, None, float("inf")]}, {}, {"": [[], {}]}] * 3
    for whole in (rows, {"version": 12345, "list": [1, [2]], "data": rows, "more": {"x": None}}):
        assert read(json.dumps(whole, ensure_ascii=ascii_only, indent=indent)) == rows


@few
@given(rows=st.lists(objects, min_size=1, max_size=4), indent=st.sampled_from([None, 0, 3]), ascii_only=st.booleans())
def test_the_same_as_json_loads(rows, indent, ascii_only):
    text = json.dumps(rows, indent=indent, ensure_ascii=ascii_only)
    assert read(text) == json.loads(text)


@few
@given(
    content=damaged(b'{"n": 1, "data": [{"text": "a \\u00e9", "labels": ["x", 3]},\n {"text": null}, {"y": -1.5e3}]}\n')
)
def test_damaged_files_are_read_or_refused(content):
    message = refusal(read, content)
    assert message is None or re.match(r"a\.json:\d+: expected ", message)


def test_only_what_is_needed_is_read():
    class Endless(io.RawIOBase):
        def read(self, size=-1):
            return b'{"text": "red apple"},\n' * (size // 20)

    endless = Endless()
    stream = JsonStream("a.json", io.BytesIO(b"[" + endless.read(100)))
    stream._file = endless
    locations = [location.line for location, _ in itertools.islice(documents(stream), 100_000)]
    assert locations == list(range(1, 100_001))
    assert len(stream._text) <= 2 * json_stream.BLOCK


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"a\.json:1: expected \[\{\.\.\.\}, \.\.\.\], or an object with such a list, but there is none; use"),
        ("3", r"a\.json:1: expected \[\{.* there is none"),
        ("{}", r"a\.json:1: expected \[\{.* there is none"),
        ('{"text": "a", "labels": ["b"]}', r"a\.json:1: expected \[\{.* there is none; use \.jsonl for JSON lines"),
        ('\n[{"a": 1}\n{"a": 2}]', r"a\.json:3: expected ',' or '\]', but found '\{'; correct it"),
        ('[{"a": 1},', r"a\.json:1: expected JSON, but it is malformed \(Expecting value\); correct it, or download"),
        ('[{"a": 1}', r"a\.json:1: expected ',' or '\]', but the file ends"),
        ('[{"a": "unclosed\\n}]', r"a\.json:1: expected JSON, but it is malformed \(Unterminated string starting at\)"),
        ('[\n{"a":\n 1, b: 2}, ' + " " * 99 + "]", r"a\.json:3: expected JSON, but it is malformed \(Expecting prop"),
        ('[{"a": "raw\nend"}' + " " * 99 + "]", r"a\.json:1: expected JSON, but it is malformed \(Invalid control"),
        ('[{"a": 1},\n\n{"b": 2},\n{"c":\n\n', r"a\.json:6: expected JSON, but it is malformed \(Expecting value\)"),
        (
            '[{"a": 1},\n{"b": "un\n\n\n',
            r"a\.json:2: expected JSON, but it is malformed \(Invalid control character at\)",
        ),
        ("[" * 10**5, r"a\.json:1: expected JSON, but it is malformed \(it is nested too deeply"),
        ('[{"a": ' + "9" * 5000 + "}]", r"a\.json:1: expected JSON, but it is malformed \(.*a number is too long\)"),
        ("[\n1, 2]", r"a\.json:2: expected a JSON object per document, but one is 1; write"),
        ('{"a": [{}], "b": [{}]}', r"a\.json:1: expected one list of documents, but there are 'a' and 'b'; remove one"),
        ('{"a" [{}]}', r'a\.json:1: expected "key": value, but found \'a\''),
        ("{1: [{}]}", r'a\.json:1: expected "key": value, but found 1'),
        ('[{}]\n{"a": 1}', r"a\.json:2: expected the end of the file after the documents, but found '\{'"),
        ('[{}\n,{"a": "\\ud800"}]', r"a\.json:2: expected valid Unicode, but there is the lone surrogate"),
        (b'[{"a": "\n\xff"}]', r"a\.json:2: expected utf-8 text, but some bytes cannot be decoded; save it as UTF-8"),
        (b'[{"a": "\xc3', r"a\.json:1: expected utf-8 text, but some bytes cannot be decoded"),
    ],
)
def test_malformed_files(content, message):
    with pytest.raises(DataError, match=message) as error:
        read(content)
    assert "\n" not in str(error.value)


def test_other_encodings_and_a_byte_order_mark():
    rows = [{"text": "thé"}]
    for encoding in ("utf-8-sig", "utf-16", "windows-1252", "utf-8"):
        assert read(json.dumps(rows, ensure_ascii=False).encode(encoding), encoding) == rows
    assert read(b"\xef\xbb\xbf" + json.dumps(rows).encode()) == rows


def test_a_document_has_a_limit(monkeypatch):
    monkeypatch.setenv("LABELSPACE_MAX_LINE_BYTES", "1000")
    monkeypatch.setattr(json_stream, "BLOCK", 100)
    assert len(read(json.dumps([{"a": "x" * 900}] * 50))) == 50
    with pytest.raises(DataError, match=r"a\.json:2: expected at most 1000 bytes per line or row, but there are more"):
        read('[{"a": 1},\n{"a": "' + "x" * 3000 + '"}]')
