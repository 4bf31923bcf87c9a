"""A label tree as text, Newick and plain values for JSON, with a summary.

Nothing here is recursive: a degenerate tree may be as deep as it has labels.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from labelspace.labels.tree import TreeNodes
from labelspace.report.terminal import json_text, printable, shortened
from labelspace.types import LabelSpace

MAX_CHILDREN = 20  # drawn per node
MAX_INDENT = 32  # levels of indentation: lines of a deep tree must not grow without limit
MAX_NAMES = 3  # labels shown of an inner node
MAX_NAME_LENGTH = 80
INDENT = {"": "", "├─ ": "│  ", "└─ ": "   "}  # indentation below each kind of branch
FOLDED = "⋯  "  # replaces indentation beyond MAX_INDENT
NEWICK_SYNTAX = set("()[]':;,_\"")  # an unquoted underscore would be read as a blank


def tree_summary(nodes: TreeNodes) -> dict[str, Any]:
    """Return the figures of a tree; it is ``degenerate`` if it is much deeper than its number of labels requires.

    >>> leaf = TreeNodes(np.array([0], np.int32), np.array([0], np.int32), np.array([5], np.int32))
    >>> tree_summary(leaf)["height"], tree_summary(leaf)["degenerate"]
    (0, False)
    """
    return {
        "n_labels": nodes.n_labels,
        "n_nodes": len(nodes.label),
        "height": nodes.height,
        "mean_depth": round(float(nodes.level[nodes.label >= 0].mean()), 3),
        "balance": round(nodes.balance, 6),
        "most_children": int((nodes.last_child - nodes.first_child).max()),
        "degenerate": nodes.is_degenerate,
    }


def heading(summary: Mapping[str, Any], index: int, n_trees: int, remedy: str) -> str:
    """Return the figures of ``tree_summary`` in one line, and a warning if the tree is degenerate.

    ``index`` counts from 0; ``remedy`` is a setting that balances the tree.
    """
    head = f"tree {index + 1} of {n_trees}: " if n_trees > 1 else ""
    head += (
        f"{counted(summary['n_labels'], 'label')}, height {summary['height']:,}, balance {summary['balance']:.2f}, "
        f"mean depth {summary['mean_depth']:,.1f}, {counted(summary['n_nodes'], 'node')}, "
        f"at most {summary['most_children']:,} children per node"
    )
    if not summary["degenerate"]:
        return head
    size = f"of height {summary['height']:,} for {counted(summary['n_labels'], 'label')}"
    return f"{head}\nwarning: the tree is degenerate, {size}; train with --set {remedy}"


def forest(trees: Sequence[TreeNodes], labels: LabelSpace, form: str, depth: int, heads: Sequence[str]) -> str:
    """Return several trees in one file: text with headings, newick with one line per tree, or a JSON list."""
    if form == "json":
        return json_text([tree_json(nodes, labels) for nodes in trees]) + "\n"
    if form == "newick":
        return "".join(tree_newick(nodes, labels) + "\n" for nodes in trees)
    return "\n".join(f"{head}\n{tree_text(nodes, labels, depth)}\n" for head, nodes in zip(heads, trees, strict=True))


def tree_text(nodes: TreeNodes, labels: LabelSpace, depth: int = 3) -> str:
    """Draw the tree with lines: a label by its name, an inner node by its most frequent labels.

    >>> nodes = TreeNodes(*(np.array(row, np.int32) for row in ([1, 0, 3, 0, 0], [3, 0, 5, 0, 0], [-1, 2, -1, 0, 1])))
    >>> print(tree_text(nodes, LabelSpace(["bread", "dough", "fish"])))
    3 labels: bread, dough, fish
    ├─ fish
    └─ 2 labels: bread, dough
       ├─ bread
       └─ dough
    """
    return "\n".join(_TreeDrawing(nodes, labels, depth).lines())


def tree_newick(nodes: TreeNodes, labels: LabelSpace) -> str:
    """Return the tree in Newick format, for programs that draw trees; without branch lengths.

    The name of an inner node that is a label follows its children.

    >>> nodes = TreeNodes(*(np.array(row, np.int32) for row in ([1, 0, 3, 0, 0], [3, 0, 5, 0, 0], [-1, 2, -1, 0, 1])))
    >>> tree_newick(nodes, LabelSpace(["bread", "dough", "baker's oven"]))
    "('baker''s oven',(bread,dough));"
    """
    first, last, label = nodes.first_child.tolist(), nodes.last_child.tolist(), nodes.label.tolist()
    parts: list[str] = []
    open_nodes = [(iter([0]), ";")]  # path from the root: remaining children, and what closes them
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
    """Return the nodes as plain values, parents first; the parent of the root is None; few inner nodes have a label."""
    below = labels_below(nodes)
    similarity = [float("nan")] * len(below) if nodes.similarity is None else nodes.similarity.tolist()
    rows = []
    known = zip(nodes.parent.tolist(), nodes.label.tolist(), below, similarity, strict=True)
    for node, (parent, label, n_labels, value) in enumerate(known):
        row: dict[str, Any] = {"id": node, "parent": None if parent < 0 else parent}
        if label >= 0:
            row["label"] = labels.names[label]
        row["n_labels"] = n_labels
        if isfinite(value):
            row["similarity"] = round(value, 6)
        rows.append(row)
    return rows


def labels_below(nodes: TreeNodes) -> list[int]:
    """Return the number of labels in the subtree of each node; 1 for a leaf."""
    parent = nodes.parent.tolist()
    counts: list[int] = (nodes.label >= 0).astype(int).tolist()
    for node in range(len(counts) - 1, 0, -1):  # children come after parents, so each is complete when added
        counts[parent[node]] += counts[node]
    return counts


def most_frequent(nodes: TreeNodes, labels: LabelSpace, n: int) -> list[list[int]]:
    """Return the n most frequent labels of each inner node, or the first ones if frequencies are unknown."""
    leaves = np.flatnonzero(nodes.label >= 0)
    ids = nodes.label[leaves]
    counts = np.zeros(len(ids), np.int64) if labels.counts is None else labels.counts[ids]
    order = np.lexsort((ids, -counts))
    parent = nodes.parent.tolist()
    frequent: list[list[int]] = [[] for _ in parent]
    for leaf, label in zip(leaves[order].tolist(), ids[order].tolist(), strict=True):
        node = parent[leaf]
        while node >= 0 and len(frequent[node]) < n:  # the ancestors of a full node are full
            frequent[node].append(label)
            node = parent[node]
    return frequent


def counted(n: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "label"), counted(2000, "label")
    ('1 label', '2,000 labels')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


class _TreeDrawing:
    """Draws a tree, one line per node."""

    def __init__(self, nodes: TreeNodes, labels: LabelSpace, depth: int) -> None:
        self.nodes, self.names, self.depth = nodes, labels.names, depth
        self.below = labels_below(nodes)
        self.frequent = most_frequent(nodes, labels, MAX_NAMES)

    def lines(self) -> Iterator[str]:
        stack: list[tuple[str, str, int | str]] = [("", "", 0)]  # indentation, branch, a node or a line
        while stack:
            indent, branch, item = stack.pop()
            if isinstance(item, str):
                yield indent + branch + item
                continue
            yield indent + branch + self.node_text(item)
            indent += INDENT[branch]
            if len(indent) > MAX_INDENT * len(FOLDED):
                indent = FOLDED + indent[2 * len(FOLDED) :]
            children = self.drawn_children(item)
            stack.extend((indent, "├─ " if n else "└─ ", child) for n, child in enumerate(reversed(children)))

    def drawn_children(self, node: int) -> list[int | str]:
        """Return the children of a node that are drawn, and a line for the others."""
        first, last = int(self.nodes.first_child[node]), int(self.nodes.last_child[node])
        if first == last:
            return []
        if self.nodes.level[node] >= self.depth:
            more = self.below[node] - int(self.nodes.label[node] >= 0)  # its own name is drawn
            return [f"… {counted(more, 'more label')}"]
        stop = min(last, first + MAX_CHILDREN)
        left_out = [f"… {last - stop:,} more ({counted(sum(self.below[stop:last]), 'label')})"] if stop < last else []
        return [*range(first, stop), *left_out]

    def node_text(self, node: int) -> str:
        label = int(self.nodes.label[node])
        if label >= 0:
            return self.name(label)
        names = [self.name(label) for label in self.frequent[node]]
        line = f"{counted(self.below[node], 'label')}: {', '.join(names)}"
        if self.below[node] > len(names):
            line += ", …"
        similarity = float("nan") if self.nodes.similarity is None else float(self.nodes.similarity[node])
        return f"{line} (merged at {similarity:.2f})" if isfinite(similarity) else line

    def name(self, label: int) -> str:
        return shortened(printable(self.names[label]), MAX_NAME_LENGTH)


def _quoted(name: str) -> str:
    bare = name and not NEWICK_SYNTAX.intersection(name) and not any(c.isspace() for c in name)
    return name if bare else "'" + name.replace("'", "''") + "'"
