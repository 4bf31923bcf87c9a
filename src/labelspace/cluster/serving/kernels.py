"""A step of a beam search whose nodes are on other machines: shards expand the beams, the door merges."""

import numpy as np

from labelspace.kernels.beam_search import average_trees, child_margins, expand_beam, sort_by_node, sort_log_scores
from labelspace.kernels.compiled import integer, kernel
from labelspace.kernels.quantize import Int8s
from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Floats, Ints


@kernel()
def expand_nodes(
    data: Floats, indices: Ints, indptr: Ints, w_data: Int8s, w_indices: Ints, w_indptr: Ints, bias: Floats,
    first_child: Ints, last_child: Ints, label: Ints, power: float, min_log_activation: float, beams: Ints,
    beam_scores: Floats, out_nodes: Ints, out_scores: Floats, out_labels: Ints, out_label_scores: Floats,
) -> None:  # fmt: skip
    """The best children of the nodes of beams (n, n_trees, width): inner ones, and leaves by label, with log scores.

    Node i has the children ``first_child[i]`` to ``last_child[i]`` - 1; -1 in a beam is no node. ``out_nodes`` are in
    no order, ``out_labels`` best first; both are padded with -1.
    """
    n_rows, n_trees, width = beams.shape
    beam_size = out_nodes.shape[2]
    nodes, scores = np.empty(max(width, beam_size), np.int32), np.empty(max(width, beam_size), np.float32)
    next_nodes, next_scores = np.empty(beam_size, np.int32), np.empty(beam_size, np.float32)
    shift, margins = np.empty(width, np.int64), np.empty(1024, np.float32)
    for row in range(n_rows):
        span = slice(indptr[row], indptr[row + 1])
        for tree in range(n_trees):
            size = integer(0)
            for i in range(width):
                if beams[row, tree, i] >= 0:
                    nodes[size], scores[size] = beams[row, tree, i], beam_scores[row, tree, i]
                    size += 1
            sort_by_node(nodes, scores, size)
            margins = child_margins(
                data[span], indices[span], w_data, w_indices, w_indptr, bias, first_child, last_child, nodes[:size],
                shift, margins,
            )  # fmt: skip
            labels, label_scores = out_labels[row, tree], out_label_scores[row, tree]
            size, n_leaves = expand_beam(
                nodes, scores, size, margins, shift, first_child, last_child, label, power, min_log_activation,
                next_nodes, next_scores, labels, label_scores, integer(0),
            )  # fmt: skip
            sort_best_first(label_scores, labels, n_leaves)
            for i in range(size):
                out_nodes[row, tree, i], out_scores[row, tree, i] = nodes[i], scores[i]


@kernel()
def merge_leaves(labels: Ints, log_scores: Floats, max_leaves: int, out_labels: Ints, out_scores: Floats) -> None:
    """The top labels of what shards found in each tree (n, n_trees, size): scores as ``beam_search`` gives them.

    ``max_leaves`` are kept of each tree.
    """
    n_rows, n_trees, _ = labels.shape
    leaf_labels, leaf_scores = np.empty((n_trees, max_leaves), np.int32), np.empty((n_trees, max_leaves), np.float32)
    n_leaves = np.zeros(n_trees, np.int64)
    for row in range(n_rows):
        for tree in range(n_trees):
            size = integer(0)
            for i in range(labels.shape[2]):
                if labels[row, tree, i] >= 0:
                    score, label = log_scores[row, tree, i], labels[row, tree, i]
                    size = push(leaf_scores[tree], leaf_labels[tree], size, score, label)
            n_leaves[tree] = size
        row_scores, row_labels = out_scores[row], out_labels[row]
        if n_trees == 1:
            for i in range(n_leaves[0]):
                row_scores[i], row_labels[i] = leaf_scores[0, i], leaf_labels[0, i]
            sort_log_scores(row_scores, row_labels, n_leaves[0])
        else:
            found = average_trees(leaf_labels, leaf_scores, n_leaves, row_scores, row_labels)
            sort_best_first(row_scores, row_labels, found)
