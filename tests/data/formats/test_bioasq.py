"""Articles of BioASQ."""

import json
import re

import pytest
from hypothesis import given

from labelspace.data.formats import bioasq, json_stream
from labelspace.errors import DataError
from tests.data.formats.text_cases import UTF_8, damaged, few, labels_of, refusal, text_datasets

ARTICLES = [
    {
        "journal": "J",
        "abstractText": "They lower it.",
        "meshMajor": ["Humans", "Statins"],
        "pmid": "7",
        "title": "Statins",
    },
    {"pmid": 8, "title": "No abstract", "abstractText": "", "meshMajor": ["Humans"], "year": None},
    {"pmid": "9", "title": "To be tagged", "abstract": "Of a test set."},
]
EXPECTED = [
    ("7", "Statins\nThey lower it.", ("Humans", "Statins")),
    ("8", "No abstract", ("Humans",)),
    ("9", "To be tagged\nOf a test set.", ()),
]
FILE = '{"articles": [\n' + ",\n".join(map(json.dumps, ARTICLES)) + "\n]}"


def read(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(bioasq.records(path, UTF_8))


@pytest.mark.parametrize(
    "content",
    [
        FILE,
        json.dumps({"documents": ARTICLES}, indent=1),
        json.dumps(ARTICLES),
        "\n".join(map(json.dumps, ARTICLES)) + "\n\n",
    ],
)
def test_a_file_by_hand(tmp_path, content, monkeypatch):
    for block in (5, 2**18):
        monkeypatch.setattr(json_stream, "BLOCK", block)
        found = read(tmp_path / "a.json", content)
        assert [(record.id, record.text, record.labels) for record in found] == EXPECTED


def test_lines_are_those_of_the_file(tmp_path):
    assert [record.line for record in read(tmp_path / "a.json", FILE)] == [2, 3, 4]
    jsonl = "\n\n".join(map(json.dumps, ARTICLES))
    assert [record.line for record in read(tmp_path / "a.json", jsonl)] == [1, 3, 5]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"pmid": 1}', r"a\.json:1: expected 'title' and 'abstractText' to be texts, but there is neither; correct"),
        ('{"title": ["a"]}', r"a\.json:1: expected 'title' and 'abstractText' to be texts, but one is \['a'\]"),
        ('{"title": "a", "meshMajor": "Humans"}', r"a\.json:1: expected 'labels' to be a list, but it is 'Humans'"),
        ('{"title": "a", "pmid": 1.5}', r"a\.json:1: expected 'id' to be a string or an integer, but it is 1\.5"),
        ('{"title": "a"}\n[1]', r"a\.json:2: expected an article, \{\.\.\.\}, per line, but one is \[1\]"),
        ('{"articles": {"title": "a"}}', r"a\.json:1: expected \[\{\.\.\.\}, \.\.\.\], or an object with such a list"),
    ],
)
def test_malformed_files(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        read(tmp_path / "a.json", content)


@few
@given(content=damaged(FILE.encode()))
def test_damaged_files_are_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "damaged_bioasq.json"
    message = refusal(read, path, content)
    assert message is None or re.search(r"damaged_bioasq\.json:\d+: expected ", message)


@few
@given(dataset=text_datasets(with_ids=True))
def test_round_trip(tmp_path_factory, dataset):
    path = tmp_path_factory.getbasetemp() / "round_trip_bioasq.json"
    bioasq.write(path, dataset)
    found = list(bioasq.records(path, UTF_8))
    assert [record.text for record in found] == list(dataset.texts)
    assert [record.id for record in found] == (dataset.ids or [str(row) for row in range(len(dataset))])
    assert [list(map(str, record.labels)) for record in found] == [
        labels_of(dataset, row) for row in range(len(dataset))
    ]


def test_predictions_are_documents_with_labels(tmp_path):
    bioasq.write_predictions(tmp_path / "a.json", [("7", ["Humans", "Statins"]), ("x", [])])
    assert json.loads((tmp_path / "a.json").read_text()) == {
        "documents": [{"pmid": 7, "labels": ["Humans", "Statins"]}, {"pmid": "x", "labels": []}]
    }


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (FILE.split("\n"), True),
        (["{", '  "documents": [', '    {"title": "{a}",', '"abstract": "b",', '"pmid": 1'], True),
        (['{"pmid": "1", "title": "a", "meshMajor": []}'], True),
        (['{"pmid": "1", "text": "a", "labels": []}'], False),
        (['{"articles": [{"title": "a", "text": "b"}]}'], False),
        (['[{"pmid": "1", "title": "a", "meshMajor": []}]'], True),
        (["[1]"], False),
        ([], False),
    ],
)
def test_recognized_by_its_articles(head, expected):
    assert bioasq.recognizes(head) is expected
