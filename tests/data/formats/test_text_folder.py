"""Folders of texts, and Annif's full-text corpus."""

import json
from dataclasses import replace

import pytest
from hypothesis import given

from labelspace.data.dataset_builder import assemble
from labelspace.data.formats import text_folder
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Subject
from labelspace.errors import DataError
from labelspace.types import Concept
from tests.data.formats.text_cases import UTF_8, few, labeled, labels_of, refusal, text_datasets


def folder(path, files):
    path.mkdir(exist_ok=True)
    for name, content in files.items():
        (path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(path, options=UTF_8):
    return [(record.id, record.text, record.labels) for record in text_folder.records(path, options)]


CORPUS = {
    "b.txt": "second\r\ntext\n",
    "b.tsv": "<http://a/p1>\tcats\n<http://a/p2>\n\n<http://a/p1>\tcats\t0.9\n",
    "a.txt": "\ufefffirst",
    "a.key": "cats\n dogs \ncats",
    "a-c.txt": "",
    "both.txt": "x",
    "both.tsv": "from tsv\n",
    "both.key": "from key\n",
    "d.json": json.dumps({"text": "of json", "subjects": [{"uri": "http://a/p1", "label": "cats"}, {"label": "dogs"}]}),
    "e.json": json.dumps({"text": "with id", "document_id": "e1", "metadata": {"title": "t"}}, indent=1),
    "a.pdf": b"\xff",
    ".hidden": b"\xff",
}


def test_annifs_full_texts(tmp_path):
    path = folder(tmp_path / "docs", CORPUS)
    assert read(path) == [
        ("a-c", "", ()),
        ("a", "first", ("cats", "dogs")),
        ("b", "second\r\ntext\n", (Subject("http://a/p1", "cats"), "http://a/p2")),
        ("both", "x", ("from tsv",)),
        ("d", "of json", (Subject("http://a/p1", "cats"), "dogs")),
        ("e1", "with id", ()),
    ]
    assert text_folder.recognizes_folder(path)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, r"docs: expected \.txt or \.json files in the folder, but there are none; add them"),
        (
            {"a.txt": "", "b.key": ""},
            r"b\.key: expected the text of these labels next to it, but there is no b\.txt; add",
        ),
        (
            {"a.txt": "", "a.json": "{}"},
            r"a\.json: expected each document in one file, but there is a a\.txt too; remove",
        ),
        ({"a.txt": "", "b.pdf": ""}, r"docs: expected files that are, or belong to, .*, but there is 'b\.pdf'; move"),
        ({"a.json": "[1]"}, r"a\.json:1: expected a JSON object, but the line is a list"),
        ({"a.json": '{"metadata": {}}'}, r"a\.json:1: expected 'text' \(a string\) or 'features', but 'text' is null"),
        ({"a.json": '{"text": 3}'}, r"a\.json:1: expected 'text' to be a string, but it is 3"),
        ({"a.json": '{"text": "", "subjects": {}}'}, None),
        ({"a.json": '{"text": "", "subjects": "x"}'}, r"a\.json:1: expected 'subjects' to be a list, but it is 'x'"),
        ({"a.json": '{"text": "", "subjects": ["x"]}'}, r"a\.json:1: expected subjects with a 'uri' or a 'label', but"),
        ({"a.json": '{"text": "", "subjects": [{"uri": 3}]}'}, r"a\.json:1: expected subjects with a 'uri' or a"),
        ({"a.json": "[" * 99999}, r"a\.json:1: expected a JSON object, but the line is not JSON"),
        ({"a.txt": b"x\n\xff"}, r"a\.txt:2: expected UTF-8 text, but byte 1 of the line is 0xff"),
        ({"a.txt": "", "a.tsv": b"\xff"}, r"a\.tsv:1: expected UTF-8 text, but byte 1 of the line is 0xff"),
    ],
)
def test_malformed_folders(tmp_path, files, message):
    path = folder(tmp_path / "docs", files)
    if message is None:
        assert read(path) == [("a", "", ())]
        return
    with pytest.raises(DataError, match=message):
        read(path)


def test_what_is_no_folder_of_texts(tmp_path):
    with pytest.raises(DataError, match=r"missing must be a folder of texts, but it cannot be read \(No such file"):
        read(tmp_path / "missing")
    (tmp_path / "docs" / "sub").mkdir(parents=True)
    with pytest.raises(DataError, match=r"expected files that are, or belong to, .*, but there is 'sub'; move it away"):
        read(tmp_path / "docs")
    assert not text_folder.recognizes_folder(tmp_path / "docs")
    try:
        (tmp_path / "docs" / "\udce9.txt").write_text("")
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    with pytest.raises(DataError, match=r"docs: expected file names in UTF-8, but there is .*udce9\.txt.*; rename it"):
        read(tmp_path / "docs")


def test_a_text_has_a_limit(tmp_path, monkeypatch):
    monkeypatch.setenv("LABELSPACE_MAX_LINE_BYTES", "10")
    with pytest.raises(
        DataError, match=r"a\.txt:3: expected a text of at most 10 characters, but there are more; split"
    ):
        read(folder(tmp_path / "docs", {"a.txt": "abcd\nefgh\nijkl\n"}))


def test_encodings_are_detected_and_told_once(tmp_path):
    said = []
    files = {name: "crème brûlée".encode("cp1252") for name in ("a.txt", "b.txt", "b.key")} | {"c.txt": "thé"}
    found = read(folder(tmp_path / "docs", files), ReadOptions(say=said.append))
    assert found == [("a", "crème brûlée", ()), ("b", "crème brûlée", ("crème brûlée",)), ("c", "thé", ())]
    assert said == [f"{tmp_path / 'docs' / 'a.txt'}: encoding windows-1252; other files may have it too"]


@few
@given(dataset=text_datasets(with_ids=True))
def test_round_trip(tmp_path_factory, dataset):
    path = tmp_path_factory.mktemp("folders") / "docs"
    if refusal(text_folder.write, path, dataset):
        assert not list(path.parent.iterdir())
        return
    found = {record.id: record for record in text_folder.records(path, UTF_8)}
    ids = dataset.ids or [str(row) for row in range(len(dataset))]
    assert {id_: found[id_].text for id_ in ids} == dict(zip(ids, dataset.texts, strict=True))
    assert {id_: list(found[id_].labels) for id_ in ids} == {
        id_: labels_of(dataset, row) for row, id_ in enumerate(ids)
    }


def test_written_with_uris(tmp_path):
    dataset = labeled(["cats", "dogs"], "x", "y")
    space = replace(dataset.labels, concepts=[Concept("http://a/p1"), Concept()])
    text_folder.write(tmp_path / "docs", replace(dataset, labels=space, ids=["one", "two"]))
    assert (tmp_path / "docs" / "two.tsv").read_text() == "<http://a/p1>\tcats\ndogs\n"
    back = assemble(text_folder.records(tmp_path / "docs", UTF_8), tmp_path / "docs")
    assert (list(back.labels.names), back.labels.uris) == (["cats", "dogs"], {"http://a/p1": 0})
    with pytest.raises(
        DataError, match=r"docs must be a new folder, or an empty one, but it is not; give another name"
    ):
        text_folder.write(tmp_path / "docs", dataset)


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (
            replace(labeled([], "x"), ids=["../x"]),
            r"ids must be names for files, each once, but one is '\.\./x'; change",
        ),
        (replace(labeled([], "x"), ids=[".x"]), r"ids must be names for files, .*, but one is '\.x'"),
        (replace(labeled([], "x", "y"), ids=["a", "A"]), r"ids must be names for files, .*, but 'A' occurs twice"),
        (replace(labeled([], "x"), ids=["x" * 999]), r"the data must be written to .*docs, but that failed"),
        (labeled(["a\tb"], "x"), r"a label must be a URI, a name on one line .*, but there is 'a\\tb'; rename it"),
        (labeled(["<a>"], "x"), r"a label must be a URI, .*, but there is '<a>'"),
        (labeled([], "\ufeffx"), r"texts must not start with a byte order mark, but that of '0' does; remove it"),
        (labeled([], "\ud800"), r"must be valid Unicode, but has the lone surrogate"),
    ],
)
def test_what_would_be_read_differently_is_not_written(tmp_path, dataset, message):
    with pytest.raises(DataError, match=message):
        text_folder.write(tmp_path / "docs", dataset)
    assert not list(tmp_path.iterdir())
