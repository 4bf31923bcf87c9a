"""Search a tree of label codes by the scores of code digits: by beam search, or by sampling.

Node n of the tree has the children first_child[n] to last_child[n] - 1, which have larger numbers; ``label`` is the
label of a leaf, else -1. Child c of node n at level d has the score ``outputs[d, digit[c]] . (a * gates[gate[n]])`` +
``prior[c]`` for a document vector a, or ``fixed[c]`` if gate[n] is -1: infinite for a child without siblings, and the
log-odds of its share for a label that shares its code.
"""

import numpy as np

from labelspace.kernels.beam_search import expand_beam, layout_children, sort_log_scores
from labelspace.kernels.compiled import kernel
from labelspace.kernels.inner_products import dot
from labelspace.kernels.random_numbers import initial_state, next_state, uniform_from_key
from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Floats, Ints, Longs

MIN_LOG_ACTIVATION = -30.0  # children below are pruned


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
    a: Floats, node: int, outputs: Floats, gates: Floats, gate: Ints, digit: Ints, prior: Floats, fixed: Floats,
    first: int, last: int, gated: Floats, out: Floats,
) -> None:  # fmt: skip
    """The scores of children first..last of a node, for outputs (width, hidden) of its level. ``gated`` is scratch."""
    if gate[node] >= 0:
        gate_vector = gates[gate[node]]
        for m in range(len(a)):
            gated[m] = a[m] * gate_vector[m]
    for child in range(first, last):
        if gate[node] < 0:
            out[child - first] = fixed[child]
            continue
        out[child - first] = dot(gated, outputs[digit[child]]) + prior[child]


@kernel()
def search_codes(
    documents: Floats, outputs: Floats, gates: Floats, gate: Ints, digit: Ints, prior: Floats, fixed: Floats,
    first_child: Ints, last_child: Ints, label: Ints, softmax: bool, beam_size: int, out_labels: Ints,
    out_scores: Floats,
) -> None:  # fmt: skip
    """The top labels of each document (n, hidden), by the product of the probabilities of their digits.

    The digits after a prefix are one choice if ``softmax``, else independent (sigmoid).
    """
    nodes, scores, shift = np.empty(beam_size, np.int32), np.empty(beam_size, np.float32), np.empty(beam_size, np.int64)
    next_nodes, next_scores = np.empty(beam_size, np.int32), np.empty(beam_size, np.float32)
    margins, gated = np.empty(1024, np.float32), np.empty(documents.shape[1], np.float32)
    for row in range(len(documents)):
        nodes[0], scores[0], width, n_leaves, level = 0, 0.0, 1, 0, 0
        while width > 0:
            margins = layout_children(first_child, last_child, nodes[:width], shift, margins)
            for i in range(width):
                first, last = first_child[nodes[i]], last_child[nodes[i]]
                out = margins[shift[i] + first : shift[i] + last]
                digit_scores(
                    documents[row], nodes[i], outputs[min(level, len(outputs) - 1)], gates, gate, digit, prior, fixed,
                    first, last, gated, out,
                )  # fmt: skip
                if softmax and gate[nodes[i]] >= 0:
                    softmax_log_odds(out)
            width, n_leaves = expand_beam(
                nodes, scores, width, margins, shift, first_child, last_child, label, 0.0, MIN_LOG_ACTIVATION,
                next_nodes, next_scores, out_labels[row], out_scores[row], n_leaves,
            )  # fmt: skip
            level += 1
        sort_log_scores(out_scores[row], out_labels[row], n_leaves)


@kernel()
def sample_children(log_odds: Floats, softmax: bool, key: np.uint64, node: int, first: int, sampled: Ints) -> int:
    """Sample one child of a node if ``softmax``, else each independently; returns how many were sampled."""
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
    documents: Floats, outputs: Floats, gates: Floats, gate: Ints, digit: Ints, prior: Floats, fixed: Floats,
    first_child: Ints, last_child: Ints, label: Ints, softmax: bool, n_samples: int, seed: int, out_labels: Ints,
    out_scores: Floats,
) -> None:  # fmt: skip
    """``search_codes`` by sampling: labels are scored by the share of the ``n_samples`` samples that contain them.

    Random numbers depend on the sample and the node only, so they are the same for all documents.
    """
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
                digit_scores(
                    documents[row], node, outputs[min(level, len(outputs) - 1)], gates, gate, digit, prior, fixed,
                    first_child[node], last_child[node], gated, out,
                )  # fmt: skip
                if softmax and gate[node] >= 0:
                    softmax_log_odds(out)
                for i in range(sample_children(out, softmax, key, node, first_child[node], sampled)):
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
def sample_walks(
    doc_labels: Ints, doc_starts: Ints, label_docs: Ints, label_starts: Ints, ends: Longs, first_labels: Ints,
    seed: int, out: Ints,
) -> None:  # fmt: skip
    """One walk from each of ``first_labels``; ``out`` (n, length) gets its labels. Walk i is seeded with ``seed`` + i.

    A step goes to any other label of any document of the current label, weighted by the documents they share. The
    labels of a document are sorted. ``ends`` (n_pairs + 1,) counts, up to each entry of ``label_docs``, the other
    labels of the documents there, so one random number gives both document and label; each first label has a neighbor.
    """
    for i in range(len(first_labels)):
        state = initial_state(seed + i)
        for _ in range(4):
            state = next_state(state)
        label = first_labels[i]
        out[i, 0] = label
        for step in range(1, out.shape[1]):
            state = next_state(state)
            low, high = label_starts[label], label_starts[label + 1]
            drawn = ends[low] + np.int64(state % np.uint64(ends[high] - ends[low]))
            while high - low > 1:  # the last entry with ends <= drawn
                middle = (low + high) // 2
                if ends[middle] <= drawn:
                    low = middle
                else:
                    high = middle
            pos = doc_starts[label_docs[low]] + drawn - ends[low]
            other = doc_labels[pos]
            label = other if other < label else doc_labels[pos + 1]  # skip the label itself
            out[i, step] = label
