"""The command drift."""

import json
from pathlib import Path

import pytest

from labelspace import Tagger
from labelspace.data.source import write_dataset
from labelspace.types import Dataset


@pytest.fixture(scope="module")
def model(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "m"
    train = data[0]
    documents = Dataset(train.Y, train.labels, texts=train.texts)
    Tagger(members="neighbors,label_tree:words", boosting_rounds=10).fit_dataset(documents).save(folder)
    return folder


@pytest.fixture
def files(data, run):
    """Test documents with labels, and training documents, in the folder that commands run in."""
    for part, name in zip(data, ("train.jsonl", "in.jsonl"), strict=True):
        write_dataset(Dataset(part.Y, part.labels, texts=part.texts), name)


def test_figures_as_json_and_as_a_table(run, model, files, data):
    code, out, err = run("drift", model, "in.jsonl", "--json")
    assert (code, err) == (0, "")
    figures = json.loads(out)
    assert (figures["n"], figures["n_labeled"], figures["seen_in_training"]) == (200, 200, 0.0)
    assert figures["advice"] in ("nothing", "learn", "labels")
    assert 0 <= figures["calibration"]["ECE@5"] <= 100
    code, out, err = run("drift", model, "in.jsonl")
    assert (code, err) == (0, "")
    assert "200 documents, compared with training documents" in out
    assert out.strip().endswith(figures["verdict"])
    for name in ("unknown words", "best label", "ECE@5, 200 documents"):
        assert name in out
    code, out, _ = run("drift", model, "in.jsonl", "--reference", "in.jsonl", "--json")
    assert code == 0
    same = json.loads(out)
    assert same["reference"] == "in.jsonl"
    assert same["unknown_words"]["mean"] == same["unknown_words"]["expected"]
    assert same["labels"]["n_changed"] == 0


def test_texts_without_labels(run, model, data):
    Path("in.txt").write_text("".join(f"{text}\n" for text in data[1].texts))
    code, out, _ = run("drift", model, "in.txt", "--json")
    assert code == 0
    assert json.loads(out)["calibration"] == {"ECE@5": None, "by_chance": None, "changed": False}


def test_documents_from_training_are_named(run, model, files):
    assert "about 100 % of these documents were in the training data" in run("drift", model, "train.jsonl")[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("no.jsonl",), "no.jsonl does not"),
        (("-", "--reference", "-"), "only one of DATA and --reference can be the standard input"),
        (("in.jsonl", "--labels", "nope"), "must have the column 'nope'"),
        (("empty.jsonl",), "must hold at least one document"),
        (("in.jsonl", "--reference", "few.jsonl"), "reference documents must be at least 50, but few.jsonl has 1"),
    ],
)
def test_bad_input_gets_one_line(run, model, files, arguments, message):
    Path("empty.jsonl").write_text("")
    Path("few.jsonl").write_text('{"text": "one"}\n')
    code, out, err = run("drift", model, *arguments)
    assert (code, out) == (2, "")
    assert message in err
