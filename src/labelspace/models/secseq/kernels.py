"""Search a tree of label codes by the scores of code digits, by beam search or sampling; random walks among labels."""

from typing import NamedTuple

import numpy as np

from labelspace.kernels.beam_search import (
    FIRST_MARGINS,
    Search,
    Tree,
    empty_beam,
    expand_beam,
    layout_children,
    lower_bound,
    sort_log_scores,
)
from labelspace.kernels.compiled import kernel
from labelspace.kernels.inner_products import dot
from labelspace.kernels.random_numbers import initial_state, next_state, uniform_from_key
from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Floats, Ints, Longs

# Children below are pruned (a probability of 1e-13); a higher bound is faster and loses rare labels.
MIN_LOG_ACTIVATION = -30.0


class CodeScores(NamedTuple):
    """A tree of label codes, with what the scores of its digits are made of.

    The children of node n are ``first_child[n]`` to ``last_child[n] - 1``, which have larger numbers. Child c of node n
    at level d has the score ``outputs[d, digit[c]] . (a * gates[gate_row[n]]) + prior[c]`` for a document vector a, or
    ``fixed_logit[c]`` if ``gate_row[n]`` is -1: infinite for a child without siblings, and the log-odds of its share
    for a label that shares its code.
    """

    outputs: Floats  # (code_length, code_size, hidden_dim)
    gates: Floats  # (prefixes with several children, hidden_dim)
    gate_row: Ints  # (n_nodes,) the row of a prefix in ``gates``, or -1
    digit: Ints  # (n_nodes,)
    prior: Floats  # (n_nodes,)
    fixed_logit: Floats  # (n_nodes,) of nodes that are not scored
    first_child: Ints  # (n_nodes,)
    last_child: Ints  # (n_nodes,)
    label: Ints  # (n_nodes,) the label of a leaf, else -1


class LabelGraph(NamedTuple):
    """Which documents have which labels, from both sides; ``ends`` allows a step to be drawn with one number."""

    doc_labels: Ints  # document i has the labels doc_labels[doc_starts[i]:doc_starts[i + 1]], sorted
    doc_starts: Ints
    label_docs: Ints  # label l has the documents label_docs[label_starts[l]:label_starts[l + 1]]
    label_starts: Ints
    ends: Longs  # (n_pairs + 1,) up to each entry of ``label_docs``, the other labels of the documents there


@kernel()
def softmax_log_odds(scores: Floats) -> None:
    """Replace scores by the log-odds of their softmax probabilities."""
    best, exp_sum = scores.max(), 0.0
    for score in scores:
        exp_sum += np.exp(score - best)
    for i in range(len(scores)):
        probability = np.exp(scores[i] - best) / exp_sum
        scores[i] = np.log(probability / (1.0 - probability)) if probability < 1.0 else np.inf


@kernel()
def digit_scores(
    a: Floats, node: int, outputs: Floats, table: CodeScores, first: int, last: int, gated: Floats, out: Floats
) -> None:
    """Score children first..last of a node, for outputs (width, hidden) of its level. ``gated`` is scratch."""
    gate_row, digit, prior, fixed_logit = table.gate_row, table.digit, table.prior, table.fixed_logit
    if gate_row[node] >= 0:
        gate_vector = table.gates[gate_row[node]]
        for m in range(len(a)):
            gated[m] = a[m] * gate_vector[m]
    for child in range(first, last):
        if gate_row[node] < 0:
            out[child - first] = fixed_logit[child]
            continue
        out[child - first] = dot(gated, outputs[digit[child]]) + prior[child]


@kernel()
def search_codes(
    documents: Floats, table: CodeScores, softmax: bool, beam_size: int, out_labels: Ints, out_scores: Floats
) -> None:
    """Find the top labels of each document (n, hidden), by the product of the probabilities of their digits.

    The digits after a prefix are one choice if ``softmax``, else independent (sigmoid).
    """
    outputs, gate_row = table.outputs, table.gate_row
    tree = Tree(table.first_child, table.last_child, table.label)
    search = Search(beam_size, 0.0, MIN_LOG_ACTIVATION)
    beam = empty_beam(beam_size, beam_size)
    nodes, scores, shift = beam.nodes, beam.scores, beam.shift
    margins, gated = np.empty(FIRST_MARGINS, np.float32), np.empty(documents.shape[1], np.float32)
    for row in range(len(documents)):
        nodes[0], scores[0], width, n_leaves, level = 0, 0.0, 1, 0, 0
        while width > 0:
            margins = layout_children(tree, nodes[:width], shift, margins)
            for i in range(width):
                first, last = tree.first_child[nodes[i]], tree.last_child[nodes[i]]
                out = margins[shift[i] + first : shift[i] + last]
                level_outputs = outputs[min(level, len(outputs) - 1)]
                digit_scores(documents[row], nodes[i], level_outputs, table, first, last, gated, out)
                if softmax and gate_row[nodes[i]] >= 0:
                    softmax_log_odds(out)
            width, n_leaves = expand_beam(
                beam, width, margins, tree, search, out_labels[row], out_scores[row], n_leaves
            )
            level += 1
        sort_log_scores(out_scores[row], out_labels[row], n_leaves)


@kernel()
def sample_children(log_odds: Floats, softmax: bool, key: np.uint64, node: int, first: int, sampled: Ints) -> int:
    """Sample one child of a node if ``softmax``, else each child independently; return how many were sampled."""
    last, size, remaining = len(log_odds), 0, uniform_from_key(key + np.uint64(node))
    while softmax and last > 1 and log_odds[last - 1] == -np.inf:
        last -= 1  # rounding errors go to the last possible child
    for i in range(last):
        probability = 1.0 / (1.0 + np.exp(-log_odds[i]))
        remaining -= probability
        is_last = remaining < 0.0 or i == last - 1
        if is_last if softmax else uniform_from_key(key + np.uint64(first + i)) < probability:
            sampled[size] = first + i
            size += 1
            if softmax:
                break
    return size


@kernel()
def sample_codes(
    documents: Floats, table: CodeScores, softmax: bool, n_samples: int, seed: int, out_labels: Ints, out_scores: Floats
) -> None:
    """Sample the labels of each document; a label scores the share of the ``n_samples`` samples that contain it.

    Random numbers depend on the sample and the node only, so all documents have the same ones.
    """
    outputs, gate_row = table.outputs, table.gate_row
    first_child, last_child, label = table.first_child, table.last_child, table.label
    counts, seen = np.zeros(label.max() + 1, np.int32), np.empty(label.max() + 1, np.int32)
    stack, stack_levels = np.empty(len(label), np.int32), np.empty(len(label), np.int32)
    max_children = (last_child - first_child).max()
    scores, gated = np.empty(max_children, np.float32), np.empty(documents.shape[1], np.float32)
    sampled = np.empty(max_children, np.int32)
    for row in range(len(documents)):
        n_seen = 0
        for sample in range(n_samples):
            key = (np.uint64(seed) * np.uint64(n_samples) + np.uint64(sample)) * np.uint64(len(label))
            stack[0], stack_levels[0], size = 0, 0, 1
            while size > 0:
                size -= 1
                node, level = stack[size], stack_levels[size]
                out = scores[: last_child[node] - first_child[node]]
                level_outputs, first = outputs[min(level, len(outputs) - 1)], first_child[node]
                digit_scores(documents[row], node, level_outputs, table, first, last_child[node], gated, out)
                if softmax and gate_row[node] >= 0:
                    softmax_log_odds(out)
                for i in range(sample_children(out, softmax, key, node, first, sampled)):
                    child = sampled[i]
                    if label[child] < 0:
                        stack[size], stack_levels[size] = child, level + 1
                        size += 1
                        continue
                    if counts[label[child]] == 0:
                        seen[n_seen] = label[child]
                        n_seen += 1
                    counts[label[child]] += 1
        n_kept = 0
        for i in range(n_seen):
            n_kept = push(out_scores[row], out_labels[row], n_kept, np.float32(counts[seen[i]] / n_samples), seen[i])
            counts[seen[i]] = 0
        sort_best_first(out_scores[row], out_labels[row], n_kept)


@kernel()
def sample_walks(graph: LabelGraph, first_labels: Ints, seed: int, out: Ints) -> None:
    """Walk from each of ``first_labels``; ``out`` (n, length) gets the labels. Walk i is seeded with ``seed`` + i.

    A step goes to any other label of any document of the current label, weighted by the documents that they share. One
    random number below the difference of two ``ends`` gives both document and label. Each first label has a neighbor.
    """
    doc_labels, doc_starts, label_docs, label_starts, ends = graph
    for i in range(len(first_labels)):
        state = initial_state(seed + i)
        for _ in range(4):  # initial states of nearby seeds differ in few bits: mix them
            state = next_state(state)
        label = first_labels[i]
        out[i, 0] = label
        for step in range(1, out.shape[1]):
            state = next_state(state)
            low, high = label_starts[label], label_starts[label + 1]
            drawn = ends[low] + np.int64(state % np.uint64(ends[high] - ends[low]))
            entry = lower_bound(ends, low + 1, high, drawn + 1) - 1  # the last one with ends <= drawn
            pos = doc_starts[label_docs[entry]] + drawn - ends[entry]
            other = doc_labels[pos]
            label = other if other < label else doc_labels[pos + 1]  # skip the label itself
            out[i, step] = label
