"""labelspace predict --out."""

import json
import os
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace import Tagger
from labelspace.cli.predict import predict as predict_file
from labelspace.data.source import iter_records, write_dataset
from labelspace.types import Concept, Dataset


@pytest.fixture(scope="module")
def model(data, tmp_path_factory):
    """A saved tagger of texts, whose labels have a hierarchy."""
    folder = tmp_path_factory.mktemp("model") / "m"
    train = data[0]
    Tagger("neighbors").fit_dataset(Dataset(train.Y, train.labels, texts=train.texts)).save(folder)
    return folder


@pytest.fixture
def documents(data, run):
    """A file of some documents, in the folder that commands run in."""
    part = data[1].rows(range(20))
    write_dataset(Dataset(part.Y, part.labels, texts=part.texts, ids=[f"doc {i}" for i in range(20)]), "in.jsonl")
    return Path("in.jsonl")


def test_files_have_what_is_printed(run, model, documents):
    _, printed, _ = run("predict", model, "--input", documents, "--k", "3")
    code, out, err = run("predict", model, "--input", documents, "--k", "3", "--out", "a/out.jsonl")
    assert (code, err) == (0, "")
    assert out.startswith("wrote a/out.jsonl: 20 documents, ")
    assert Path("a/out.jsonl").read_text() == printed
    rows = [json.loads(line) for line in printed.splitlines()]
    code, out, _ = run("predict", model, "--input", documents, "--k", "3", "--out", "out.npz", "--json")
    n_labels = sum(len(row["labels"]) for row in rows)
    assert json.loads(out) == {"out": "out.npz", "documents": 20, "labels": n_labels}
    scores, names = sp.load_npz("out.npz"), Tagger.load(model).labels_.names
    best = [names[scores[row].indices[np.argmax(scores[row].data)]] for row in range(20)]
    assert best == [row["labels"][0]["label"] for row in rows]
    run("predict", model, "--input", documents, "--k", "3", "--out", "out.csv")
    lines = Path("out.csv").read_text().splitlines()
    assert len(lines) == 1 + n_labels
    assert lines[1].startswith(f"doc 0,1,{best[0]},")


def test_what_cannot_be_written_is_said_before_the_model_is_read(run, documents):
    for arguments, message in (
        (("--input", documents, "--out", "a.xlsx"), "a file of predictions must end with"),
        (("--input", documents, "--out", documents), "must be another file than --input"),
        (("a text", "--out", "a.csv"), "no --input is given with a.csv; add --input FILE"),
    ):
        code, out, err = run("predict", "no model", *arguments)
        assert (code, out) == (2, "")
        assert message in err
    Path("folder.csv").mkdir()
    assert "is a folder" in run("predict", "no model", "--input", documents, "--out", "folder.csv")[2]


def test_an_error_in_the_input_leaves_nothing(run, model, documents):
    with documents.open("a") as file:
        file.write("no JSON\n")
    for ending in ("csv", "txt"):
        code, _, err = run("predict", model, "--input", documents, "--out", f"out.{ending}")
        assert code == 2
        assert "in.jsonl:21" in err
    assert [path.name for path in Path().iterdir()] == ["in.jsonl"]


def test_names_in_a_language(run, data, documents):
    train = data[0]
    concepts = [Concept(f"ex:{i}", names={"fi": f"nimi {i}"}) for i in range(len(train.labels))]
    space = replace(train.labels, concepts=concepts)
    Tagger("neighbors").fit_dataset(Dataset(train.Y, space, texts=train.texts)).save("m")
    label = json.loads(run("predict", "m", train.texts[0], "--json", "--language", "fi")[1])["results"][0]["labels"][0]
    assert label["label"] == f"nimi {label['id'].removeprefix('ex:')}"
    assert label["path"].endswith(label["label"])
    assert label["label"] in run("predict", "m", train.texts[0], "--language", "fi")[1]
    code, _, err = run("predict", "m", "a text", "--language", "sv")
    assert code == 2
    assert "the names are in fi" in err


def test_progress_of_a_long_file(run, model, documents, monkeypatch):
    monkeypatch.setattr(predict_file, "LINE_INTERVAL", 0.0)
    err = run("predict", model, "--input", documents, "--out", "out.csv")[2]
    assert "tagging: 20 documents (" in err
    assert run("predict", model, "--input", documents, "--out", "out.csv", "--json")[2] == ""


@pytest.mark.parametrize(("name", "head", "row"), [("a.log", "", "{}\n"), ("a.csv", "id,text\n", "1,{}\n")])
def test_documents_of_a_pipe_are_answered_before_more_is_waited_for(tmp_path, name, head, row):
    path = tmp_path / name
    os.mkfifo(path)
    answered, texts, in_time = threading.Event(), [], []

    def produce():
        with path.open("w") as pipe:
            pipe.write(head + row.format("one") + row.format("two"))
            pipe.flush()
            in_time.append(answered.wait(10))
            pipe.write(row.format("three"))

    def answer(documents):
        texts.append([document.text for document in documents])
        if texts[-1]:
            answered.set()

    producer = threading.Thread(target=produce)
    producer.start()
    predict_file.answer_as_they_come(iter_records(path), answer)
    producer.join()
    assert in_time == [True]
    assert [part for part in texts if part] == [["one", "two"], ["three"]]
