"""One JSON array of documents as a file."""

import gzip
import json

import pytest
from hypothesis import given

from labelspace.data.fields import field_records
from labelspace.data.formats import bioasq, json_documents
from labelspace.errors import DataError
from labelspace.types import Fields
from tests.data.formats.text_cases import UTF_8, few, labeled, labels_of, text_datasets


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_rows_and_their_columns(tmp_path, name):
    path, rows = tmp_path / name, [{"text": "red apple", "labels": ["fruit"]}, {"text": "tea", "year": 2000}]
    data = json.dumps({"version": 1, "data": rows}, indent=2).encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    with json_documents.open_json(path, UTF_8) as opened:
        assert opened.names() == ["text", "labels", "year"]
        found = list(opened.read(["text"]))
    assert [row for _, row in found] == rows
    assert [location.line for location, _ in found] == [4, 10]


@few
@given(dataset=text_datasets(with_ids=True))
def test_round_trip(tmp_path_factory, dataset):
    path = tmp_path_factory.getbasetemp() / "round_trip.json"
    json_documents.write_json(path, dataset)
    assert [row["text"] for row in json.loads(path.read_text())] == list(dataset.texts)
    with json_documents.open_json(path, UTF_8) as opened:
        found = list(field_records(opened, Fields()))
    assert [record.text for record in found] == list(dataset.texts)
    assert [record.id for record in found] == (dataset.ids or [str(row) for row in range(len(dataset))])
    assert [list(map(str, record.labels)) for record in found] == [
        labels_of(dataset, row) for row in range(len(dataset))
    ]


def test_no_documents_are_a_list_too(tmp_path, data):
    json_documents.write_json(tmp_path / "a.json", data[0].rows([]))
    assert json.loads((tmp_path / "a.json").read_text()) == []


def test_text_that_is_no_unicode_is_not_written(tmp_path):
    with pytest.raises(DataError, match="must be valid Unicode, but has the lone surrogate"):
        json_documents.write_json(tmp_path / "a.json", labeled(["a"], "\ud800"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (["[", '  {"text": "a"},'], True),
        (['[{"text": "a", "labels": []}]'], True),
        (["{", '"version": 1.5,', '"data": [', '{"text": "a"}'], True),
        (['{"data": [{"text": "a"}]}'], True),
        (['{"text": "a", "labels": []}'], False),
        (['{"text": "a", "subjects": [{"uri": "http://a/b"}]}'], False),
        (['{"name": "a", "tags": [{"name": "b"}]}', '{"name": "c", "tags": []}'], False),
        (['{"articles": [', '{"pmid": "1", "abstractText": "x"}'], False),
        (["[1, 2]"], False),
        (["a text"], False),
        ([], False),
    ],
)
def test_recognized_by_its_start(head, expected):
    assert json_documents.recognizes(head) is expected
    assert not (expected and bioasq.recognizes(head))
