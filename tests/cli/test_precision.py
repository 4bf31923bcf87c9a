"""predict --precision: what is kept, what is left out, and what is said of it."""

import json
from pathlib import Path

import pytest


@pytest.fixture
def model(run, hierarchy_folder):
    settings = ("--set", "members=neighbors,label_tree", "--set", "n_folds=2")
    assert run("train", hierarchy_folder, *settings, "--out", "model")[0] == 0
    return "model"


def test_precision_in_every_form(run, model, data):
    texts = list(data[1].texts[:6])
    every = json.loads(run("predict", model, *texts, "--json")[1])
    assert list(every) == ["results"]
    assert all("left_out" not in row for row in every["results"])
    code, out, err = run("predict", model, *texts, "--precision", "0.7", "--json")
    answer = json.loads(out)
    assert (code, err) == (0, "")
    about = answer["precision"]
    assert (about["asked"], about["confidence"]) == (0.7, 0.9)
    assert 0 < about["threshold"] < 1
    assert 0 < about["coverage"] < 1
    for row, loose in zip(answer["results"], every["results"], strict=True):
        left = [{key: label[key] for key in label if key != "reason"} for label in row["left_out"]]
        assert row["labels"] + left == loose["labels"]
        assert all("the threshold for a precision of 0.7" in label["reason"] for label in row["left_out"])
    Path("lines.txt").write_text("\n".join(texts) + "\n")
    _, streamed, err = run("predict", model, "--input", "lines.txt", "--precision", "0.7")
    rows = [json.loads(line) for line in streamed.splitlines()]
    assert [row["left_out"] for row in rows] == [row["left_out"] for row in answer["results"]]
    assert f"note: kept what has a probability of at least {about['threshold']:.3g}: 70 % of such labels" in err
    _, _, err = run("predict", model, texts[0], "--precision", "0.7")
    assert f"(coverage {100 * about['coverage']:.0f} %)" in err


def test_a_precision_out_of_reach_keeps_nothing_and_says_so(run, model, data):
    code, out, err = run("predict", model, data[1].texts[0], "--precision", "0.999")
    assert code == 0
    assert "no label is sure enough for a precision of 0.999" in out
    assert "note: no threshold reaches a precision of 0.999 on held-out documents; the highest shown is 0." in err
    answer = json.loads(run("predict", model, data[1].texts[0], "--precision", "0.999", "--json")[1])
    assert answer["precision"] == {"asked": 0.999, "threshold": None, "coverage": 0.0, "confidence": None}
    assert answer["results"][0]["labels"] == []
    reason = answer["results"][0]["left_out"][0]["reason"]
    assert reason == "no threshold reaches a precision of 0.999 on held-out documents"


def test_wrong_values_are_one_line(run, model):
    for options, message in (
        (("--precision", "1.2"), "a precision must lie between 0 and 1, but is 1.2; give such a number"),
        (("--precision", "0.9", "--min-probability", "0.5"), "both are given, 0.5 and 0.9; leave one out"),
    ):
        code, _, err = run("predict", model, "w1", *options)
        assert code == 2
        assert message in err
        assert len(err.strip().splitlines()) == 1
