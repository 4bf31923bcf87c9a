"""`labelspace codes`."""

import json
from pathlib import Path

import numpy as np
import pytest

from labelspace import create
from labelspace.labels.codes import Codes
from labelspace.models import registry
from labelspace.models.baselines import Popular
from labelspace.tagger import Tagger

TEXTS = ["bread", "bread dough", "fish", "grilled fish"] * 2
LABELS = [["baking"], ["baking", "dough"], ["fish"], ["fish", "grilling"]] * 2


class Coded(Popular):
    """Has codes of four labels in two trees."""

    name = "coded"

    def label_codes(self):
        one = np.array([[0, 1], [0, 1], [2, 0], [2, 1]], np.int32)
        other = np.array([[1, 0], [0, 0], [2, 2], [2, 1]], np.int32)
        return [Codes(digits, code_size=3) for digits in (one, other)]


@pytest.fixture
def model(run, monkeypatch):
    monkeypatch.setitem(registry.METHODS, "coded", f"{__name__}:Coded")
    Tagger("coded").fit(TEXTS, LABELS).save("model")
    return "model"


def test_every_tree_is_shown_with_its_figures(run, model):
    code, out, err = run("codes", model)
    assert (code, err) == (0, "")
    assert out == (
        "tree 1 of 2: 4 labels, codes of 2 digits from 0 to 2; similar labels share their first digits\n"
        "3 codes used, 33.3% of all possible; 2 labels share a code with others, at most 2 per code\n"
        "values used per digit, of 3: 2, 2 (evenness, at most 1: 0.63, 0.51); 6 network outputs for 4 labels\n"
        "0 1  baking, dough\n"
        "2 0  fish\n"
        "  1  grilling\n"
        "\n"
        "tree 2 of 2: 4 labels, codes of 2 digits from 0 to 2; similar labels share their first digits\n"
        "4 codes used, 44.4% of all possible; no two labels share a code\n"
        "values used per digit, of 3: 3, 3 (evenness, at most 1: 0.95, 0.95); 6 network outputs for 4 labels\n"
        "0 0  dough\n"
        "1 0  baking\n"
        "2 1  grilling\n"
        "  2  fish\n"
    )


def test_one_tree_one_prefix_and_a_limit(run, model):
    _, out, _ = run("codes", model, "--tree", 2, "--prefix", "2", "--limit", 1)
    lines = out.splitlines()
    assert lines[0].startswith("tree 2 of 2: 4 labels")
    assert lines[3:] == ["2 1  grilling", "… 1 more code (1 label); --limit 0 shows all"]
    assert run("codes", model, "--limit", 0)[1] == run("codes", model)[1]


def test_a_file_gets_all_of_them(run, model):
    code, out, _ = run("codes", model, "--limit", 1, "--out", "lists/codes.tsv")
    assert code == 0
    assert [line for line in out.splitlines() if line.startswith("lists/codes.tsv: tree ")] == out.splitlines()[::3]
    rows = [line.split("\t") for line in Path("lists/codes.tsv").read_text(encoding="utf-8").splitlines()]
    assert rows[:3] == [["tree", "code", "label"], ["1", "0,1", "baking"], ["1", "0,1", "dough"]]
    assert len(rows) == 9
    run("codes", model, "--tree", 2, "--prefix", "2", "--out", "few.tsv")
    assert Path("few.tsv").read_text(encoding="utf-8") == "tree\tcode\tlabel\n2\t2,1\tgrilling\n2\t2,2\tfish\n"


def test_the_figures_as_json_and_the_codes_of_a_prefix(run, model):
    _, out, err = run("codes", model, "--json")
    one, other = json.loads(out)["codes"]
    assert err == ""
    figures = "n_labels width digits codes collisions largest occupancy used evenness bits_a_label outputs compression"
    assert list(one) == ["tree", *figures.split()]
    assert (one["tree"], one["collisions"], other["tree"], other["collisions"]) == (1, 2, 2, 0)
    (one,) = json.loads(run("codes", model, "--json", "--tree", 1, "--prefix", "2", "--limit", 1)[1])["codes"]
    assert one["listed"] == [{"code": [2, 0], "labels": ["fish"]}, {"code": [2, 1], "labels": ["grilling"]}]


def test_a_bare_model_without_names_is_shown_by_number(run, model):
    create("coded").fit(np.eye(4), np.eye(4)).save("bare")
    assert run("codes", "bare", "--tree", 1)[1].splitlines()[3:] == ["0 1  0, 1", "2 0  2", "  1  3"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nothing"], "nothing"),
        (["model", "--tree", "3"], "--tree must be from 1 to 2, but is 3; choose an existing tree"),
        (["model", "--tree", "0"], "--tree"),
        (["model", "--prefix", "3"], "--prefix must be at most 2 numbers from 0 to 2 with commas between, but is '3'"),
        (["model", "--limit", "-1"], "--limit"),
        (["model", "--out", "model"], "written to model, but that failed"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(run, model, args, message):
    code, _, err = run("codes", *args)
    assert code == 2
    assert err.count("\n") == 1
    assert message in err


def test_a_method_without_codes_says_which_has_them(run):
    Tagger("popular").fit(TEXTS, LABELS).save("popular")
    code, out, err = run("codes", "popular", "--out", "file")
    assert (code, out) == (2, "")
    assert err == (
        "error: codes need a method that writes labels as codes, but popular has none; "
        "train with --method secseq or mlc2seq\n"
    )
    assert not Path("file").exists()
