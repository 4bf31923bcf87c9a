"""Going down a tree of codes by the scores of digits: with a beam, or by chance.

Node n of the tree has the children first_child[n] to last_child[n] - 1, which have larger numbers; ``label`` is the
label of a leaf, else -1. Child c of node n at level d has the score ``outputs[d, digit[c]] . (a * gates[gate[n]])`` +
``prior[c]`` for a document a, or ``fixed[c]`` where that is a number: an infinite one for a child without siblings, and
the log-odds of its share for a label that shares its code.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from labelspace.kernels.beam_search import mean_of_trees, place_children, rank_products, step_down
from labelspace.kernels.inner_products import dot
from labelspace.kernels.random_numbers import uniform
from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Floats, Ints

LEAST = -30.0  # a step of a smaller logarithm is not taken


@njit(cache=True, nogil=True)
def to_log_odds(scores: Floats) -> None:
    """Scores of things of which one is chosen become the log-odds of each being it."""
    best, total = scores.max(), 0.0
    for score in scores:
        total += np.exp(score - best)
    for i in range(len(scores)):
        chance = np.exp(scores[i] - best) / total
        scores[i] = np.log(chance / (1.0 - chance)) if chance < 1.0 else np.inf


@njit(cache=True, nogil=True)
def digit_scores(
    a: Floats,
    node: int,
    outputs: Floats,
    gates: Floats,
    gate: Ints,
    digit: Ints,
    prior: Floats,
    fixed: Floats,
    first: int,
    last: int,
    gated: Floats,
    out: Floats,
) -> None:
    """The scores of children first..last of a node, for outputs (width, hidden) of its level. ``gated`` is scratch."""
    if gate[node] >= 0:
        own = gates[gate[node]]
        for m in range(len(a)):
            gated[m] = a[m] * own[m]
    for child in range(first, last):
        if gate[node] < 0:
            out[child - first] = fixed[child]
            continue
        out[child - first] = dot(gated, outputs[digit[child]]) + prior[child]


@njit(cache=True, nogil=True)
def search_codes(
    documents: Floats,
    outputs: Floats,
    gates: Floats,
    gate: Ints,
    digit: Ints,
    prior: Floats,
    fixed: Floats,
    first_child: Ints,
    last_child: Ints,
    label: Ints,
    choose: bool,
    beam: int,
    out_labels: Ints,
    out_scores: Floats,
) -> None:
    """The best labels of each document (n, hidden), by the product of the chances of their digits.

    ``choose`` says that of the digits after a prefix one is right; else each is so or not by itself.
    """
    nodes, scores, shift = np.empty(beam, np.int32), np.empty(beam, np.float32), np.empty(beam, np.int64)
    next_nodes, next_scores = np.empty(beam, np.int32), np.empty(beam, np.float32)
    margins, gated = np.empty(1024, np.float32), np.empty(documents.shape[1], np.float32)
    for row in range(len(documents)):
        nodes[0], scores[0], width, n_found, level = 0, 0.0, 1, 0, 0
        while width > 0:
            margins = place_children(first_child, last_child, nodes[:width], shift, margins)
            for i in range(width):
                first, last = first_child[nodes[i]], last_child[nodes[i]]
                out = margins[shift[i] + first : shift[i] + last]
                digit_scores(
                    documents[row], nodes[i], outputs[min(level, len(outputs) - 1)], gates, gate, digit, prior, fixed,
                    first, last, gated, out,
                )  # fmt: skip
                if choose and gate[nodes[i]] >= 0:
                    to_log_odds(out)
            width, n_found = step_down(
                nodes, scores, width, margins, shift, first_child, last_child, label, 0.0, LEAST, next_nodes,
                next_scores, out_labels[row], out_scores[row], n_found,
            )  # fmt: skip
            level += 1
        rank_products(out_scores[row], out_labels[row], n_found)


@njit(cache=True, nogil=True)
def pick(log_odds: Floats, choose: bool, key: np.uint64, node: int, first: int, picked: Ints) -> int:
    """Draw of the children of a node, from ``first`` on, one or each by itself; how many are drawn is returned."""
    last, size, left = len(log_odds), 0, uniform(key + np.uint64(node))
    while choose and last > 1 and log_odds[last - 1] == -np.inf:
        last -= 1  # what is left by rounding falls to the last one that has a chance
    for i in range(last):
        chance = 1.0 / (1.0 + np.exp(-log_odds[i]))
        left -= chance
        if (left < 0.0 or i == last - 1) if choose else uniform(key + np.uint64(first + i)) < chance:
            picked[size] = first + i
            size += 1
            if choose:
                break
    return size


@njit(cache=True, nogil=True)
def draw_codes(
    documents: Floats,
    outputs: Floats,
    gates: Floats,
    gate: Ints,
    digit: Ints,
    prior: Floats,
    fixed: Floats,
    first_child: Ints,
    last_child: Ints,
    label: Ints,
    choose: bool,
    samples: int,
    seed: int,
    out_labels: Ints,
    out_scores: Floats,
) -> None:
    """``search_codes`` by chance: labels are drawn ``samples`` times, and scored by the share of draws they are in.

    What is drawn goes by a number for each draw and node, the same for all documents.
    """
    counts, found = np.zeros(label.max() + 1, np.int32), np.empty(label.max() + 1, np.int32)
    waiting, levels = np.empty(len(label), np.int32), np.empty(len(label), np.int32)
    most = (last_child - first_child).max()
    scores, gated = np.empty(most, np.float32), np.empty(documents.shape[1], np.float32)
    picked = np.empty(most, np.int32)
    for row in range(len(documents)):
        n_found = 0
        for sample in range(samples):
            key = (np.uint64(seed) * np.uint64(samples) + np.uint64(sample)) * np.uint64(len(label))
            waiting[0], levels[0], size = 0, 0, 1
            while size > 0:
                size -= 1
                node, level = waiting[size], levels[size]
                out = scores[: last_child[node] - first_child[node]]
                digit_scores(
                    documents[row], node, outputs[min(level, len(outputs) - 1)], gates, gate, digit, prior, fixed,
                    first_child[node], last_child[node], gated, out,
                )  # fmt: skip
                if choose and gate[node] >= 0:
                    to_log_odds(out)
                for i in range(pick(out, choose, key, node, first_child[node], picked)):
                    child = picked[i]
                    if label[child] < 0:
                        waiting[size], levels[size] = child, level + 1
                        size += 1
                        continue
                    if counts[label[child]] == 0:
                        found[n_found] = label[child]
                        n_found += 1
                    counts[label[child]] += 1
        kept = 0
        for i in range(n_found):
            kept = push(out_scores[row], out_labels[row], kept, np.float32(counts[found[i]] / samples), found[i])
            counts[found[i]] = 0
        sort_best_first(out_scores[row], out_labels[row], kept)


@njit(cache=True, nogil=True)
def mean_of_lists(found: Ints, scores: Floats, out_labels: Ints, out_scores: Floats) -> None:
    """The labels of the best mean score over the lists (trees, n, listed) of each row; 0 where one has them not."""
    trees, n, listed = found.shape
    sizes, logs = np.empty(trees, np.int64), np.empty((trees, listed), np.float32)
    for row in range(n):
        for tree in range(trees):
            size = 0
            while size < listed and found[tree, row, size] >= 0:
                logs[tree, size] = np.log(scores[tree, row, size])
                size += 1
            sizes[tree] = size
        size = mean_of_trees(found[:, row], logs, sizes, out_scores[row], out_labels[row])
        sort_best_first(out_scores[row], out_labels[row], size)
