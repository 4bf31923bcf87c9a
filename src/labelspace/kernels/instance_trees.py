"""Trees of documents: growing one (FastXML), and finding a document's leaves.

The nodes of a tree are numbered level by level; the children of node i are child[i] and child[i] + 1, and 0 is no
child. A node with children has weights, a leaf has documents.
"""

import numpy as np
import numpy.typing as npt

from labelspace.kernels.compiled import kernel
from labelspace.kernels.l1_logistic import solve_l1_logistic, to_columns
from labelspace.kernels.ndcg_partition import partition_by_ndcg
from labelspace.kernels.random_numbers import initial_state, next_state, shuffle
from labelspace.kernels.topk import push, sort_best_first
from labelspace.kernels.tree_classifiers import compact_rows
from labelspace.types import Bools, Doubles, Floats, Ints, Longs

Weights = npt.NDArray[np.int8]
MAX_WEIGHT = 127  # of a node's weights, which are whole numbers


@kernel()
def round_weights(w: Doubles, max_value: int) -> int:
    """Scale weights so that the largest is ``max_value``, and round them; returns how many are not 0.

    A split needs the sign of w.x alone, so the scale is not kept.
    """
    largest = 0.0
    for value in w:
        largest = max(largest, abs(value))
    n_kept = 0
    for j in range(len(w)):
        w[j] = np.rint(w[j] / largest * max_value) if largest > 0.0 else 0.0
        n_kept += w[j] != 0.0
    return n_kept


@kernel()
def split_node(
    data: Floats, indices: Ints, indptr: Ints, gains: Floats, labels: Ints, label_ptr: Ints, row_weights: Doubles,
    discounts: Doubles, rows: Ints, C: float, tolerance: float, max_iter: int, new_column: Ints, new_label: Ints,
    positive: Bools,
) -> tuple[Ints, Weights]:  # fmt: skip
    """Split the documents ``rows`` in two, from a start in ``positive``: the features and weights of the split.

    ``positive`` has then the side of each document; without weights there is no split.
    """
    n = len(rows)
    node_gains, node_labels, ends, label_ids = compact_rows(gains, labels, label_ptr, rows, new_label)
    partition_by_ndcg(node_gains, node_labels, ends, len(label_ids), row_weights[rows], discounts, positive)
    n_positive = positive.sum()
    if n_positive == 0 or n_positive == n:
        return np.empty(0, np.int32), np.empty(0, np.int8)
    costs = np.empty(n)
    for i in range(n):
        costs[i] = C * n / (n_positive if positive[i] else n - n_positive)
    values, columns, ends, feature_ids = compact_rows(data, indices, indptr, rows, new_column)
    by_column, at, starts = to_columns(values, columns, ends, len(feature_ids))
    w, margins = np.zeros(len(feature_ids)), np.zeros(n)
    solve_l1_logistic(by_column, at, starts, positive, costs, tolerance, max_iter, w, margins)
    n_kept = round_weights(w, MAX_WEIGHT)
    for i in range(n):
        margin = 0.0
        for j in range(ends[i], ends[i + 1]):
            margin += values[j] * w[columns[j]]
        positive[i] = margin >= 0.0
    n_positive = positive.sum()
    if n_positive == 0 or n_positive == n:
        n_kept = 0
    features, weights, size = np.empty(n_kept, np.int32), np.empty(n_kept, np.int8), 0
    for j in range(len(w)):
        if w[j] != 0.0 and size < n_kept:
            features[size], weights[size] = feature_ids[j], w[j]
            size += 1
    return features, weights


@kernel()
def partition_rows(rows: Ints, positive: Bools) -> int:
    """Bring the positive rows to the front, each side in its order; returns how many they are."""
    others, n_positive, n_others = np.empty(len(rows), np.int32), 0, 0
    for i in range(len(rows)):
        if positive[i]:
            rows[n_positive] = rows[i]
            n_positive += 1
        else:
            others[n_others] = rows[i]
            n_others += 1
    for i in range(n_others):
        rows[n_positive + i] = others[i]
    return n_positive


@kernel()
def grow_tree(
    data: Floats, indices: Ints, indptr: Ints, n_features: int, gains: Floats, labels: Ints, label_ptr: Ints,
    row_weights: Doubles, discounts: Doubles, C: float, tolerance: float, max_iter: int, max_leaf: int, max_kept: int,
    seed: int,
) -> tuple[Ints, list[Ints], list[Weights], Ints, Ints, Ints]:  # fmt: skip
    """A tree from random starts: nodes of more than ``max_leaf`` documents are split where a split is found.

    Of the documents of a leaf at most ``max_kept`` are kept. Returns the first child of each node; features and weights
    of each split; the number of weights of each node; the documents of the leaves; the number of those of each node.
    """
    n, state = len(indptr) - 1, next_state(initial_state(seed))
    new_column, new_label = np.full(n_features, -1, np.int32), np.full(len(discounts), -1, np.int32)
    order, positive = np.arange(n).astype(np.int32), np.empty(n, np.bool_)
    begin, end, child = np.zeros(2 * n, np.int32), np.zeros(2 * n, np.int32), np.zeros(2 * n, np.int32)
    n_weights, n_documents = np.zeros(2 * n, np.int32), np.zeros(2 * n, np.int32)
    features, weights = [np.empty(0, np.int32)], [np.empty(0, np.int8)]
    documents, n_placed = np.empty(n, np.int32), 0
    end[0], n_nodes, node = n, 1, 0
    while node < n_nodes:
        rows = order[begin[node] : end[node]]
        if len(rows) > max_leaf:
            for i in range(len(rows)):
                state = next_state(state)
                positive[i] = (state >> np.uint64(33)) & np.uint64(1) == np.uint64(1)
            found, w = split_node(
                data, indices, indptr, gains, labels, label_ptr, row_weights, discounts, rows, C, tolerance, max_iter,
                new_column, new_label, positive[: len(rows)],
            )  # fmt: skip
            if len(found):
                features.append(found)
                weights.append(w)
                n_weights[node] = len(found)
                middle = begin[node] + partition_rows(rows, positive)
                begin[n_nodes], end[n_nodes] = begin[node], middle
                begin[n_nodes + 1], end[n_nodes + 1] = middle, end[node]
                child[node] = n_nodes
                n_nodes += 2
        if child[node] == 0:
            if len(rows) > max_kept:
                state = shuffle(rows, len(rows), state)
            n_documents[node] = min(len(rows), max_kept)
            for row in rows[: n_documents[node]]:
                documents[n_placed] = row
                n_placed += 1
        node += 1
    return child[:n_nodes], features, weights, n_weights[:n_nodes], documents[:n_placed], n_documents[:n_nodes]


@kernel()
def find_leaf(x: Floats, root: int, child: Ints, features: Ints, weights: Weights, weight_ptr: Longs) -> int:
    """The leaf that a dense document ``x`` reaches."""
    node = root
    while child[node] > 0:
        margin = 0.0  # products of int8 and float32 are exact, and so are their sums: ties are ties in any order
        for j in range(weight_ptr[node], weight_ptr[node + 1]):
            margin += np.float64(weights[j]) * x[features[j]]
        node = child[node] if margin >= 0.0 else child[node] + 1
    return node


@kernel()
def leaf_votes(
    x: Floats, roots: Ints, child: Ints, features: Ints, weights: Weights, weight_ptr: Longs, documents: Ints,
    document_ptr: Longs, votes: Floats, voters: Ints,
) -> int:  # fmt: skip
    """The training documents that share a leaf with ``x``, into ``voters``; returns their number.

    A document's vote is the mean over trees of 1 / size of the leaf. ``votes`` (n_documents) is zeros at first.
    """
    n_voters = 0
    for root in roots:
        leaf = find_leaf(x, root, child, features, weights, weight_ptr)
        first, last = document_ptr[leaf], document_ptr[leaf + 1]
        for j in range(first, last):
            document = documents[j]
            if votes[document] == 0.0:
                voters[n_voters] = document
                n_voters += 1
            votes[document] += np.float32(1.0 / ((last - first) * len(roots)))
    return n_voters


@kernel()
def tail_similarities(
    data: Floats, indices: Ints, t_data: Floats, t_indices: Ints, t_indptr: Longs, out: Doubles
) -> None:
    """Products of a document, scaled to length 1 with its bias feature, with the mean document of each label."""
    total, bias = 1.0, len(t_indptr) - 2
    for value in data:
        total += np.float64(value) * value
    scale = 1.0 / np.sqrt(total)
    for label in range(len(out)):
        out[label] = 0.0
    for m in range(t_indptr[bias], t_indptr[bias + 1]):
        out[t_indices[m]] += t_data[m] * scale
    for j in range(len(data)):
        for m in range(t_indptr[indices[j]], t_indptr[indices[j] + 1]):
            out[t_indices[m]] += data[j] * scale * t_data[m]


@kernel()
def forest_topk(
    values: Floats, data: Floats, indices: Ints, indptr: Ints, start: int, stop: int, roots: Ints, child: Ints,
    features: Ints, weights: Weights, weight_ptr: Longs, documents: Ints, document_ptr: Longs, labels: Ints,
    label_ptr: Longs, label_weights: Floats, t_data: Floats, t_indices: Ints, t_indptr: Longs, t_norms: Floats,
    alpha: float, gamma: float, out_labels: Ints, out_scores: Floats,
) -> None:  # fmt: skip
    """The k best labels of rows start..stop, by the labels of the documents in their leaves, times a weight per label.

    The trees see ``values``; with ``alpha`` below 1, the tail classifiers see ``data``, and the two scores are mixed.
    """
    x = np.zeros(len(t_indptr) - 1, np.float32)
    x[-1] = 1.0
    votes, voters = np.zeros(len(label_ptr) - 1, np.float32), np.empty(len(label_ptr) - 1, np.int32)
    n_labels = len(label_weights)
    scores, found, similarity = np.zeros(n_labels, np.float32), np.empty(n_labels, np.int32), np.empty(n_labels)
    for row in range(start, stop):
        first, last = indptr[row], indptr[row + 1]
        for j in range(first, last):
            x[indices[j]] = values[j]
        n_voters = leaf_votes(
            x, roots, child, features, weights, weight_ptr, documents, document_ptr, votes, voters
        )  # fmt: skip
        for j in range(first, last):
            x[indices[j]] = 0.0
        n_found = 0
        for document in voters[:n_voters]:
            for j in range(label_ptr[document], label_ptr[document + 1]):
                if scores[labels[j]] == 0.0:
                    found[n_found] = labels[j]
                    n_found += 1
                scores[labels[j]] += votes[document]
            votes[document] = 0.0
        if alpha < 1.0:
            tail_similarities(data[first:last], indices[first:last], t_data, t_indices, t_indptr, similarity)
        size = 0
        for label in found[:n_found]:
            score = np.float64(scores[label] * label_weights[label])
            if alpha < 1.0:
                tail = 1.0 / (1.0 + np.exp(gamma * (t_norms[label] + 1.0 - 2.0 * similarity[label])))
                score = score**alpha * tail ** (1.0 - alpha)
            size = push(out_scores[row], out_labels[row], size, np.float32(score), label)
            scores[label] = 0.0
        sort_best_first(out_scores[row], out_labels[row], size)
