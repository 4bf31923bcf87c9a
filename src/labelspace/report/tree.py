"""A tree of labels as text: drawn with lines, as Newick, as plain values for JSON; and in a few figures.

Nothing here calls itself: a tree may be a chain as deep as it has labels.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from labelspace.labels.tree import TreeNodes
from labelspace.types import LabelSpace

WIDEST = 20  # children of a node that are drawn
DEEPEST = 32  # levels of indentation: more would not be seen, and a chain's lines would grow with every one
NAMED = 3  # labels named at an inner node
LONGEST = 80  # characters of a name
BELOW = {"": "", "├─ ": "│  ", "└─ ": "   "}  # what goes on below each kind of branch
FOLDED = "⋯  "  # in place of the levels of indentation that are left out
KEPT_APART = set("()[]':;,_\"")  # Newick's own characters; a bare underscore would be read as a blank
JOINERS = "\u200c\u200d"  # without a width, but part of how some scripts are spelled


def tree_summary(nodes: TreeNodes) -> dict[str, Any]:
    """A tree in figures; ``degenerate`` says that it is much higher than so many labels need.

    >>> one = TreeNodes(np.array([0], np.int32), np.array([0], np.int32), np.array([5], np.int32))
    >>> tree_summary(one)["height"], tree_summary(one)["degenerate"]
    (0, False)
    """
    n_labels, height = nodes.n_labels, nodes.height
    return {
        "n_labels": n_labels,
        "n_nodes": len(nodes.label),
        "height": height,
        "mean_depth": round(float(nodes.level[nodes.label >= 0].mean()), 3),
        "balance": round(nodes.balance, 6),
        "most_children": int((nodes.last_child - nodes.first_child).max()),
        "degenerate": nodes.is_degenerate,
    }


def heading(summary: Mapping[str, Any], place: int, n_trees: int, remedy: str) -> str:
    """The figures of ``tree_summary`` for people, and a warning where the tree is degenerate.

    ``place`` counts from 0; ``remedy`` is the setting that would have balanced the tree.
    """
    head = f"tree {place + 1} of {n_trees}: " if n_trees > 1 else ""
    head += (
        f"{_labels(summary['n_labels'])}, height {summary['height']:,}, balance {summary['balance']:.2f}, "
        f"mean depth {summary['mean_depth']:,.1f}, {summary['n_nodes']:,} node{_s(summary['n_nodes'])}, "
        f"at most {summary['most_children']:,} children a node"
    )
    if not summary["degenerate"]:
        return head
    return (
        f"{head}\nwarning: the tree is chain-like: height {summary['height']:,} for {_labels(summary['n_labels'])}; "
        f"train with --set {remedy}"
    )


def forest(trees: Sequence[TreeNodes], labels: LabelSpace, form: str, depth: int, heads: Sequence[str]) -> str:
    """Several trees as one file: text with the heads above, newick with a line for each tree, or a list as json."""
    if form == "json":
        return json.dumps([tree_json(nodes, labels) for nodes in trees], ensure_ascii=False) + "\n"
    if form == "newick":
        return "".join(tree_newick(nodes, labels) + "\n" for nodes in trees)
    drawn = (f"{head}\n{tree_text(nodes, labels, depth)}\n" for head, nodes in zip(heads, trees, strict=True))
    return "\n".join(drawn)


def tree_text(nodes: TreeNodes, labels: LabelSpace, depth: int = 3) -> str:
    """The tree drawn with lines: a label by its name, another node by its labels and the most frequent of them.

    >>> nodes = TreeNodes(*(np.array(row, np.int32) for row in ([1, 0, 3, 0, 0], [3, 0, 5, 0, 0], [-1, 2, -1, 0, 1])))
    >>> print(tree_text(nodes, LabelSpace(["bread", "dough", "fish"])))
    3 labels: bread, dough, fish
    ├─ fish
    └─ 2 labels: bread, dough
       ├─ bread
       └─ dough
    """
    return "\n".join(_Drawing(nodes, labels, depth).lines())


def tree_newick(nodes: TreeNodes, labels: LabelSpace) -> str:
    """The whole tree in Newick's format, which programs that draw trees read; without branch lengths.

    An inner node that is a label has its name behind what it encloses.

    >>> nodes = TreeNodes(*(np.array(row, np.int32) for row in ([1, 0, 3, 0, 0], [3, 0, 5, 0, 0], [-1, 2, -1, 0, 1])))
    >>> tree_newick(nodes, LabelSpace(["bread", "dough", "baker's oven"]))
    "('baker''s oven',(bread,dough));"
    """
    first, last, label = nodes.first_child.tolist(), nodes.last_child.tolist(), nodes.label.tolist()
    parts: list[str] = []
    open_nodes = [(iter([0]), ";")]  # the path to where we are: the children that are still to come, and what ends them
    while open_nodes:
        node = next(open_nodes[-1][0], None)
        if node is None:
            parts.append(open_nodes.pop()[1])
            continue
        if parts and parts[-1] != "(":
            parts.append(",")
        name = "" if label[node] < 0 else _quoted(printable(labels.names[label[node]]))
        if label[node] < 0 or last[node] > 0:
            parts.append("(")
            open_nodes.append((iter(range(first[node], last[node])), ")" + name))
        else:
            parts.append(name)
    return "".join(parts)


def tree_json(nodes: TreeNodes, labels: LabelSpace) -> list[dict[str, Any]]:
    """The nodes as plain values, parents first; the root's parent is None, and inner nodes seldom have a label."""
    below = labels_below(nodes)
    rows: list[dict[str, Any]] = [
        {"id": node, "parent": None if above < 0 else above} for node, above in enumerate(nodes.parent.tolist())
    ]
    for row, label, n_labels in zip(rows, nodes.label.tolist(), below, strict=True):
        if label >= 0:
            row["label"] = labels.names[label]
        row["n_labels"] = n_labels
    if nodes.similarity is not None:
        for row, value in zip(rows, nodes.similarity.tolist(), strict=True):
            if isfinite(value):
                row["similarity"] = round(value, 6)
    return rows


def labels_below(nodes: TreeNodes) -> list[int]:
    """How many labels each node and those below it are; 1 for a leaf."""
    parent = nodes.parent.tolist()
    counts: list[int] = (nodes.label >= 0).astype(int).tolist()
    for node in range(len(counts) - 1, 0, -1):  # children have larger numbers, so each is complete when it is added
        counts[parent[node]] += counts[node]
    return counts


def most_frequent(nodes: TreeNodes, labels: LabelSpace, places: int) -> list[list[int]]:
    """For each inner node its most frequent labels, or the first ones where frequencies are not known."""
    leaves = np.flatnonzero(nodes.label >= 0)
    own = nodes.label[leaves]
    counts = np.zeros(len(own), np.int64) if labels.counts is None else labels.counts[own]
    order = np.lexsort((own, -counts))
    parent = nodes.parent.tolist()
    found: list[list[int]] = [[] for _ in parent]
    for leaf, label in zip(leaves[order].tolist(), own[order].tolist(), strict=True):
        node = parent[leaf]
        while node >= 0 and len(found[node]) < places:  # a node that is full has only full ones above it
            found[node].append(label)
            node = parent[node]
    return found


def printable(name: str) -> str:
    r"""The name on one line: a character that would move the cursor is written as its escape.

    >>> print(printable("two\nlines"))
    two\nlines
    """
    if name.isprintable():
        return name
    return "".join(c if _is_plain(c) else c.encode("unicode_escape").decode() for c in name)


class _Drawing:
    """A tree while it is drawn, a line a node."""

    def __init__(self, nodes: TreeNodes, labels: LabelSpace, depth: int) -> None:
        self.nodes, self.names, self.depth = nodes, labels.names, depth
        self.below = labels_below(nodes)
        self.frequent = most_frequent(nodes, labels, NAMED)

    def lines(self) -> Iterator[str]:
        waiting: list[tuple[str, str, int | str]] = [("", "", 0)]  # indentation, branch, a node or a ready line
        while waiting:
            stem, branch, what = waiting.pop()
            if isinstance(what, str):
                yield stem + branch + what
                continue
            yield stem + branch + self.told(what)
            stem += BELOW[branch]
            if len(stem) > DEEPEST * len(FOLDED):
                stem = FOLDED + stem[2 * len(FOLDED) :]
            shown = self.shown_below(what)
            waiting.extend((stem, "├─ " if n else "└─ ", child) for n, child in enumerate(reversed(shown)))

    def shown_below(self, node: int) -> list[int | str]:
        """The children of a node that are drawn, and a line for those that are not."""
        first, last = int(self.nodes.first_child[node]), int(self.nodes.last_child[node])
        if first == last:
            return []
        if self.nodes.level[node] >= self.depth:
            more = self.below[node] - int(self.nodes.label[node] >= 0)  # its own name is drawn
            return [f"… {more:,} more label{_s(more)}"]
        stop = min(last, first + WIDEST)
        left_out = [f"… {last - stop:,} more ({_labels(sum(self.below[stop:last]))})"] if stop < last else []
        return [*range(first, stop), *left_out]

    def told(self, node: int) -> str:
        label = int(self.nodes.label[node])
        if label >= 0:
            return self.name(label)
        named = [self.name(label) for label in self.frequent[node]]
        line = f"{_labels(self.below[node])}: {', '.join(named)}"
        if self.below[node] > len(named):
            line += ", …"
        joined = float("nan") if self.nodes.similarity is None else float(self.nodes.similarity[node])
        return f"{line} (joined at {joined:.2f})" if isfinite(joined) else line

    def name(self, label: int) -> str:
        name = printable(self.names[label])
        return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def _labels(n: int) -> str:
    return f"{n:,} label{_s(n)}"


def _s(n: int) -> str:
    return "" if n == 1 else "s"


def _quoted(name: str) -> str:
    bare = name and not KEPT_APART.intersection(name) and not any(c.isspace() for c in name)
    return name if bare else "'" + name.replace("'", "''") + "'"


def _is_plain(char: str) -> bool:
    return char.isprintable() or char in JOINERS or unicodedata.category(char) == "Zs"
