"""`labelspace tree`."""

import json
from pathlib import Path

import numpy as np
import pytest

from labelspace import create
from labelspace.errors import NotFittedError
from labelspace.estimator import param
from labelspace.estimator.parameter_constraints import one_of
from labelspace.labels.tree import TreeNodes
from labelspace.models import registry
from labelspace.models.baselines import Popular
from labelspace.tagger import Tagger

TEXTS = ["bread", "bread dough", "fish", "grilled fish", "fish bread"] * 4
LABELS = [["baking"], ["baking", "white bread"], ["fish"], ["fish", "grilling"], ["fish", "baking"]] * 4


@pytest.fixture
def model(run):
    Tagger("label_tree", max_leaf_size=2, branching_factor=2).fit(TEXTS, LABELS).save("model")
    return "model"


class ChainLike(Popular):
    """Has a chain of 41 labels for a tree."""

    name = "chain_like"

    def label_trees(self):
        first, last, label = np.zeros((3, 81), np.int32)
        inner = np.arange(0, 80, 2)
        first[inner], last[inner], label[inner] = inner + 1, inner + 3, -1
        label[inner + 1], label[-1] = np.arange(40), 40
        return [TreeNodes(first, last, label)]


class ChainLikeWithBalance(ChainLike):
    """The same with a parameter that would balance the tree."""

    name = "chain_like_with_balance"

    balance: str = param("auto", one_of("auto", "always"), "Whether the tree is rebalanced.")


def test_text_goes_to_stdout_with_the_figures_first(run, model):
    code, out, err = run("tree", model)
    assert code == 0
    assert err == ""
    lines = out.splitlines()
    assert lines[0] == "4 labels, height 2, balance 1.00, mean depth 2.0, 7 nodes, at most 2 children per node"
    assert lines[1] == "4 labels: baking, fish, grilling, …"
    assert sorted(line.split("─ ")[1] for line in lines if ": " not in line and "─" in line) == [
        "baking",
        "fish",
        "grilling",
        "white bread",
    ]


def test_depth_is_obeyed(run, model):
    code, out, _ = run("tree", model, "--depth", 0)
    assert code == 0
    assert out.splitlines()[2:] == ["└─ … 4 more labels"]


def test_newick_and_json_have_stdout_for_themselves(run, model):
    code, out, err = run("tree", model, "--format", "newick")
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    assert out.endswith(");\n")
    assert "'white bread'" in out
    code, out, err = run("tree", model, "--format", "json")
    assert (code, err) == (0, "")
    (rows,) = json.loads(out)
    assert [row["id"] for row in rows] == list(range(7))
    assert {row["label"] for row in rows if "label" in row} == {"baking", "fish", "grilling", "white bread"}


def test_the_figures_as_json(run, model):
    code, out, _ = run("tree", model, "--json")
    assert code == 0
    (figures,) = json.loads(out)["trees"]
    assert list(figures) == "n_labels n_nodes height mean_depth balance most_children degenerate".split()
    assert figures["n_labels"] == 4
    assert sorted(path.name for path in Path().iterdir()) == ["model"]


@pytest.mark.parametrize("form", ["text", "newick", "json"])
def test_a_file_gets_what_stdout_would(run, model, form):
    shown = run("tree", model, "--format", form)[1]
    code, out, _ = run("tree", model, "--format", form, "--out", "trees/mine")
    assert code == 0
    assert out.startswith("trees/mine: 4 labels, height 2, ")
    assert out.count("\n") == 1
    assert Path("trees/mine").read_text(encoding="utf-8") == shown
    code, out, _ = run("tree", model, "--format", form, "--out", "other", "--json")
    assert json.loads(out)["trees"][0]["height"] == 2
    assert Path("other").read_text(encoding="utf-8") == shown


def test_a_forest_shows_every_tree(run):
    Tagger("label_tree", max_leaf_size=2, branching_factor=2, n_estimators=3).fit(TEXTS, LABELS).save("forest")
    _, out, _ = run("tree", "forest")
    heads = [line.partition(":")[0] for line in out.splitlines() if line.startswith("tree ")]
    assert heads == ["tree 1 of 3", "tree 2 of 3", "tree 3 of 3"]
    _, out, _ = run("tree", "forest", "--format", "newick")
    assert [line.count("'white bread'") for line in out.splitlines()] == [1, 1, 1]
    _, out, _ = run("tree", "forest", "--format", "json")
    assert [len(rows) for rows in json.loads(out)] == [7, 7, 7]
    _, out, _ = run("tree", "forest", "--json")
    assert len(json.loads(out)["trees"]) == 3


def test_a_bare_model_without_names_is_shown_by_number(run):
    create("label_tree").fit(np.eye(4), np.array([[1, 0, 0], [1, 0, 1], [0, 0, 1], [0, 0, 1]])).save("bare")
    code, out, _ = run("tree", "bare", "--format", "newick")
    assert code == 0
    assert out in ("(0,2);\n", "(2,0);\n")  # label 1 has no documents and is not in the tree


def test_a_single_label(run):
    Tagger("label_tree").fit(["bread", "bread"], [["baking"], ["baking"]]).save("one")
    code, out, _ = run("tree", "one")
    assert code == 0
    assert out.splitlines()[1:] == ["1 label: baking", "└─ baking"]


def test_names_with_line_ends_stay_on_their_lines(run):
    Tagger("label_tree").fit(["bread", "fish"] * 2, [["a\nb"], ["c\x1b[2Jd"]] * 2).save("odd")
    _, out, _ = run("tree", "odd")
    assert len(out.splitlines()) == 4
    assert "\x1b" not in out


def test_a_chain_is_warned_of(run, monkeypatch):
    for cls in (ChainLike, ChainLikeWithBalance):
        monkeypatch.setitem(registry.METHODS, cls.name, f"{__name__}:{cls.__name__}")
        cls().fit(np.eye(41), np.eye(41)).save(cls.name)
    code, out, _ = run("tree", "chain_like")
    assert code == 0
    warning = "warning: the tree is degenerate, of height 40 for 41 labels; train with --set "
    assert out.splitlines()[1] == warning + "tree=balanced"
    assert warning not in run("tree", "chain_like", "--format", "newick")[1]
    out = run("tree", "chain_like_with_balance", "--out", "file")[1]
    assert out.splitlines()[1] == warning + "balance=always"


def test_a_method_without_a_tree_says_which_has_one(run):
    Tagger("popular").fit(TEXTS, LABELS).save("popular")
    code, out, err = run("tree", "popular", "--out", "file")
    assert code == 2
    assert out == ""
    assert err == (
        "error: a tree needs a method that puts its labels into one, but popular has none; "
        "train with --method label_tree, hierarchicalxc, secseq, mlc2seq or treespace\n"
    )
    assert not Path("file").exists()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nothing"], "nothing"),
        (["model", "--format", "dot"], "'dot' is not one of"),
        (["model", "--depth", "-1"], "--depth"),
        (["model", "--out", "model"], "written to model, but that failed"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(run, model, args, message):
    code, _, err = run("tree", *args)
    assert code == 2
    assert err.count("\n") == 1
    assert message in err


def test_trees_of_a_model_are_numbered_from_their_own_root():
    model = create("label_tree", max_leaf_size=2, branching_factor=2, n_estimators=2, tree="kmeans")
    with pytest.raises(NotFittedError):
        model.label_trees()
    rng = np.random.default_rng(0)
    model.fit(rng.random((60, 8)), np.eye(12)[rng.integers(0, 12, 60)])
    trees = model.label_trees()
    assert sum(len(nodes.label) for nodes in trees) == len(model.label_)
    for nodes in trees:
        assert nodes.parent[0] == -1
        assert (nodes.parent[1:] >= 0).all()
        assert sorted(nodes.label[nodes.label >= 0]) == list(range(12))
        leaf = nodes.label >= 0
        assert not nodes.first_child[leaf].any()
        assert not nodes.last_child[leaf].any()
