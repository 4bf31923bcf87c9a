"""Figures of each label: ``evaluate --by-label``."""

import csv
import json
import re
import shlex
import zlib
from base64 import b64decode
from pathlib import Path

import pytest

from labelspace import Tagger
from labelspace.report.by_label.table import COLUMNS

DOCUMENTS = (
    ("rye bread in a hot oven", ["bread"]),
    ("wheat bread in an oven", ["bread"]),
    ("grill a salmon on the fire", ["fish"]),
    ("smoke a trout over the fire", ["fish"]),
)
# The nearest training documents decide: bread on the fire is taken for fish.
TESTED = (
    ("bread of rye", ["bread"]),
    ("a salmon on the fire", ["fish"]),
    ("on the fire over the fire", ["bread", "a, new\nlabel"]),
)


def write_jsonl(path, documents):
    Path(path).write_text("".join(json.dumps({"text": text, "labels": labels}) + "\n" for text, labels in documents))


def written(path):
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def model(run):
    texts, labels = zip(*DOCUMENTS, strict=True)
    Tagger("neighbors").fit(list(texts), list(labels)).save("m")
    write_jsonl("test.jsonl", TESTED)
    return "m"


def test_a_row_per_label_the_worst_first(run, model):
    code, out, err = run("evaluate", model, "test.jsonl", "--k", "1", "--by-label", "l.csv", "--json")
    assert (code, err) == (0, "")
    rows = written("l.csv")
    assert [row["label"] for row in rows] == ["a, new\nlabel", "bread", "fish"]
    new, bread, fish = rows
    assert tuple(new) == COLUMNS
    assert (new["n"], new["training_documents"], new["precision"], new["recall"]) == ("1", "0", "", "0.0")
    assert (bread["n"], bread["right"], bread["recall"], bread["given_instead"]) == ("2", "1", "50.0", "fish (1)")
    assert (fish["answered"], fish["precision"], fish["recall"]) == ("2", "50.0", "100.0")
    assert fish["missing_beside"] == "bread (1); a, new\nlabel (1)"
    assert "bread" in bread["words"]
    found = json.loads(out)["by_label"]
    assert (found["csv"], found["n_labels"], len(found["worst"])) == ("l.csv", 3, 3)
    assert "score is at least" in found["decision"]
    (missed,) = found["worst"][1]["false_negatives"]
    assert missed == {
        "id": "2",
        "text": TESTED[2][0],
        "score": missed["score"],
        "given": ["bread", "a, new\nlabel"],
        "answered": ["fish"],
    }
    assert found["worst"][2]["false_positives"][0]["id"] == "2"


def test_errors_of_fewer_labels_and_a_table(run, model):
    code, out, _ = run("evaluate", model, "test.jsonl", "--by-label", "l.csv", "--errors", "0")
    assert code == 0
    assert "3 worst of 3 labels; a label is answered if its score" in out
    assert [row["words"] for row in written("l.csv")] == ["", "", ""]


def test_the_page_names_the_command_that_explains_an_error(run, model):
    code, out, _ = run("evaluate", model, "test.jsonl", "--by-label", "l.csv", "--html", "e.html")
    assert code == 0
    assert "saved: e.html" in out
    packed = re.search(r"id='label-data'>([^<]*)<", Path("e.html").read_text())[1]
    data = json.loads(zlib.decompress(b64decode(packed)))
    assert data["names"] == ["a, new\nlabel", "bread", "fish"]
    command = [*shlex.split(data["command"])[1:], "--label", "bread"]
    assert command == ["explain", "m", "--of", "test.jsonl", "--label", "bread"]
    code, out, _ = run(*command, "--json", "--", "2")
    assert (code, json.loads(out)["text"]) == (0, TESTED[2][0])
    for arguments, message in (
        ((*command, "--", "3"), "--of test.jsonl must have the document '3', but has not; they are called '0'"),
        (("explain", "m", "a text", "--text", "body"), "--text is for a file of documents; name it with --of"),
    ):
        code, out, err = run(*arguments)
        assert (code, out) == (2, "")
        assert message in err
    run("evaluate", model, "test.jsonl", "--html", "f.html")
    assert "label-data" not in Path("f.html").read_text()


def test_documents_without_labels_count_only_if_asked_for(run, model):
    write_jsonl("test.jsonl", [*TESTED, ("a trout on the fire", [])])
    for option, n_answered, ids in (("skip", 2, ["2"]), ("count", 3, ["2", "3"])):
        arguments = ("evaluate", model, "test.jsonl", "--by-label", "l.csv", "--unlabelled", option, "--json")
        (fish,) = (each for each in json.loads(run(*arguments)[1])["by_label"]["worst"] if each["label"] == "fish")
        assert [each["id"] for each in fish["false_positives"]] == ids
        assert fish["answered"] == n_answered


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--errors", "5"), "--errors is for --by-label, but is 5 without it; add --by-label labels.csv"),
        (("--by-label", "l.txt"), "must be a file that ends with .csv, but is l.txt"),
        (("--by-label", "l.csv", "--errors", "-1"), "-1 is not in the range"),
    ],
)
def test_bad_options_get_one_line(run, model, arguments, message):
    code, out, err = run("evaluate", model, "test.jsonl", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert not Path("l.csv").exists()
