"""The command diff."""

import json
from pathlib import Path

import pytest

from labelspace import Tagger

TEXTS = ["rye bread oven", "wheat bread oven", "grill salmon fire", "smoke trout fire"] * 2
LABELS = [["bread"], ["bread"], ["fish"], ["fish"]] * 2
EVIL = "<img src=x onerror=alert(1)>"


def write_jsonl(path, documents):
    Path(path).write_text("".join(json.dumps({"text": text, "labels": labels}) + "\n" for text, labels in documents))


@pytest.fixture
def models(run):
    """Model a has never seen a pan, and numbers its labels differently; b knows that it is for soup."""
    Tagger("neighbors").fit(TEXTS, LABELS).save("a")
    Tagger("neighbors").fit(["pan soup"] * 8 + TEXTS, [["a soup"]] * 8 + LABELS).save("b")
    tested = [("bread oven", ["bread"]), ("salmon fire", ["fish"]), (f"pan soup {EVIL}", ["a soup"])] * 3
    write_jsonl("test.jsonl", [*tested, ("pan fire", ["fish"]), ("nothing", [])])
    return "a", "b", "test.jsonl"


def test_what_is_better_and_worse(run, models):
    code, out, err = run("diff", *models, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["n"], found["documents"]["better"]) == (10, 3)
    assert found["interval"][0] <= found["difference"] <= found["interval"][1]
    assert found["difference"] == pytest.approx(found["new"] - found["old"], abs=1e-3)
    labels = {each["label"]: each for each in found["labels"]}
    assert (labels["a soup"]["n"], labels["a soup"]["better"], labels["a soup"]["p_holm"]) == (3, 3, None)
    assert [each["id"] for each in found["gains"]] == ["2", "5", "8"]
    assert found["gains"][0]["difference"] == 100
    assert "a soup" in found["gains"][0]["better"]
    back = json.loads(run("diff", "b", "a", "test.jsonl", "--json")[1])
    assert back["difference"] == -found["difference"]
    assert [each["id"] for each in back["losses"]] == ["8", "5", "2"]
    assert {each["label"]: each["worse"] for each in back["labels"]} == {
        name: each["better"] for name, each in labels.items()
    }


def test_a_model_and_itself(run, models):
    found = json.loads(run("diff", "a", "a", "test.jsonl", "--json")[1])
    assert (found["difference"], found["labels"], found["gains"], found["losses"]) == (0, [], [], [])
    code, out, _ = run("diff", "a", "a", "test.jsonl", "--html", "d.html")
    assert code == 0
    assert "this may be chance" in out
    assert "Documents: 0 better, 0 worse, 10 equal." in out


def test_labels_that_the_new_model_merged_count_as_merged(run, models):
    assert run("labels", "merge", "b", "fish", "bread")[0] == 0
    found = json.loads(run("diff", *models, "--json")[1])
    assert {each["label"] for each in found["labels"]} == {"a soup"}


def test_the_page_escapes_names_and_texts(run, models):
    assert run("diff", *models, "--html", "d.html")[0] == 0
    page = Path("d.html").read_text()
    assert "&lt;img src=x" in page
    assert "<img" not in page
    assert "<h1>From a to b</h1>" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a", "none", "test.jsonl"), "none"),
        (("a", "b", "none.jsonl"), "none.jsonl"),
        (("a", "b", "empty.jsonl"), "at least one document must have a label"),
    ],
)
def test_bad_input_gets_one_line(run, models, arguments, message):
    write_jsonl("empty.jsonl", [("a pan", [])])
    code, out, err = run("diff", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1
