"""Trees of labels as text: drawn, as Newick, as plain values. Newick is read back by a parser of its own."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelspace.labels.tree import TreeNodes
from labelspace.report.tree import (
    MAX_INDENT,
    forest,
    heading,
    labels_below,
    most_frequent,
    printable,
    tree_json,
    tree_newick,
    tree_summary,
    tree_text,
)
from labelspace.types import LabelSpace

DEEP = 100_000


def ints(*values):
    return np.array(values, np.int32)


def nodes_of(nested, similarity=None):
    """Nested lists of labels as Nodes, level by level."""
    queue, first, last, label = [nested], [], [], []
    for item in queue:
        inner = isinstance(item, list)
        first.append(len(queue) if inner else 0)
        queue.extend(item if inner else [])
        last.append(len(queue) if inner else 0)
        label.append(-1 if inner else item)
    return TreeNodes(ints(*first), ints(*last), ints(*label), similarity)


def chain(n_levels):
    """A tree in which every inner node has a leaf and the rest."""
    first, last = np.zeros((2, 2 * n_levels + 1), np.int32)
    label = np.full(2 * n_levels + 1, -1, np.int32)
    inner = np.arange(0, 2 * n_levels, 2)
    first[inner], last[inner] = inner + 1, inner + 3
    label[inner + 1], label[-1] = np.arange(n_levels), n_levels
    return TreeNodes(first, last, label)


def parse_newick(text):
    """Nested lists of names of one Newick tree without branch lengths."""
    stack, at = [[]], 0
    while text[at] != ";":
        if text[at] == "(":
            stack.append([])
        elif text[at] == ")":
            done = stack.pop()
            stack[-1].append(done)
        elif text[at] == "'":
            name, at = "", at + 1
            while text[at] != "'" or text[at + 1] == "'":
                name, at = name + text[at], at + (2 if text[at] == "'" else 1)
            stack[-1].append(name)
        elif text[at] != ",":
            end = min(text.find(stop, at) for stop in "(),;" if text.find(stop, at) >= 0)
            stack[-1].append(text[at:end].replace("_", " "))  # as the format has it for names without quotes
            at = end - 1
        at += 1
    assert at == len(text) - 1
    assert len(stack) == len(stack[0]) == 1
    return stack[0][0]


def named(nested, names):
    return [named(item, names) for item in nested] if isinstance(nested, list) else names[nested]


NESTED = [4, [[0, 1], 2], [3, [5, 6, 7]]]
NAMES = LabelSpace([*"abcdefgh"], counts=np.array([1, 9, 5, 2, 7, 3, 3, 8]))


def test_nodes_know_their_shape():
    nodes = nodes_of(NESTED)
    assert nodes.parent.tolist() == [-1, 0, 0, 0, 2, 2, 3, 3, 4, 4, 7, 7, 7]
    assert nodes.level.tolist() == [0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3]
    assert nodes.parent.dtype == nodes.level.dtype == np.int32
    assert (nodes.height, nodes.n_labels, nodes.balance) == (3, 8, 1.0)
    assert nodes_of([0, [1, [2, [3, 4]]]]).balance == 3 / 4
    assert nodes_of([*range(100)]).balance == 1.0


def test_the_numbering_need_not_go_level_by_level():
    nodes = TreeNodes(ints(1, 3, 5, 0, 0, 0, 0), ints(3, 5, 7, 0, 0, 0, 0), ints(-1, -1, -1, 0, 1, 2, 3))
    deep_first = TreeNodes(ints(1, 5, 3, 0, 0, 0, 0), ints(3, 7, 5, 0, 0, 0, 0), ints(-1, -1, -1, 2, 3, 0, 1))
    assert deep_first.parent.tolist() == [-1, 0, 0, 2, 2, 1, 1]
    assert tree_newick(deep_first, NAMES) == tree_newick(nodes, NAMES) == "((a,b),(c,d));"


def test_the_summary_counts():
    assert tree_summary(nodes_of(NESTED)) == {
        "n_labels": 8,
        "n_nodes": 13,
        "height": 3,
        "mean_depth": 2.5,
        "balance": 1.0,
        "most_children": 3,
        "degenerate": False,
    }
    assert not tree_summary(chain(20))["degenerate"]
    assert tree_summary(chain(40))["degenerate"]
    json.dumps(tree_summary(chain(40)))


@pytest.mark.parametrize(("nested", "newick"), [(0, "a;"), ([0], "(a);")])
def test_a_single_label_is_a_tree(nested, newick):
    nodes = nodes_of(nested)
    summary = tree_summary(nodes)
    assert (summary["n_labels"], summary["balance"], summary["degenerate"]) == (1, 1.0, False)
    assert heading(summary, 0, 1, "").startswith("1 label, height ")
    assert tree_newick(nodes, NAMES) == newick
    assert tree_text(nodes, NAMES).splitlines()[-1].endswith("a")
    assert tree_json(nodes, NAMES)[-1]["label"] == "a"


def test_the_drawing_names_the_most_frequent_labels():
    assert tree_text(nodes_of(NESTED), NAMES).splitlines() == [
        "8 labels: b, h, e, …",
        "├─ e",
        "├─ 3 labels: b, c, a",
        "│  ├─ 2 labels: b, a",
        "│  │  ├─ a",
        "│  │  └─ b",
        "│  └─ c",
        "└─ 4 labels: h, f, g, …",
        "   ├─ d",
        "   └─ 3 labels: h, f, g",
        "      ├─ f",
        "      ├─ g",
        "      └─ h",
    ]


def test_without_frequencies_the_first_labels_are_named():
    assert tree_text(nodes_of([[2, 1], 0]), LabelSpace(["a", "b", "c"])).splitlines()[:2] == [
        "3 labels: a, b, c",
        "├─ 2 labels: b, c",
    ]


def test_depth_cuts_the_drawing():
    assert tree_text(nodes_of(NESTED), NAMES, depth=0).splitlines() == ["8 labels: b, h, e, …", "└─ … 8 more labels"]
    assert tree_text(nodes_of(NESTED), NAMES, depth=1).splitlines() == [
        "8 labels: b, h, e, …",
        "├─ e",
        "├─ 3 labels: b, c, a",
        "│  └─ … 3 more labels",
        "└─ 4 labels: h, f, g, …",
        "   └─ … 4 more labels",
    ]
    assert tree_text(nodes_of([0]), NAMES, depth=0).endswith("… 1 more label")


def test_a_wide_node_shows_its_first_children():
    names = LabelSpace([f"n{i}" for i in range(1300)])
    lines = tree_text(nodes_of([*range(25), [*range(25, 1300)]]), names).splitlines()
    assert lines[1:21] == [f"├─ n{i}" for i in range(20)]
    assert lines[21:] == ["└─ … 6 more (1,280 labels)"]
    exact = tree_text(nodes_of([*range(20)]), names).splitlines()
    assert exact[-1] == "└─ n19"


def test_similarity_is_shown_where_there_is_one():
    nodes = nodes_of([[0, 1], 2], np.array([0.421, 0.9, *[np.nan] * 3], np.float32))
    assert [line.partition(" (")[2] for line in tree_text(nodes, NAMES).splitlines()] == [
        "merged at 0.42)",
        "merged at 0.90)",
        "",
        "",
        "",
    ]
    rows = tree_json(nodes, NAMES)
    assert rows[0]["similarity"] == pytest.approx(0.421)
    assert ["similarity" in row for row in rows] == [True, True, False, False, False]
    assert tree_newick(nodes, NAMES) == "((a,b),c);"


def test_json_is_a_flat_list():
    rows = tree_json(nodes_of([2, [0, 1]]), NAMES)
    assert rows == [
        {"id": 0, "parent": None, "n_labels": 3},
        {"id": 1, "parent": 0, "label": "c", "n_labels": 1},
        {"id": 2, "parent": 0, "n_labels": 2},
        {"id": 3, "parent": 2, "label": "a", "n_labels": 1},
        {"id": 4, "parent": 2, "label": "b", "n_labels": 1},
    ]


ODD = ["two words", "it's", "(a)", "[b]", "c:d", "e;f", "g,h", "", "''", "under_score", '"', "ünï", "a&b", "x'y z"]


def test_newick_quotes_what_it_must():
    names = LabelSpace(ODD)
    text = tree_newick(nodes_of([[0, 1], [2, 3, 4, 5, 6], [7, 8, 9, 10], 11, 12, 13]), names)
    assert text.startswith("(('two words','it''s'),('(a)','[b]',")
    assert text.endswith(",ünï,a&b,'x''y z');")
    assert parse_newick(text) == named([[0, 1], [2, 3, 4, 5, 6], [7, 8, 9, 10], 11, 12, 13], names.names)


@given(st.recursive(st.just(0), lambda below: st.lists(below, min_size=1, max_size=4), max_leaves=30), st.data())
def test_newick_reads_back_as_the_same_tree(shape, draw):
    leaves = 0

    def numbered(item):
        nonlocal leaves
        if isinstance(item, list):
            return [numbered(below) for below in item]
        leaves += 1
        return leaves - 1

    nested = numbered(shape)
    characters = st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=6)
    names = LabelSpace(draw.draw(st.lists(characters, min_size=leaves, max_size=leaves, unique=True)))
    nodes = nodes_of(nested)
    assert parse_newick(tree_newick(nodes, names)) == named(nested, names.names)
    rows = tree_json(nodes, names)
    assert {row["label"] for row in rows if "label" in row} == set(names.names)
    assert rows[0]["n_labels"] == leaves
    assert tree_text(nodes, names, depth=99).count("\n") + 1 == len(rows)


def test_names_that_would_break_a_line_are_escaped():
    names = LabelSpace(["a\nb", "c\r\x1b[2Jd", "e\u2028f\u202e", "g\ud800", "नि\u200dज\xa0x"])
    nodes = nodes_of([[0, 1], [2, 3], 4])
    text = tree_text(nodes, names)
    assert len(text.splitlines()) == 8
    assert "a\\nb" in text
    assert "c\\r\\x1b[2Jd" in text
    assert "e\\u2028f\\u202e" in text
    assert "g\\ud800" in text
    assert printable(names.names[4]) == names.names[4]
    newick = tree_newick(nodes, names)
    assert len(newick.splitlines()) == 1
    assert parse_newick(newick)[0][0] == "a\\nb"
    assert tree_json(nodes, names)[4]["label"] == "a\nb"


def test_long_names_are_cut():
    lines = tree_text(nodes_of([0, 1]), LabelSpace(["x" * 500, "y"])).splitlines()
    assert lines[1] == "├─ " + "x" * 79 + "…"


@pytest.fixture(scope="module")
def deep():
    """A chain as deep as it has labels, and their names."""
    return chain(DEEP), LabelSpace([f"l{i}" for i in range(DEEP + 1)], counts=np.arange(DEEP + 1))


@pytest.mark.slow
def test_a_chain_needs_no_recursion(deep):
    nodes, names = deep
    summary = tree_summary(nodes)
    assert (summary["height"], summary["degenerate"]) == (DEEP, True)
    assert heading(summary, 0, 1, "balance=always").splitlines()[1] == (
        "warning: the tree is degenerate, of height 100,000 for 100,001 labels; train with --set balance=always"
    )
    newick = tree_newick(nodes, names)
    assert newick.startswith("(l0,(l1,(l2,")
    assert newick.endswith(f"l{DEEP}" + ")" * DEEP + ";")
    rows = json.loads(forest([nodes], names, "json", 3, [""]))[0]
    assert [row["n_labels"] for row in rows[::2]] == list(range(DEEP + 1, 0, -1))
    assert len(tree_text(nodes, names).splitlines()) == 8


@pytest.mark.slow
def test_the_drawing_of_a_chain_grows_linearly(deep):
    lines = tree_text(*deep, depth=DEEP).splitlines()
    assert len(lines) == 2 * DEEP + 1
    assert max(map(len, lines)) < 3 * MAX_INDENT + 60
    assert lines[-1].startswith("⋯")
    assert lines[-1].endswith(f"└─ l{DEEP}")


def test_frequent_labels_against_a_slow_twin():
    rng = np.random.default_rng(3)
    nested = [[[0, 1, 2], [3, [4, 5]]], [6, [7, [8, 9, 10, 11]]]]
    names = LabelSpace([str(i) for i in range(12)], counts=rng.integers(0, 4, 12))
    nodes = nodes_of(nested)
    below = [[] for _ in nodes.label]
    for leaf in np.flatnonzero(nodes.label >= 0):
        node = nodes.parent[leaf]
        while node >= 0:
            below[node].append(int(nodes.label[leaf]))
            node = nodes.parent[node]
    best = [sorted(labels, key=lambda label: (-names.counts[label], label))[:3] for labels in below]
    assert most_frequent(nodes, names, 3) == best
    assert labels_below(nodes) == [max(1, len(labels)) for labels in below]


def test_several_trees_stand_below_each_other():
    trees = [nodes_of([0, 1]), nodes_of([[1], 0])]
    heads = [heading(tree_summary(nodes), index, 2, "") for index, nodes in enumerate(trees)]
    text = forest(trees, NAMES, "text", 3, heads)
    assert text.startswith("tree 1 of 2: 2 labels, height 1, balance 1.00, mean depth 1.0, 3 nodes, at most 2 children")
    assert "\n└─ b\n\ntree 2 of 2: 2 labels, height 2," in text
    assert forest(trees, NAMES, "newick", 3, heads) == "(a,b);\n((b),a);\n"
    assert [len(tree) for tree in json.loads(forest(trees, NAMES, "json", 3, heads))] == [3, 4]
