"""Beam search in a tree of classifiers: linear ones on sparse rows (see ``tree_classifiers``), or on dense vectors."""

from typing import NamedTuple

import numpy as np

from labelspace.kernels.compiled import integer, kernel, part
from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.kernels.sparse_layers import Table
from labelspace.kernels.topk import push, radix_sort, sort_best_first
from labelspace.types import Floats, Ints, Longs

LOWER_HALF = 0xFFFFFFFF
# ``is_quicker_at_once`` compares two ways of adding up weights by these costs. With wrong costs, only time is lost.
SEARCH_COST = 32  # weights that are added in the time in which the weights of a feature are found for one node
RESET_COST = 8  # nodes whose margins are reset in the time in which one weight is added
FIRST_MARGINS = 1024  # margins that the buffer has room for at first; it grows for wider beams


class Tree(NamedTuple):
    """The nodes of one or several trees: node n has the children ``first_child[n]`` to ``last_child[n]`` - 1.

    Children have larger numbers than their parent and are ordered by parent. ``label`` is the label of a leaf, else -1;
    leaves may have any depth.
    """

    first_child: Ints
    last_child: Ints
    label: Ints


class NodeWeights(NamedTuple):
    """A linear classifier for each node, stored by feature: feature f has values[starts[f] : starts[f + 1]]."""

    values: Table
    nodes: Ints  # of the values; in order for each feature
    starts: Ints
    bias: Floats  # (n_nodes,)


class LinearTrees(NamedTuple):
    """Trees with a linear classifier for each node, and how they are searched.

    The fields of ``NodeWeights``, ``Tree`` and ``Search`` in one tuple: numba takes longer to find the types of nested
    or of several named tuples, which counts where one document is tagged at a time.
    """

    values: Table
    nodes: Ints
    starts: Ints
    bias: Floats
    first_child: Ints
    last_child: Ints
    label: Ints
    roots: Ints
    beam_size: int
    power: float
    min_log_activation: float = -np.inf


class NodeVectors(NamedTuple):
    """A classifier on dense rows for each node: ``weights`` (n_nodes, width) times a scale per node, and a bias."""

    weights: Table
    scales: Floats
    bias: Floats


class Search(NamedTuple):
    """How a search goes on: the nodes kept at each level, the power of the gap, and what is pruned."""

    beam_size: int
    power: float  # see ``log_activation``
    min_log_activation: float  # children below are pruned


class Beam(NamedTuple):
    """Buffers of a search in one tree: nodes and log scores of a level and of the next, and where margins are."""

    nodes: Ints
    scores: Floats
    next_nodes: Ints  # (beam_size,)
    next_scores: Floats
    shift: Longs


@kernel()
def lower_bound(values: Ints | Longs, low: int, high: int, target: int) -> int:
    """Return the first index in sorted values[low:high] whose value is at least the target; fast if it is ``low``.

    The search narrows by a conditional move, because a branch would be mispredicted half of the time.
    """
    if low >= high or values[np.uint64(low)] >= target:
        return low
    size, first = np.uint64(high - low), np.uint64(low)  # numba lets signed indices count from the end, which costs
    while size > np.uint64(1):
        half = size >> np.uint64(1)
        first = first + half if values[first + half - np.uint64(1)] < target else first
        size -= half
    return int(first) + int(values[first] < target)


@kernel()
def log_activation(margin: float, power: float) -> np.float32:
    """Return the log of the factor by which a child multiplies its parent's score: -hinge ** power.

    hinge = log(1 + exp(2 - 2 margin)) / 2 is a smooth max(0, 1 - margin), so a larger margin is always better. With a
    power of 0 the factor is the sigmoid 1 / (1 + exp(-margin)).
    """
    if power == 0.0:
        return np.float32(-np.log1p(np.exp(-margin)) if margin > -20.0 else margin)
    hinge = np.log1p(np.exp(2.0 - 2.0 * margin)) / 2.0 if margin > -20.0 else 1.0 - margin
    return np.float32(-(hinge**power))


@kernel()
def log_activation_bound(margin: float, power: float) -> float:
    """Return a cheap upper bound of ``log_activation``: its value with the exact hinge."""
    if power == 0.0:
        return min(margin, 0.0)
    return -((1.0 - margin) ** power) if margin < 1.0 else 0.0


@kernel()
def sort_by_node(nodes: Ints, scores: Floats, size: int) -> None:
    """Sort a beam by node, in place (insertion sort, because beams are short)."""
    for i in range(1, size):
        node, score, pos = nodes[i], scores[i], i
        while pos > 0 and nodes[pos - 1] > node:
            nodes[pos], scores[pos] = nodes[pos - 1], scores[pos - 1]
            pos -= 1
        nodes[pos], scores[pos] = node, score


@kernel()
def empty_beam(beam_size: int, n_nodes: int) -> Beam:
    """Return buffers for a search that starts with up to ``n_nodes`` nodes and keeps ``beam_size`` at each level."""
    nodes, scores = np.empty(n_nodes, np.int32), np.empty(n_nodes, np.float32)
    next_nodes, next_scores = np.empty(beam_size, np.int32), np.empty(beam_size, np.float32)
    return Beam(nodes, scores, next_nodes, next_scores, np.empty(n_nodes, np.int64))


@kernel()
def layout_children(tree: Tree, nodes: Ints, shift: Longs, margins: Floats) -> Floats:
    """Assign child c of nodes[i] the index shift[i] + c in ``margins``, or in a larger array if that is too short."""
    count = 0
    for i, node in enumerate(nodes):
        shift[i] = count - tree.first_child[node]
        count += tree.last_child[node] - tree.first_child[node]
    return margins if count <= len(margins) else np.empty(2 * count, np.float32)


@kernel()
def child_margins(
    data: Floats, indices: Ints, weights: NodeWeights, tree: Tree, nodes: Ints, shift: Longs, margins: Floats
) -> Floats:
    """Return the margins of the children of some nodes, sorted by node, for one document.

    Child c of nodes[i] is at shift[i] + c of the result: ``margins``, or a larger array if that is too short.
    """
    margins = layout_children(tree, nodes, shift, margins)
    for i, node in enumerate(nodes):
        for child in range(tree.first_child[node], tree.last_child[node]):
            margins[shift[i] + child] = weights.bias[child]
    for j in range(len(indices)):
        pos, end = int(weights.starts[indices[j]]), int(weights.starts[indices[j] + 1])
        for i in range(len(nodes)):
            if pos >= end:
                break
            pos = lower_bound(weights.nodes, pos, end, tree.first_child[nodes[i]])
            pos = add_weights(data[j], weights, pos, end, tree.last_child[nodes[i]], shift[i], margins)
    return margins


@part()
def add_weights(value: float, weights: NodeWeights, pos: int, end: int, last: int, shift: int, margins: Floats) -> int:
    """Add a feature's weights from ``pos`` on for nodes before ``last`` to their margins; return where it stops."""
    at, stop = np.uint64(pos), np.uint64(end)
    while at < stop and weights.nodes[at] < last:
        margin = np.uint64(weights.nodes[at] + shift)
        margins[margin] += value * np.float32(weights.values[at])
        at += np.uint64(1)
    return int(at)


@part()
def add_all_weights(data: Floats, indices: Ints, weights: NodeWeights, margins: Floats) -> None:
    """Fill the margins of all nodes for one document, feature after feature: the numbers of ``child_margins``."""
    for node in range(len(weights.bias)):
        margins[node] = weights.bias[node]
    for j in range(len(indices)):
        value = data[j]
        for pos in range(np.uint64(weights.starts[indices[j]]), np.uint64(weights.starts[indices[j] + 1])):
            margins[np.uint64(weights.nodes[pos])] += value * np.float32(weights.values[pos])


@part()
def is_quicker_at_once(indices: Ints, starts: Ints, n_nodes: int, beam_size: int) -> bool:
    """Return whether the margins of all nodes take less time than those of the nodes that a beam visits."""
    total = 0
    for j in range(len(indices)):
        total += starts[indices[j] + 1] - starts[indices[j]]
    return bool(total + n_nodes // RESET_COST <= SEARCH_COST * beam_size * len(indices))


@part()
def weights_and_tree(trees: LinearTrees) -> tuple[NodeWeights, Tree]:
    """Return the classifiers and the nodes of trees."""
    weights = NodeWeights(trees.values, trees.nodes, trees.starts, trees.bias)
    return weights, Tree(trees.first_child, trees.last_child, trees.label)


@kernel()
def advance_beams(X: CsrArrays, start: int, stop: int, trees: LinearTrees, beam: Ints, beam_scores: Floats) -> None:
    """Move the beam of rows start..stop of X one level down, in place; leaves are dropped.

    ``beam`` and ``beam_scores`` (n, beam_size) hold nodes and log scores, padded with -1 and -inf.
    """
    beam_size = beam.shape[1]
    weights, tree = weights_and_tree(trees)
    shift, margins = np.empty(beam_size, np.int64), np.empty(FIRST_MARGINS, np.float32)
    for row in range(start, stop):
        width = 0
        while width < beam_size and beam[row, width] >= 0:
            width += 1
        nodes, scores = beam[row, :width].copy(), beam_scores[row, :width].copy()
        sort_by_node(nodes, scores, width)
        span = slice(X.indptr[row], X.indptr[row + 1])
        margins = child_margins(X.data[span], X.indices[span], weights, tree, nodes, shift, margins)
        size = integer(0)
        for i in range(width):
            for child in range(tree.first_child[nodes[i]], tree.last_child[nodes[i]]):
                if tree.label[child] < 0:
                    score = scores[i] + log_activation(margins[shift[i] + child], trees.power)
                    size = push(beam_scores[row], beam[row], size, score, child)
        sort_best_first(beam_scores[row], beam[row], size)


@kernel()
def expand_beam(
    beam: Beam, width: int, margins: Floats, tree: Tree, search: Search, leaves: Ints, leaf_scores: Floats, n_found: int
) -> tuple[int, int]:
    """Replace a beam of ``width`` nodes and log scores by their children, in place; leaves go to ``leaves``.

    ``margins`` are those of ``child_margins``. Return the new width and the number of leaves.
    """
    nodes, scores, next_nodes, next_scores = beam.nodes, beam.scores, beam.next_nodes, beam.next_scores
    beam_size, max_leaves, size = len(next_nodes), len(leaves), integer(0)
    for i in range(width):
        for child in range(tree.first_child[nodes[i]], tree.last_child[nodes[i]]):
            margin, is_leaf = margins[beam.shift[i] + child], tree.label[child] >= 0
            is_full = n_found == max_leaves if is_leaf else size == beam_size
            worst = leaf_scores[0] if is_leaf else next_scores[0]
            if is_full and scores[i] + log_activation_bound(margin, search.power) < worst:
                continue
            log_factor = log_activation(margin, search.power)
            if log_factor < search.min_log_activation:
                continue
            score = scores[i] + log_factor
            if is_leaf:
                n_found = push(leaf_scores, leaves, n_found, score, tree.label[child])
            else:
                size = push(next_scores, next_nodes, size, score, child)
    for i in range(size):
        nodes[i], scores[i] = next_nodes[i], next_scores[i]
    return size, n_found


@kernel()
def beam_search(X: CsrArrays, start: int, stop: int, trees: LinearTrees, out_labels: Ints, out_scores: Floats) -> None:
    """Find the top labels of rows start..stop of X: by the mean over trees of the product along a label's path.

    Scores are summed as logs.
    """
    weights, tree = weights_and_tree(trees)
    search = Search(trees.beam_size, trees.power, trees.min_log_activation)
    roots, beam_size = trees.roots, trees.beam_size
    n_trees, k, n_nodes = len(roots), out_labels.shape[1], len(tree.label)
    max_leaves = k if n_trees == 1 else max(5 * beam_size, 2 * k)  # per tree: means may reorder labels
    beam = empty_beam(beam_size, beam_size)
    leaf_labels, leaf_scores = np.empty((n_trees, max_leaves), np.int32), np.empty((n_trees, max_leaves), np.float32)
    n_leaves = np.zeros(n_trees, np.int64)
    margins = np.empty(FIRST_MARGINS, np.float32)
    for row in range(start, stop):
        span = slice(X.indptr[row], X.indptr[row + 1])
        data, indices = X.data[span], X.indices[span]
        at_once = is_quicker_at_once(indices, weights.starts, n_nodes, beam_size)
        if at_once:
            margins = margins if len(margins) >= n_nodes else np.empty(n_nodes, np.float32)
            add_all_weights(data, indices, weights, margins)
            for i in range(beam_size):
                beam.shift[i] = 0
        for at in range(n_trees):
            labels, scores = leaf_labels[at], leaf_scores[at]
            beam.nodes[0], beam.scores[0], width = roots[at], 0.0, integer(1)
            n_leaves[at] = 0
            while width > 0:
                if not at_once:
                    sort_by_node(beam.nodes, beam.scores, width)
                    margins = child_margins(data, indices, weights, tree, beam.nodes[:width], beam.shift, margins)
                width, n_leaves[at] = expand_beam(beam, width, margins, tree, search, labels, scores, n_leaves[at])
        row_scores, row_labels = out_scores[row], out_labels[row]
        if n_trees == 1:
            for i in range(n_leaves[0]):
                row_scores[i], row_labels[i] = leaf_scores[0, i], leaf_labels[0, i]
            sort_log_scores(row_scores, row_labels, n_leaves[0])
        else:
            size = average_trees(leaf_labels, leaf_scores, n_leaves, row_scores, row_labels)
            sort_best_first(row_scores, row_labels, size)


@kernel(fastmath=True, forceinline=True)
def dense_margins(code: Floats, vectors: NodeVectors, tree: Tree, nodes: Ints, shift: Longs, margins: Floats) -> Floats:
    """Return the margins of the children of some nodes, as ``child_margins`` does, for a dense row (width,)."""
    margins = layout_children(tree, nodes, shift, margins)
    for i, node in enumerate(nodes):
        for child in range(tree.first_child[node], tree.last_child[node]):
            node_weights, total = vectors.weights[child], np.float32(0.0)
            for m in range(len(code)):
                total += code[m] * node_weights[m]
            margins[shift[i] + child] = total * vectors.scales[child] + vectors.bias[child]
    return margins


@kernel()
def dense_beam_search(
    codes: Floats, vectors: NodeVectors, tree: Tree, search: Search, out_labels: Ints, out_scores: Floats
) -> None:
    """Find the top labels of dense rows (n, width) in one tree, by the product along a label's path."""
    beam = empty_beam(search.beam_size, search.beam_size)
    margins = np.empty(FIRST_MARGINS, np.float32)
    for row in range(len(codes)):
        labels, scores = out_labels[row], out_scores[row]
        beam.nodes[0], beam.scores[0], width, n_leaves = 0, 0.0, integer(1), integer(0)
        while width > 0:
            margins = dense_margins(codes[row], vectors, tree, beam.nodes[:width], beam.shift, margins)
            width, n_leaves = expand_beam(beam, width, margins, tree, search, labels, scores, n_leaves)
        sort_log_scores(scores, labels, n_leaves)


@part()
def sort_log_scores(scores: Floats, ids: Ints, size: int) -> None:
    """Turn a heap of log scores into a list of scores, best first; scores that round to the same keep their order."""
    sort_best_first(scores, ids, size)
    for i in range(size):
        scores[i] = np.exp(scores[i])


@kernel()
def average_trees(leaf_labels: Ints, leaf_scores: Floats, n_leaves: Longs, out_scores: Floats, out_labels: Ints) -> int:
    """Push the labels of best mean score over all trees onto a heap, and return its size.

    ``n_leaves`` is the number of labels per tree. A label that is missing in a tree scores 0 there.
    """
    n_trees, n_total = len(n_leaves), 0
    for tree in range(n_trees):
        n_total += n_leaves[tree]
    found, buffer, scores = np.empty(n_total, np.int64), np.empty(n_total, np.int64), np.empty(n_total, np.float32)
    pos, n_labels = 0, integer(0)
    for tree in range(n_trees):
        for i in range(n_leaves[tree]):
            label = leaf_labels[tree, i]
            found[pos], scores[pos] = integer(label) << 32 | pos, np.exp(leaf_scores[tree, i]) / np.float32(n_trees)
            n_labels = max(n_labels, integer(label) + 1)
            pos += 1
    found = radix_sort(found, buffer, n_labels)  # by label, then by tree
    size, i = integer(0), 0
    while i < n_total:
        same, score = found[i] >> 32, scores[found[i] & LOWER_HALF]
        i += 1
        while i < n_total and found[i] >> 32 == same:
            score += scores[found[i] & LOWER_HALF]
            i += 1
        size = push(out_scores, out_labels, size, score, same)
    return size


@kernel()
def average_tree_lists(labels: Ints, scores: Floats, out_labels: Ints, out_scores: Floats) -> None:
    """Find the labels of best mean score over the lists (n_trees, n, list_size) of a row; a missing label scores 0."""
    n_trees, n, list_size = labels.shape
    sizes, log_scores = np.empty(n_trees, np.int64), np.empty((n_trees, list_size), np.float32)
    for row in range(n):
        for tree in range(n_trees):
            size = 0
            while size < list_size and labels[tree, row, size] >= 0:
                log_scores[tree, size] = np.log(scores[tree, row, size])
                size += 1
            sizes[tree] = size
        size = average_trees(labels[:, row], log_scores, sizes, out_scores[row], out_labels[row])
        sort_best_first(out_scores[row], out_labels[row], size)
