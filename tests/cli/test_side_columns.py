"""Columns beside the text and weights of documents, from training to explanations."""

import csv
import json

import pytest


@pytest.fixture
def shop(tmp_path):
    """Titles say nothing: the price tells the label, and the last documents, of weight 0, are wrong."""
    with (tmp_path / "shop.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["title", "price", "brand", "tags", "trust"])
        for row in range(120):
            label, is_right = ("cheap", "dear")[row % 2], row < 80
            price = (5 + row % 7) * (1 if (label == "cheap") == is_right else 20)
            writer.writerow(["an item", price, "Tata", label, int(is_right)])
    return tmp_path / "shop.csv"


def test_a_row_is_tagged_and_explained_by_what_stands_beside_the_text(run, shop):
    side = ("--text", "title", "--labels", "tags", "--numeric", "price", "--categorical", "brand")
    code, out, _ = run(
        "train", shop, *side, "--weights", "trust", "--method", "one_vs_rest", "--out", "model", "--json"
    )
    assert code == 0
    summary = json.loads(out)
    assert summary["n"] == 80
    assert summary["beside"] == {"columns": ["price", "brand"], "not_read_by": []}
    assert summary["weights"] == {"column": "trust", "not_used_by": []}
    for price, label in ((6, "cheap"), (150, "dear")):
        row = json.dumps({"title": "an item", "price": price, "brand": "Trm"})
        answer = json.loads(run("predict", "model", row, "--json")[1])
        assert answer["results"][0]["labels"][0]["label"] == label
        why = json.loads(run("explain", "model", row, "--k", "1", "--json")[1])["explanations"][0]
        assert [value["name"] for value in why["values"]][1] == "brand = Trm, which is not known"
    shown = run("explain", "model", row, "--k", "1")[1]
    assert "beside     price " in shown
    assert json.loads(run("predict", "model", "--input", shop)[1].splitlines()[0])["labels"]


def test_wrong_columns_and_weights_are_one_line(run, shop):
    for options, message in (
        (("--numeric", "prize"), "must have the column 'prize'"),
        (("--numeric", "brand"), "'brand' must hold numbers, but that of"),
        (("--weights", "tags"), "must be numbers"),
        (("--weights", "trust", "--method", "lexical"), "lexical does not; train with --method"),
        (("--numeric", "price", "--method", "lexical"), "lexical reads the text only"),
        (("--vectors", "none.npy"), "must exist, but none.npy does not"),
    ):
        code, _, err = run("train", shop, "--text", "title", "--labels", "tags", *options, "--out", "other")
        assert (code, message in err) == (2, True), err
