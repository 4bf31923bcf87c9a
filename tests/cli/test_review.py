"""The command review."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from labelspace import Tagger
from labelspace.data.source import read_dataset
from labelspace.types import Dataset


@pytest.fixture(scope="module")
def model(data, tmp_path_factory):
    """A saved blend, which is calibrated."""
    folder = tmp_path_factory.mktemp("model") / "m"
    train = data[0]
    documents = Dataset(train.Y, train.labels, texts=train.texts)
    Tagger(members="neighbors,label_tree:words", boosting_rounds=10).fit_dataset(documents).save(folder)
    return folder


@pytest.fixture
def file(data, run):
    """A file of documents, every second of which has labels, in the folder that commands run in."""
    test = data[1]
    names = test.labels.names
    rows = []
    for row, text in enumerate(test.texts[:120]):
        labels = [names[label] for label in test.Y[row].indices] if row % 2 else None
        rows.append({"id": f"d{row}", "text": text, "labels": labels})
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Path("in.jsonl")


def listed(out):
    return [json.loads(line) for line in out.splitlines()]


def test_the_least_sure_documents_come_first_and_a_tenth_is_drawn_at_random(run, model, file):
    code, out, err = run("review", model, file, "-n", "20", "--k", "3", "--json")
    assert (code, err) == (0, "")
    rows = listed(out)
    assert [row["order"] for row in rows].count("random") == 2
    assert rows[-1]["order"] == "random"
    values = [row["score"] for row in rows if row["order"] == "uncertain"]
    tagger = Tagger.load(model)
    every = tagger.predict_topk([row["text"] for row in listed(file.read_text())], 1, calibrated=True).scores[:, 0]
    drawn = {row["id"] for row in rows if row["order"] == "random"}
    assert values[0] == pytest.approx(max(1 - p for at, p in enumerate(every) if f"d{at}" not in drawn), abs=1e-5)
    assert np.mean(values) > 1 - every.mean()
    for row in rows:
        expected = tagger.predict_topk([row["text"]], 3, calibrated=True)
        assert [each["label"] for each in row["suggestions"]] == [tagger.labels_.names[at] for at in expected.labels[0]]
        if row["order"] == "uncertain":
            assert row["score"] == pytest.approx(1 - expected.scores[0, 0], abs=1e-5)
        assert row["labels"] == (row["given"] or None)
        assert row["rejected"] == []
    assert len({row["id"] for row in rows}) == 20
    assert run("review", model, file, "-n", "20", "--k", "3", "--json")[1] == out
    other = listed(run("review", model, file, "-n", "20", "--k", "3", "--seed", "1", "--json")[1])
    drawn = [[row["id"] for row in some if row["order"] == "random"] for some in (rows, other)]
    assert drawn[0] != drawn[1]


def test_a_table_on_the_terminal_and_a_file(run, model, file):
    code, out, _ = run("review", model, file, "-n", "3")
    assert code == 0
    assert "3 of 120 documents; uncertain" in out
    code, out, err = run("review", model, file, "-n", "10", "--out", "a/review.jsonl")
    assert (code, out.strip()) == (0, "wrote a/review.jsonl: 10 of 120 documents")
    printed = run("review", model, file, "-n", "10", "--json")[1]
    assert Path("a/review.jsonl").read_text() == printed
    code, out, _ = run("review", model, file, "-n", "10", "--out", "b.jsonl", "--json")
    assert json.loads(out) == {"out": "b.jsonl", "documents": 10, "read": 120}


def test_what_a_person_filled_is_read_as_documents_with_labels(run, model, file):
    run("review", model, file, "-n", "10", "--out", "review.jsonl")
    rows = listed(Path("review.jsonl").read_text())
    for row in rows:
        row["labels"] = [row["suggestions"][0]["label"]]
        row["rejected"] = [row["suggestions"][1]["label"]]
    Path("done.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = read_dataset("done.jsonl", Tagger.load(model).labels_)
    assert (found.texts, len(found.labels)) == ([row["text"] for row in rows], len(Tagger.load(model).labels_))
    assert found.Y.sum() == 10


def test_a_wrong_label_is_suspicious(run, model, data, file):
    rows = listed(file.read_text())
    names = data[1].labels.names
    tagger = Tagger.load(model)
    top = tagger.predict_topk([row["text"] for row in rows], 30, calibrated=True)
    sure = [row for row in range(120) if top.scores[row, 0] > 0.9][:5]
    for row in sure:
        rows[row]["labels"] = [next(name for name in names if tagger.labels_.index[name] not in top.labels[row])]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, err = run("review", model, file, "-n", "40", "--order", "suspicious", "--json")
    assert (code, err) == (0, "")
    found = [row for row in listed(out) if row["order"] == "suspicious"]
    assert {f"d{row}" for row in sure} <= {row["id"] for row in found}
    assert all(row["given"] for row in found)


def test_documents_without_labels_are_never_suspicious(run, model):
    Path("in.txt").write_text("one text\nanother text\n")
    code, out, err = run("review", model, "in.txt", "--order", "suspicious")
    assert code == 0
    assert "no document has a label, so none is suspicious" in err


def test_documents_from_training_are_named(run, model, data):
    train = data[0]
    names = train.labels.names
    labels = [[names[at] for at in row.indices] for row in train.Y[:50]]
    rows = [{"text": text, "labels": given} for text, given in zip(train.texts, labels, strict=False)]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, _, err = run("review", model, "in.jsonl", "--order", "suspicious")
    assert code == 0
    assert "about 100 % of these documents were in the training data: the model has learned their wrong labels" in err
    assert "--deep" in err
    assert "the model is surer of them" in run("review", model, "in.jsonl")[2]


def test_the_standard_input_and_equal_and_empty_texts(run, model, data, monkeypatch):
    text = data[1].texts[0]
    rows = [{"text": text}, {"text": "  "}, {"text": text, "labels": ["x"]}, {"text": data[1].texts[1]}]
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    code, out, err = run("review", model, "-", "-n", "5", "--order", "random", "--json")
    assert (code, err) == (0, "")
    assert sorted(row["id"] for row in listed(out)) == ["0", "3"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert "1 of 4 documents are empty, and left out" in run("review", model, "-")[2]


@pytest.mark.parametrize("order", ["disagreement", "rare", "random"])
def test_other_orders(run, model, file, order):
    code, out, _ = run("review", model, file, "-n", "10", "--order", order, "--json")
    assert code == 0
    found = [row["score"] for row in listed(out) if row["order"] == order]
    assert found[:1] == [max(found, default=0)][: len(found)]
    assert order == "disagreement" or found == sorted(found, reverse=True)
    assert all(0 < value <= 1 for value in found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--order", "best"), "'best' is not one of"),
        (("-n", "0"), "0 is not in the range"),
        (("--k", "0"), "0 is not in the range"),
        (("--out", "a.csv"), "must end with .jsonl, .jsonl.gz, .jsonl.zst, but is 'a.csv'; rename it"),
        (("--out", "in.jsonl"), "--out must be another file than DATA"),
    ],
)
def test_bad_options_get_one_line(run, model, file, arguments, message):
    code, out, err = run("review", model, file, *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_an_order_that_the_model_cannot_tell(run, data, file):
    train = data[0]
    Tagger("neighbors").fit_dataset(Dataset(train.Y, train.labels, texts=train.texts)).save("m")
    for order, message in (
        ("disagreement", "disagreement of members needs an ensemble, but neighbors is not; train with --method blend"),
        ("suspicious", "a probability needs a method that is calibrated, but neighbors is not"),
    ):
        code, out, err = run("review", "m", file, "--order", order)
        assert (code, out) == (2, "")
        assert message in err
    code, out, err = run("review", "m", file, "-n", "4", "--json")
    assert code == 0
    assert "score" in listed(out)[0]["suggestions"][0]
    assert "the model is not calibrated" in run("review", "m", file, "-n", "4")[2]


def test_a_missing_file_and_a_bad_line(run, model, file):
    for arguments, message in (
        (("no.jsonl",), "no.jsonl does not"),
        (("in.jsonl", "--labels", "nope"), "must have the column 'nope'"),
    ):
        code, out, err = run("review", model, *arguments)
        assert (code, out) == (2, "")
        assert message in err
    with file.open("a") as opened:
        opened.write("no JSON\n")
    code, out, err = run("review", model, file, "--out", "out.jsonl")
    assert (code, out) == (2, "")
    assert "in.jsonl:121" in err
    assert not Path("out.jsonl").exists()
