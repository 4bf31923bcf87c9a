"""The command explain."""

import io
import json
import sys

import pytest

from labelspace.data.source import write_dataset
from labelspace.types import Dataset


@pytest.fixture
def model(run, data, tmp_path):
    train, _ = data
    ids = [f"train-{i}" for i in range(len(train))]
    write_dataset(Dataset(train.Y, train.labels, texts=train.texts, ids=ids), tmp_path / "train.jsonl")
    method = ("--method", "neighbors", "--keep-texts", "--out", "model")
    assert run("train", tmp_path / "train.jsonl", *method)[0] == 0
    return "model"


def test_explain_prints_json_that_adds_up(run, model, data):
    text = data[1].texts[0]
    code, out, err = run("explain", model, text, "--k", "2", "--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert answer["text"] == text
    assert len(answer["explanations"]) == 2
    for why in answer["explanations"]:
        shares = sum(word["share"] for word in why["words"])
        assert shares + why["remainder"] == pytest.approx(why["log_odds"] - why["baseline"], abs=1e-4)
        assert why["neighbors"][0]["id"].startswith("train-")
        assert why["neighbors"][0]["text"] in data[0].texts


def test_explain_marks_words_and_reads_stdin(run, model, data, monkeypatch):
    code, out, _ = run("explain", model, data[1].texts[0], "--k", "1")
    assert code == 0
    assert "[" in out
    assert "remainder" in out
    monkeypatch.setattr(sys, "stdin", io.StringIO(data[1].texts[0]))
    assert run("explain", model, "-", "--k", "1")[1] == out


def test_explain_writes_a_page(run, model, data, tmp_path):
    code, out, _ = run("explain", model, data[1].texts[0], "--html", "why.html")
    assert code == 0
    assert "why.html: why 3 labels" in out
    assert (tmp_path / "why.html").read_text().count("<section>") == 3


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ["--label", "nothing like it"],
            "a label must be given by its name, but 'nothing like it' is none of 40 labels",
        ),
        (["--html", "."], "Is a directory"),
    ],
)
def test_bad_input_is_one_line(run, model, data, args, message):
    code, out, err = run("explain", model, data[1].texts[0], *args)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_explain_needs_a_method_that_can_and_texts(run, data, tmp_path):
    train, _ = data
    write_dataset(Dataset(train.Y, train.labels, texts=train.texts), tmp_path / "train.jsonl")
    write_dataset(Dataset(train.Y, train.labels, X=train.X), tmp_path / "rows.txt")
    assert run("train", tmp_path / "train.jsonl", "--method", "popular", "--out", "popular")[0] == 0
    assert run("train", tmp_path / "rows.txt", "--method", "one_vs_rest", "--out", "rows")[0] == 0
    code, _, err = run("explain", "popular", "a text")
    assert code == 2
    assert "can explain its scores, but popular cannot; train with --method" in err
    code, _, err = run("explain", "rows", "a text")
    assert code == 2
    assert "trained on ready-made features" in err
    code, _, err = run("train", tmp_path / "train.jsonl", "--method", "label_tree", "--keep-texts", "--out", "x")
    assert code == 2
    assert "leave keep_texts out" in err


def test_a_text_without_known_words_is_said(run, model):
    code, _, err = run("explain", model, "unheard of", "--k", "1")
    assert code == 0
    assert "no word that the model knows" in err
