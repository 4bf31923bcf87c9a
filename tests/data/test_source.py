"""Files by name, folders of splits, streams."""

import gzip
import io
import os
import sys
import threading
import tracemalloc

import pytest

from labelspace.data.dataset_file import files_of
from labelspace.data.records import Record
from labelspace.data.source import Source, iter_records, open_source, read, read_dataset, write_dataset
from labelspace.errors import DataError
from labelspace.types import Columns, Fields, LabelSpace

LINE = '{{"text": "{}", "labels": ["{}"]}}\n'


def folder(tmp_path, **files):
    for name, text in files.items():
        (tmp_path / name.replace("__", ".")).write_text(text)
    return tmp_path


@pytest.mark.parametrize("name", ["a.doc", "a", "a.pdf.gz", "-"])
def test_unknown_endings_list_the_known_ones(tmp_path, name):
    message = r"must end with \.txt, \.jsonl, .*\.parquet.*, each also with \.gz.*, but is '.*'; rename"
    with pytest.raises(DataError, match=message):
        read_dataset(tmp_path / name)
    dataset = read_dataset(folder(tmp_path, b__jsonl=LINE.format("x", "y")) / "b.jsonl")
    with pytest.raises(DataError, match=message):
        write_dataset(dataset, tmp_path / name)


def test_a_folder_with_all_splits(tmp_path):
    source = open_source(
        folder(
            tmp_path,
            train__jsonl=LINE.format("one", "b"),
            dev__csv="text,labels\ntwo,a\n",
            test__jsonl=LINE.format("three", "b") + LINE.format("four", "c"),
            labels__jsonl='{"label": "b"}\n',
            hierarchy__tsv="b\ttop\n",
            products_train__csv="title\nx\n",
            train_notes__txt="x",
            README__md="x",
        )
    )
    train = source.train()
    assert (source.path, source.has_test, source.dev_path) == (tmp_path, True, tmp_path / "dev.csv")
    assert list(train.labels.names) == ["b", "top"]
    dev, test = source.dev(train.labels), source.test(train.labels)
    assert (list(dev.texts), list(dev.labels.names)) == (["two"], ["b", "top", "a"])
    assert (list(test.texts), list(test.labels.names)) == (["three", "four"], ["b", "top", "c"])
    assert [train.name, dev.name, test.name] == ["train", "dev", "test"]
    assert list(source.test().labels.names) == ["b", "c", "top"]


def test_no_split_opens_the_file_of_another(tmp_path):
    source = open_source(
        folder(tmp_path, train__jsonl=LINE.format("one", "b"), dev__txt="rubbish", test__csv="rubbish")
    )
    assert list(source.train().texts) == ["one"]
    for split, message in (
        (source.dev, "dev.txt:1: expected a header"),
        (source.test, "test.csv must hold at least one"),
    ):
        with pytest.raises(DataError, match=message):
            split()
    (tmp_path / "train.jsonl").write_text("rubbish")
    (tmp_path / "test.csv").write_text("text\ntwo\n")
    assert list(source.test().texts) == ["two"]


def test_a_single_file_is_the_training_split(tmp_path):
    path = folder(tmp_path, reviews__jsonl=LINE.format("one", "b"), test__jsonl="rubbish") / "reviews.jsonl"
    source = open_source(str(path))
    assert source == Source(path, path)
    assert (len(source.train()), source.dev(), source.test(LabelSpace(["a"]))) == (1, None, None)


def test_missing_or_doubled_files(tmp_path):
    with pytest.raises(DataError, match=r"must be a file or a folder, but .*none does not exist; check the path"):
        open_source(tmp_path / "none")
    with pytest.raises(DataError, match=r"must have train\.\* \(\.txt, .*\), but .* has none; add it, or give a file"):
        open_source(folder(tmp_path, test__jsonl="", train__doc="", xtrain__csv=""))
    folder(tmp_path, train__jsonl="", train__csv="")
    with pytest.raises(
        DataError, match=r"there must be one train\.\* in .*, but there are train.csv and train.jsonl; remove"
    ):
        open_source(tmp_path)
    (tmp_path / "train.csv").rename(tmp_path / "test.jsonl.gz")
    with pytest.raises(
        DataError, match=r"one test\.\* in .*, but there are test.jsonl and test.jsonl.gz; remove all but one"
    ):
        open_source(tmp_path)
    with pytest.raises(DataError, match=r"must end with .*, but is 'train.doc'"):
        open_source(tmp_path / "train.doc")


def test_plain_lines(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffone\r\n\n3 4 5\nlast".encode())
    assert list(iter_records(path)) == [
        Record("0", "one", line=1),
        Record("1", "", line=2),
        Record("2", "3 4 5", line=3),
        Record("3", "last", line=4),
    ]


def test_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("ä\nb\n".encode())))
    assert [record.text for record in iter_records("-")] == ["ä", "b"]


@pytest.mark.parametrize(
    ("name", "text"), [("a.jsonl", '{"id": "x", "text": "one", "labels": 3}\n'), ("a.csv", "labels,text,id\n[,one,x\n")]
)
def test_other_formats_stream_with_labels_left_aside(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert [(record.id, record.text, record.labels) for record in iter_records(tmp_path / name)] == [("x", "one", ())]


@pytest.mark.parametrize(
    ("name", "head", "row"),
    [("a.jsonl", "", '{"text": "one"}\n'), ("a.csv", "text\n", "one\n"), ("a.log", "", "one\n")],
)
def test_a_record_comes_before_the_next_is_written(tmp_path, name, head, row):
    path = tmp_path / name
    os.mkfifo(path)
    taken, in_time = threading.Event(), []

    def produce():
        with path.open("w") as pipe:
            pipe.write(head + row)
            pipe.flush()
            in_time.append(taken.wait(10))
            pipe.write(row)

    producer = threading.Thread(target=produce)
    producer.start()
    stream = iter_records(path)
    assert next(stream).text == "one"
    taken.set()
    assert [record.text for record in stream] == ["one"]
    producer.join()
    assert in_time == [True]


@pytest.mark.parametrize(
    ("name", "head", "row"),
    [("a.jsonl", "", '{{"text": "{}"}}\n'), ("a.csv", "text\n", "{}\n"), ("a.txt.gz", "", "{}\n")],
)
def test_memory_does_not_grow_with_the_file(tmp_path, name, head, row):
    path = tmp_path / name
    data = (head + row.format("word " * 2000) * 2000).encode()
    path.write_bytes(gzip.compress(data, 1) if name.endswith(".gz") else data)
    tracemalloc.start()
    count = sum(1 for _ in iter_records(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 2000
    assert peak < 3 * 2**20 < len(data) / 6


def test_stopping_early_closes_the_file(tmp_path):
    path = folder(tmp_path, a__txt="one\ntwo\n") / "a.txt"
    stream = iter_records(path)
    next(stream)
    open_before = os.listdir("/dev/fd")
    stream.close()
    assert len(os.listdir("/dev/fd")) == len(open_before) - 1


def test_files_are_read_as_the_training_file_of_a_model_was(tmp_path):
    files = folder(tmp_path, train__csv="title;body;tags\none;two;a\n", test__csv="title;body;tags\nthree;four;a, b\n")
    fields = Fields(("body",), ("tags",), None, ",")
    test = open_source(files).read_as(None, fields).test(LabelSpace(["a", "b"]))
    assert (list(test.texts), test.Y.toarray().tolist()) == (["four"], [[1.0, 1.0]])


def test_the_files_of_a_split(tmp_path):
    data = folder(tmp_path, train__csv="", labels__jsonl="", other__csv="")
    assert [file.name for file in files_of(data / "train.csv")] == ["train.csv", "labels.jsonl"]
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("one")
    assert [file.name for file in files_of(tmp_path / "texts")] == ["a.txt"]
    pairs = tmp_path / "pairs"
    pairs.mkdir()
    for name in ("trn_X_Xf.txt", "trn_X_Y.txt"):
        (pairs / name).write_text("")
    assert [file.name for file in files_of(pairs / "trn_X_Xf.txt")] == ["trn_X_Xf.txt", "trn_X_Y.txt"]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.jsonl", '{"text": "x"}\n{"text": "y", "labels": ["cat", "dog"]}\n', [(), ("cat", "dog")]),
        ("a.jsonl", '{"text": "x", "labels": null}\n', [()]),
        ("a.csv", "title,tags\nx,cat;dog\ny,\n", [("cat", "dog"), ()]),
        ("a.csv", "title\nx\n", [()]),
        ("a.txt", "x\ny\n", [(), ()]),
        ("a.txt", "__label__cat x\n__label__dog y\n", [("cat",), ("dog",)]),
        ("a.csv", "", []),
    ],
)
def test_documents_of_a_stream_have_labels_if_these_are_asked_for(tmp_path, name, content, expected):
    path = tmp_path / name
    path.write_text(content)
    known = LabelSpace(["cat", "dog"])
    assert [record.labels for record in iter_records(path, known=known)] == expected
    if "__label__" not in content:
        assert all(record.labels == () for record in iter_records(path))


def test_json_lines_of_a_pipe_have_labels_even_if_the_first_document_has_none(monkeypatch):
    lines = b'{"text": "x"}\n{"text": "y", "labels": ["cat"]}\n'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    assert [record.labels for record in iter_records("-", known=LabelSpace(["cat"]))] == [(), ("cat",)]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    assert [(record.text, record.labels) for record in iter_records("-")] == [("x", ()), ("y", ())]


def test_rows_of_a_table_have_labels_only_with_all_columns_of_labels(tmp_path):
    columns = Columns(("title",), (("brand",),))
    for content, expected in (("title,brand\nx,Trm\n", ("brand: Trm",)), ("title\nx\n", ())):
        path = tmp_path / "a.csv"
        path.write_text(content)
        [record] = iter_records(path, columns=columns, known=LabelSpace(["brand: Trm"]))
        assert (record.text, record.labels) == ("title: x", expected)


def test_something_else_than_a_path_is_named():
    with pytest.raises(DataError, match="must be the path of a file or folder, but is of type StringIO"):
        read(io.StringIO("text,labels"))
