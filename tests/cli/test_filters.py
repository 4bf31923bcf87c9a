"""--include, --exclude and --under on the command line."""

import json
from pathlib import Path

import pytest


@pytest.fixture
def paths(run, tmp_path):
    """Documents whose labels are leaves of paths, and a model of them."""
    kinds = {"rye bread": "food > bread > rye", "white bread": "food > bread > white", "fresh fish": "food > fish"}
    rows = [json.dumps({"text": text, "labels": [label]}) for text, label in kinds.items()] * 8
    folder = tmp_path / "paths"
    folder.mkdir()
    for name in ("train", "test"):
        (folder / f"{name}.jsonl").write_text("\n".join(rows) + "\n")
    assert run("train", folder, "--method", "one_vs_rest", "--out", "model")[0] == 0
    return folder


def names(line):
    return [tag["label"] for tag in line["labels"]]


def test_predict_names_allowed_labels_alone(run, paths):
    code, out, err = run("predict", "model", "fresh fish", "--under", "food > bread", "--json")
    assert code == 0
    assert err == ""
    assert sorted(names(json.loads(out)["results"][0])) == ["food > bread > rye", "food > bread > white"]
    code, out, err = run("predict", "model", "rye bread", "--exclude", "food > bread > rye", "--exclude", "1")
    assert code == 0
    assert "bread" not in out.replace("rye bread", "")
    assert err.splitlines() == [
        "note: exclude '1' is no name, and was read as the id of 'food > bread > white'",
        "note: 3 of 5 labels are allowed: all, without 'food > bread > rye', '1'",
    ]


def test_a_stream_is_filtered_too(run, paths):
    Path("only.txt").write_text("food > fish\nfood > bread > white\n")
    Path("lines.txt").write_text("rye bread\nfresh fish\n")
    code, out, err = run("predict", "model", "--input", "lines.txt", "--include", "only.txt", "--k", "5")
    assert code == 0
    assert [names(json.loads(line)) for line in out.splitlines()] == [
        ["food > bread > white", "food > fish"],
        ["food > fish", "food > bread > white"],
    ]
    assert "note: include 'only.txt' was read as a file of 2 labels" in err
    assert "note: 2 of 5 labels are allowed: 'only.txt'" in err


def test_evaluate_counts_allowed_labels_alone(run, paths):
    code, out, err = run("evaluate", "model", paths, "--under", "food > bread", "--k", "1")
    assert code == 0
    assert "note: 3 of 5 labels are allowed: under 'food > bread'" in err
    figures = json.loads(run("evaluate", "model", paths, "--under", "food > bread", "--k", "1", "--json")[1])
    assert (figures["n_allowed_labels"], figures["n"], figures["n_without_labels"]) == (3, 16, 8)
    assert figures["P@1"] == 100
    wrong = json.loads(run("evaluate", "model", paths, "--exclude", "food > fish", "--k", "1", "--json")[1])
    assert (wrong["n"], wrong["n_without_labels"]) == (16, 8)
    assert "n_allowed_labels" not in json.loads(run("evaluate", "model", paths, "--k", "1", "--json")[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--include", "fod"], "error: include must be the name or the id of a label, or a file of these, but 'fod'"),
        (["--under", "fish > rye"], "error: under must be a label of the hierarchy, but 'fish > rye' is none of 5"),
        (["--under", "food", "--exclude", "food > fish", "--include", "7"], "error: include must be"),
    ],
)
@pytest.mark.parametrize("command", [("predict", "model", "a text"), ("evaluate", "model", "paths")])
def test_what_is_wrong_exits_with_2(run, paths, command, options, message):
    code, out, err = run(*command, *options)
    assert code == 2
    assert out == ""
    assert err.splitlines()[-1].startswith(message)
