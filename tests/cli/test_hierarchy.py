"""Hierarchies on the command line: where they come from, --consistent, and the figures by level."""

import json
from pathlib import Path

import pytest

from labelspace.tagger import Tagger

BY_LEVEL = (
    "micro_f1 macro_f1 n_labels n_occurrences accuracy accuracy_with_na best_micro_f1 best_macro_f1 tail_micro_f1 "
    "tail_macro_f1 tail_recall n_tail n_na micro_f1_with_na macro_f1_with_na na_f1 tail_micro_f1_with_na "
    "tail_macro_f1_with_na"
).split()


@pytest.fixture
def model(run, hierarchy_folder):
    assert run("train", hierarchy_folder, "--method", "one_vs_rest", "--out", "model")[0] == 0
    return "model"


@pytest.fixture
def paths(tmp_path):
    """Documents whose labels are leaves of paths, and no other file."""
    folder = tmp_path / "paths"
    folder.mkdir()
    kinds = {"rye bread": "food > bread > rye", "white bread": "food > bread > white", "fresh fish": "food > fish"}
    rows = [json.dumps({"text": text, "labels": [label]}) for text, label in kinds.items()] * 8
    for name in ("train", "test"):
        (folder / f"{name}.jsonl").write_text("\n".join(rows) + "\n")
    return folder


def names(labels):
    return [tag["label"] for tag in labels]


def in_order(labels, space):
    """Whether the ancestors of each label are ranked before it."""
    ids = [space.index[name] for name in names(labels)]
    return all(set(space.hierarchy.ancestors[label].indices) <= set(ids[:rank]) for rank, label in enumerate(ids))


def test_consistent_predictions_in_every_form(run, hierarchy_folder, model, data):
    space = Tagger.load(model).labels_
    texts = list(data[1].texts[:20])
    loose = json.loads(run("predict", model, *texts, "--k", "6", "--json")[1])["results"]
    code, out, _ = run("predict", model, *texts, "--k", "6", "--consistent", "--json")
    closed = json.loads(out)["results"]
    assert code == 0
    assert not all(in_order(row["labels"], space) for row in loose)
    assert all(in_order(row["labels"], space) for row in closed)
    assert {len(row["labels"]) for row in closed} == {6}
    Path("lines.txt").write_text("\n".join(texts) + "\n")
    _, streamed, _ = run("predict", model, "--input", "lines.txt", "--k", "6", "--consistent")
    assert [json.loads(line)["labels"] for line in streamed.splitlines()] == [row["labels"] for row in closed]
    _, table, _ = run("predict", model, texts[0], "--k", "6", "--consistent")
    positions = [table.index(f" {name} ") for name in names(closed[0]["labels"])]
    assert positions == sorted(positions)


def test_the_metrics_are_in_json_and_table(run, hierarchy_folder, model):
    loose = json.loads(run("evaluate", model, hierarchy_folder, "--json")[1])
    closed = json.loads(run("evaluate", model, hierarchy_folder, "--consistent", "--json")[1])
    assert list(loose["by_level"]) == ["0", "1", "2"]
    assert all(sorted(level) == sorted(BY_LEVEL) for level in loose["by_level"].values())
    assert loose["consistent@5"] < 100
    assert [closed[f"consistent@{k}"] for k in (1, 3, 5)] == [100, 100, 100]
    for figures in (loose, closed):
        assert all(0 <= figures[f"{name}@{k}"] <= 100 for name in ("hP", "hR", "hF") for k in (1, 3, 5))
        assert 0 < figures["deepest_accuracy"] <= 100
    assert all(type(level["n_na"]) is int for level in loose["by_level"].values())
    _, out, _ = run("evaluate", model, hierarchy_folder)
    assert "by level of the hierarchy" in out
    assert all(heading in out for heading in ("accuracy", "with NA", "tail F1", "hF", "consistent"))
    assert max(map(len, out.splitlines())) <= 120


def test_level_metrics_use_more_ranks_than_k(run, hierarchy_folder, model):
    narrow, wide = (json.loads(run("evaluate", model, hierarchy_folder, "--k", k, "--json")[1]) for k in ("1", "40"))
    for level in narrow["by_level"]:
        assert narrow["by_level"][level]["accuracy"] == wide["by_level"][level]["accuracy"]
    assert narrow["deepest_accuracy"] == wide["deepest_accuracy"]


def test_the_hierarchy_of_the_data_takes_precedence_over_that_of_the_model(run, hierarchy_folder, model):
    saved = json.loads(run("evaluate", model, hierarchy_folder, "--json")[1])
    (hierarchy_folder / "hierarchy.tsv").unlink()
    assert json.loads(run("evaluate", model, hierarchy_folder, "--json")[1])["by_level"] == saved["by_level"]
    (hierarchy_folder / "hierarchy.tsv").write_text("label 1\tlabel 0\n")
    assert list(json.loads(run("evaluate", model, hierarchy_folder, "--json")[1])["by_level"]) == ["0", "1"]


def test_paths_are_a_hierarchy_without_a_file(run, paths):
    _, out, _ = run("data", "stats", paths, "--json")
    stats = json.loads(out)["parts"]["train"]
    assert (stats["labels"], stats["labels in use"], stats["hierarchy depth"]) == (5, 3, 3)
    assert run("train", paths, "--method", "neighbors", "--out", "m")[0] == 0
    _, out, _ = run("predict", "m", "rye bread", "--k", "3", "--consistent", "--json")
    expected = ["food", "food > bread", "food > bread > rye"]
    assert names(json.loads(out)["results"][0]["labels"]) == expected
    figures = json.loads(run("evaluate", "m", paths, "--consistent", "--k", "1,3", "--json")[1])
    assert [level["accuracy"] for level in figures["by_level"].values()] == [100, 100, 100]
    assert [level["n_na"] for level in figures["by_level"].values()] == [0, 0, 8]
    assert figures["deepest_accuracy"] == 100
    rows = json.loads(run("compare", paths, "--methods", "popular,neighbors", "--out", "out", "--json")[1])["rows"]
    assert all("by_level" in row and "hF@5" in row for row in rows)
    assert "deepest_accuracy" in Path("out/results.csv").read_text().splitlines()[0]


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_without_a_hierarchy_one_line_says_what_to_do(run, hierarchy_folder, command):
    (hierarchy_folder / "hierarchy.tsv").unlink()
    assert run("train", hierarchy_folder, "--method", "popular", "--out", "flat")[0] == 0
    what = "a text" if command == "predict" else hierarchy_folder
    code, out, err = run(command, "flat", what, "--consistent")
    assert (code, out) == (2, "")
    assert err.startswith("error: consistent answers need a hierarchy of the labels, but")
    assert err.count("\n") == 1
