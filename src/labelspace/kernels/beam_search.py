"""Searching a tree of classifiers with a beam: linear ones on sparse rows, as ``tree`` lays them out, or on codes."""

from __future__ import annotations

import numpy as np
from numba import njit

from labelspace.kernels.sparse_layers import Table
from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Floats, Ints, Longs


@njit(cache=True, nogil=True)
def first_at_least(values: Ints, low: int, high: int, goal: int) -> int:
    """The first place in sorted values[low:high] that holds the goal or more, quickest where that is the first.

    The search narrows by a conditional move, not a branch: a branch would be foretold wrongly every other time.
    """
    if low >= high or values[low] >= goal:
        return low
    size = high - low
    while size > 1:
        half = size >> 1
        low = low + half if values[low + half - 1] < goal else low
        size -= half
    return low + 1 if values[low] < goal else low


@njit(cache=True, nogil=True)
def log_step(margin: float, power: float) -> np.float32:
    """The logarithm of what a step down multiplies a score by: -gap ** power, gap = log(1 + exp(2 - 2 margin)) / 2.

    The gap is max(0, 1 - margin) with its corner rounded, so that a larger margin is always better. With a power of 0
    the step is the logistic 1 / (1 + exp(-margin)).
    """
    if power == 0.0:
        return np.float32(-np.log1p(np.exp(-margin)) if margin > -20.0 else margin)
    gap = np.log1p(np.exp(2.0 - 2.0 * margin)) / 2.0 if margin > -20.0 else 1.0 - margin
    return np.float32(-(gap**power))


@njit(cache=True, nogil=True)
def log_step_at_best(margin: float, power: float) -> float:
    """What ``log_step`` does not exceed, and cheaper: the same with the corner left on."""
    if power == 0.0:
        return min(margin, 0.0)
    return -((1.0 - margin) ** power) if margin < 1.0 else 0.0


@njit(cache=True, nogil=True)
def sort_by_node(nodes: Ints, scores: Floats, size: int) -> None:
    """Order a beam by node number, in place: it is short, so one entry is moved down at a time."""
    for i in range(1, size):
        node, score, at = nodes[i], scores[i], i
        while at > 0 and nodes[at - 1] > node:
            nodes[at], scores[at] = nodes[at - 1], scores[at - 1]
            at -= 1
        nodes[at], scores[at] = node, score


@njit(cache=True, nogil=True)
def place_children(first_child: Ints, last_child: Ints, nodes: Ints, shift: Longs, margins: Floats) -> Floats:
    """Give child c of nodes[i] the place shift[i] + c in ``margins``, or in a larger array where that is short."""
    count = 0
    for place, node in enumerate(nodes):
        shift[place] = count - first_child[node]
        count += last_child[node] - first_child[node]
    return margins if count <= len(margins) else np.empty(2 * count, np.float32)


@njit(cache=True, nogil=True)
def child_margins(
    data: Floats,
    indices: Ints,
    w_data: Floats,
    w_indices: Ints,
    w_indptr: Ints,
    bias: Floats,
    first_child: Ints,
    last_child: Ints,
    nodes: Ints,
    shift: Longs,
    margins: Floats,
) -> Floats:
    """The margins of the children of some nodes, sorted by number, for one document.

    Child c of nodes[i] stands at shift[i] + c of what is returned: ``margins``, or a larger array where that is short.
    """
    margins = place_children(first_child, last_child, nodes, shift, margins)
    for place, node in enumerate(nodes):
        for child in range(first_child[node], last_child[node]):
            margins[shift[place] + child] = bias[child]
    for j in range(len(indices)):
        value, at, end = data[j], w_indptr[indices[j]], w_indptr[indices[j] + 1]
        for place, node in enumerate(nodes):
            at = first_at_least(w_indices, at, end, first_child[node])
            last, move = last_child[node], shift[place]
            while at < end and w_indices[at] < last:
                margins[w_indices[at] + move] += value * w_data[at]
                at += 1
    return margins


@njit(cache=True, nogil=True)
def advance(
    data: Floats,
    indices: Ints,
    indptr: Ints,
    start: int,
    stop: int,
    w_data: Floats,
    w_indices: Ints,
    w_indptr: Ints,
    bias: Floats,
    first_child: Ints,
    last_child: Ints,
    label: Ints,
    power: float,
    beams: Ints,
    beam_scores: Floats,
) -> None:
    """Move the beams of rows start..stop of X one level down, in place; leaves are left out.

    ``beams`` and ``beam_scores`` (n, beam) hold nodes and logarithms of scores, -1 and -inf where there are fewer.
    """
    beam = beams.shape[1]
    shift, margins = np.empty(beam, np.int64), np.empty(1024, np.float32)
    for row in range(start, stop):
        width = 0
        while width < beam and beams[row, width] >= 0:
            width += 1
        nodes, scores = beams[row, :width].copy(), beam_scores[row, :width].copy()
        sort_by_node(nodes, scores, width)
        mine = slice(indptr[row], indptr[row + 1])
        margins = child_margins(
            data[mine], indices[mine], w_data, w_indices, w_indptr, bias, first_child, last_child, nodes, shift, margins
        )
        size = 0
        for place in range(width):
            for child in range(first_child[nodes[place]], last_child[nodes[place]]):
                if label[child] < 0:
                    score = scores[place] + log_step(margins[shift[place] + child], power)
                    size = push(beam_scores[row], beams[row], size, score, child)
        sort_best_first(beam_scores[row], beams[row], size)


@njit(cache=True, nogil=True)
def step_down(
    nodes: Ints,
    scores: Floats,
    width: int,
    margins: Floats,
    shift: Longs,
    first_child: Ints,
    last_child: Ints,
    label: Ints,
    power: float,
    least: float,
    next_nodes: Ints,
    next_scores: Floats,
    found: Ints,
    found_scores: Floats,
    n_found: int,
) -> tuple[int, int]:
    """Move a beam of ``width`` nodes and logarithms of scores one level down, in place; leaves go to ``found``.

    ``margins`` are as ``child_margins`` gives them; steps below ``least``, a logarithm, are not taken. ``next_nodes``
    and ``next_scores`` are scratch of the beam's size. Returns the new width and how many leaves are found by now.
    """
    beam, keep, size = len(next_nodes), len(found), 0
    for place in range(width):
        for child in range(first_child[nodes[place]], last_child[nodes[place]]):
            margin, leaf = margins[shift[place] + child], label[child] >= 0
            full = n_found == keep if leaf else size == beam
            worst = found_scores[0] if leaf else next_scores[0]
            if full and scores[place] + log_step_at_best(margin, power) < worst:
                continue
            step = log_step(margin, power)
            if step < least:
                continue
            score = scores[place] + step
            if leaf:
                n_found = push(found_scores, found, n_found, score, label[child])
            else:
                size = push(next_scores, next_nodes, size, score, child)
    nodes[:size], scores[:size] = next_nodes[:size], next_scores[:size]
    return size, n_found


@njit(cache=True, nogil=True)
def beam_search(
    data: Floats,
    indices: Ints,
    indptr: Ints,
    start: int,
    stop: int,
    w_data: Floats,
    w_indices: Ints,
    w_indptr: Ints,
    bias: Floats,
    first_child: Ints,
    last_child: Ints,
    label: Ints,
    roots: Ints,
    beam: int,
    power: float,
    least: float,
    out_labels: Ints,
    out_scores: Floats,
) -> None:
    """The best labels of rows start..stop of X over all trees; a label's score is the mean of its path's products.

    ``first_child`` and ``last_child`` give the stretch of a node's children, which have larger numbers than the node
    and stand in the order of their parents; ``label`` is the label of a leaf or -1; leaves may lie at any depth. Scores
    are kept as logarithms on the way down, where steps below ``least`` are not taken.
    """
    trees, k = len(roots), out_labels.shape[1]
    keep = k if trees == 1 else max(5 * beam, 2 * k)  # leaves kept of each tree: their means may reorder them
    nodes, scores, shift = np.empty(beam, np.int32), np.empty(beam, np.float32), np.empty(beam, np.int64)
    next_nodes, next_scores = np.empty(beam, np.int32), np.empty(beam, np.float32)
    found, found_scores = np.empty((trees, keep), np.int32), np.empty((trees, keep), np.float32)
    leaves = np.zeros(trees, np.int64)
    margins = np.empty(1024, np.float32)
    for row in range(start, stop):
        mine = slice(indptr[row], indptr[row + 1])
        for tree in range(trees):
            nodes[0], scores[0], width = roots[tree], 0.0, 1
            leaves[tree] = 0
            while width > 0:
                sort_by_node(nodes, scores, width)
                margins = child_margins(
                    data[mine], indices[mine], w_data, w_indices, w_indptr, bias, first_child, last_child,
                    nodes[:width], shift, margins,
                )  # fmt: skip
                width, leaves[tree] = step_down(
                    nodes, scores, width, margins, shift, first_child, last_child, label, power, least, next_nodes,
                    next_scores, found[tree], found_scores[tree], leaves[tree],
                )  # fmt: skip
        best, ids = out_scores[row], out_labels[row]
        if trees == 1:
            best[:], ids[:] = found_scores[0], found[0]
            rank_products(best, ids, leaves[0])
        else:
            sort_best_first(best, ids, mean_of_trees(found, found_scores, leaves, best, ids))


@njit(cache=True, nogil=True, fastmath=True)
def dense_margins(
    code: Floats,
    weights: Table,
    scales: Floats,
    bias: Floats,
    first_child: Ints,
    last_child: Ints,
    nodes: Ints,
    shift: Longs,
    margins: Floats,
) -> Floats:
    """``child_margins`` for a dense row (width,): ``weights`` (n_nodes, width) times a scale each, plus the bias."""
    margins = place_children(first_child, last_child, nodes, shift, margins)
    for place, node in enumerate(nodes):
        for child in range(first_child[node], last_child[node]):
            own, total = weights[child], np.float32(0.0)
            for m in range(len(code)):
                total += code[m] * own[m]
            margins[shift[place] + child] = total * scales[child] + bias[child]
    return margins


@njit(cache=True, nogil=True)
def dense_beam_search(
    codes: Floats,
    weights: Table,
    scales: Floats,
    bias: Floats,
    first_child: Ints,
    last_child: Ints,
    label: Ints,
    beam: int,
    power: float,
    least: float,
    out_labels: Ints,
    out_scores: Floats,
) -> None:
    """``beam_search`` in one tree for dense rows (n, width): the best labels of each, by the product of a path."""
    nodes, scores, shift = np.empty(beam, np.int32), np.empty(beam, np.float32), np.empty(beam, np.int64)
    next_nodes, next_scores = np.empty(beam, np.int32), np.empty(beam, np.float32)
    margins = np.empty(1024, np.float32)
    for row in range(len(codes)):
        nodes[0], scores[0], width, n_found = 0, 0.0, 1, 0
        while width > 0:
            margins = dense_margins(
                codes[row], weights, scales, bias, first_child, last_child, nodes[:width], shift, margins
            )
            width, n_found = step_down(
                nodes, scores, width, margins, shift, first_child, last_child, label, power, least, next_nodes,
                next_scores, out_labels[row], out_scores[row], n_found,
            )  # fmt: skip
        rank_products(out_scores[row], out_labels[row], n_found)


@njit(cache=True, nogil=True)
def rank_products(scores: Floats, ids: Ints, size: int) -> None:
    """Turn a heap of logarithms into a list of products, best first: two that round to the same keep their order."""
    sort_best_first(scores, ids, size)
    for i in range(size):
        scores[i] = np.exp(scores[i])


@njit(cache=True, nogil=True)
def mean_of_trees(found: Ints, log_scores: Floats, leaves: Longs, best: Floats, ids: Ints) -> int:
    """Put the labels of the best mean score over all trees into a heap; the size of the heap is returned.

    ``leaves`` says how many labels each tree found. A label that a tree has not found scores 0 there.
    """
    trees, size = len(leaves), 0
    total = leaves.sum()
    names, scores = np.empty(total, np.int32), np.empty(total, np.float32)
    at = 0
    for tree in range(trees):
        for i in range(leaves[tree]):
            names[at], scores[at] = found[tree, i], np.exp(log_scores[tree, i]) / np.float32(trees)
            at += 1
    sort_by_node(names, scores, total)
    i = 0
    while i < total:
        name, score = names[i], scores[i]
        i += 1
        while i < total and names[i] == name:
            score += scores[i]
            i += 1
        size = push(best, ids, size, score, name)
    return size
