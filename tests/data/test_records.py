"""What a record may be, and what the message says where it is not; tried through JSON lines."""

import json

import pytest

from labelspace.data.fields import field_records
from labelspace.data.formats.json_documents import open_jsonl
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Record
from labelspace.data.source import read_dataset
from labelspace.errors import DataError
from labelspace.types import Fields


def records(tmp_path, *lines, **options):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    with open_jsonl(path, ReadOptions()) as rows:
        return list(field_records(rows, Fields(), **options))


def test_fields_and_their_defaults(tmp_path):
    got = records(
        tmp_path,
        '{"text": "", "labels": ["b", "a", "b"], "other": 1}',
        '{"id": 7, "text": "tw\\u00f6\\nlines", "labels": [3, 1, 3]}',
        '{"id": "x", "text": "unlabelled", "labels": null}',
        '{"features": "3:0.5 17:1", "text": null}',
        '{"features": {"3": 0.5, "17": 1}, "text": "both"}',
    )
    assert got == [
        Record("0", "", None, ("b", "a"), 1),
        Record("7", "twö\nlines", None, (3, 1), 2),
        Record("x", "unlabelled", None, (), 3),
        Record("3", None, "3:0.5 17:1", (), 4),
        Record("4", "both", "3:0.5 17:1", (), 5),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", r"expected a JSON object, but the line is blank; remove the line"),
        (
            '{"text": "cut',
            r"expected a JSON object, but the line is not JSON \(Unterminated string .*, column 10\); correct the line",
        ),
        pytest.param(
            "[" * 100_000, r"expected a JSON object, but the line is not JSON \(it is nested too deeply.*\)", id="deep"
        ),
        ('["text"]', r"expected a JSON object, but the line is a list; write \{...\} on every line"),
        (
            '{"labels": ["a"]}',
            r"expected 'text' \(a string\) or 'features', but there is neither; give every document one",
        ),
        ('{"text": null}', r"expected 'text' \(a string\) or 'features', but 'text' is null; give"),
        ('{"text": 3}', r"expected 'text' to be a string, but it is 3; write it in quotes"),
        ('{"text": ["a"]}', r"expected 'text' to be a string, but it is \['a'\]; write"),
        ('{"text": "half \\ud83d"}', r"expected valid Unicode, but there is the lone surrogate '\\ud83d'; remove"),
        ('{"text": "a", "id": true}', r"expected 'id' to be a string or an integer, but it is true; write"),
        (
            '{"text": "a", "labels": 1.5}',
            r"expected 'labels' to be a list or a text, but it is 1.5; write \[\"name\", ...\] or \[id",
        ),
        ('{"text": "a", "labels": [1.5]}', r"expected labels to be names or ids, but one is 1.5; write a string or"),
        ('{"text": "a", "labels": [true]}', r"expected labels to be names or ids, but one is true; write"),
        ('{"text": "a", "labels": [null]}', r"expected labels to be names or ids, but one is null; write"),
        ('{"text": "a", "labels": [""]}', r"expected label names, but one is empty; remove it or give it a name"),
        (
            '{"text": "a", "labels": [-1]}',
            r"expected a label id from 0 to 2147483646, but one is -1; correct it, or write a",
        ),
        ('{"features": 1}', r"expected 'features' as \"3:0.5 17:1\", .* or \[0.5, 1.5\], but it is 1; write"),
        ('{"features": [1, null]}', r"expected a number for feature 1, but it is null; write a number"),
        ('{"features": {"a": 1}}', r"expected integers as keys of 'features', but one is 'a'; write the index"),
        ('{"features": {"1:2 3": 1}}', r"expected integers as keys of 'features', but one is '1:2 3'; write"),
        ('{"features": {"1": "x"}}', r"expected a number for feature 1, but it is 'x'; write a number"),
    ],
)
def test_malformed_records_are_located(tmp_path, line, message):
    with pytest.raises(DataError, match=r"a\.jsonl:2: " + message) as error:
        records(tmp_path, '{"text": "fine"}', line, '{"text": "fine"}')
    assert "\n" not in str(error.value)


def test_a_long_value_is_cut_in_the_message(tmp_path):
    with pytest.raises(DataError, match=r"it is \['xxx.*\.\.\.; write") as error:
        records(tmp_path, json.dumps({"text": ["x" * 1000]}))
    assert len(str(error.value)) < len(str(tmp_path)) + 150


def test_surrogate_pairs_are_characters(tmp_path):
    assert records(tmp_path, '{"text": "\\ud83d\\ude00"}')[0].text == "\N{GRINNING FACE}"


def test_labels_left_aside_are_not_even_checked(tmp_path):
    assert records(tmp_path, '{"text": "a", "labels": "rubbish"}', with_labels=False)[0].labels == ()


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (
            '{"features": "1:1"}',
            r"a\.jsonl:2: expected 'text' in all documents or in none, but this one has none and the first has; add",
        ),
        (
            '{"text": "b", "features": "1:1"}',
            r"a\.jsonl:2: expected 'features' in all documents or in none, but this one has and the first has none",
        ),
    ],
)
def test_all_documents_have_the_same_fields(tmp_path, second, message):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a"}\n' + second + "\n")
    with pytest.raises(DataError, match=message):
        read_dataset(path)


def test_an_empty_file(tmp_path):
    (tmp_path / "a.jsonl").write_text("")
    with pytest.raises(DataError, match=r"a\.jsonl must hold at least one document, but has none; give another file"):
        read_dataset(tmp_path / "a.jsonl")
