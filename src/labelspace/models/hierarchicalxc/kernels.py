"""Kernels of HierarchicalXC: the targets of node classifiers, and the training of linear ones."""

import numpy as np

from labelspace.kernels.beam_search import Tree
from labelspace.kernels.compiled import kernel
from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.kernels.tree_classifiers import (
    FIRST_WEIGHTS,
    ClassifierOptions,
    NodeScratch,
    count_entries,
    enlarge,
    node_training_set,
    train_children,
)
from labelspace.types import Bools, Floats, Ints, Longs


@kernel()
def classifier_targets(
    Y: CsrArrays, rows: Ints, leaf_of: Ints, parent: Ints, tree: Tree, max_distance: int, distance: Ints
) -> tuple[Floats, Ints, Ints]:
    """Return the targets of a tree's classifiers for some rows of Y, as the arrays of a matrix (rows, n_nodes).

    A row reaches the root and every node above one of its labels. Its entries are the nodes at most ``max_distance``
    steps below a reached node, 1 for reached nodes: with 1 step, the children of reached nodes. ``leaf_of`` (n_labels,)
    is the leaf of a label or -1, ``distance`` (n_nodes,) scratch, all -1 before and after.
    """
    capacity = 1024
    targets, nodes = np.empty(capacity, np.float32), np.empty(capacity, np.int32)
    ends, visited = np.zeros(len(rows) + 1, np.int32), np.empty(len(parent), np.int32)
    size = 0
    for i, row in enumerate(rows):
        distance[0], visited[0], n_visited = 0, 0, 1
        for j in range(Y.indptr[row], Y.indptr[row + 1]):
            node = leaf_of[Y.indices[j]]
            while node > 0 and distance[node] < 0:  # up to a node that is visited already
                distance[node], visited[n_visited] = 0, node
                n_visited, node = n_visited + 1, parent[node]
        pos = 0
        while pos < n_visited:  # breadth first from the reached nodes
            node = visited[pos]
            pos += 1
            if distance[node] < max_distance:
                for child in range(tree.first_child[node], tree.last_child[node]):
                    if distance[child] < 0:
                        distance[child], visited[n_visited] = distance[node] + 1, child
                        n_visited += 1
        if size + n_visited > capacity:
            capacity = 2 * (size + n_visited)
            nodes, targets = enlarge(nodes, targets, size, capacity)
        for node in visited[1:n_visited]:
            nodes[size], targets[size] = node, np.float32(1.0 if distance[node] == 0 else 0.0)
            size += 1
        for node in visited[:n_visited]:
            distance[node] = -1
        ends[i + 1] = size
    return targets[:size], nodes[:size], ends


@kernel()
def leaf_ranges(first_child: Ints, last_child: Ints) -> Longs:
    """Return the leaves below each node as a range of all leaves, numbered depth first. Shape (n_nodes, 2)."""
    out = np.zeros((len(first_child), 2), np.int64)
    for node in range(len(first_child) - 1, -1, -1):  # children have larger numbers
        out[node, 1] = 1 if last_child[node] == 0 else 0
        for child in range(first_child[node], last_child[node]):
            out[node, 1] += out[child, 1]
    for node in range(len(first_child)):
        leaf = out[node, 0]
        out[node, 1] += leaf
        for child in range(first_child[node], last_child[node]):
            out[child, 0] = leaf
            leaf += out[child, 1]
    return out


@kernel()
def train_nodes(
    X: CsrArrays, n_features: int, labels: CsrArrays, cuts: Longs, roots: Bools, options: ClassifierOptions, seed: int
) -> tuple[Ints, Floats, Longs, Floats]:
    """Train the classifiers of many nodes of two children each, in one call; return what ``train_children`` returns.

    Row i of ``cuts`` (nodes, 3) says where the labels of the node's children start and end, as columns of
    ``labels``, which lists the documents of each label (CSC); all documents reach a root.
    """
    new_column, row_index = np.full(n_features, -1, np.int32), np.full(len(X.indptr) - 1, -1, np.int32)
    capacity, size = FIRST_WEIGHTS, 0
    no_negatives = np.zeros(0, np.int32)
    features, weights = np.empty(capacity, np.int32), np.empty(capacity, np.float32)
    stops, biases = np.zeros(2 * len(cuts) + 1, np.int64), np.empty(2 * len(cuts), np.float32)
    for i in range(len(cuts)):
        documents = node_training_set(labels.indices, labels.indptr, cuts[i], roots[i], no_negatives, row_index)
        n_entries = count_entries(X.indptr, documents.rows)
        scratch = NodeScratch(new_column, np.empty(n_entries, np.float32), np.empty(n_entries, np.int32))
        ids, values, node_stops, node_biases = train_children(X, documents, options, seed + i, scratch)
        if size + len(ids) > capacity:
            capacity = 2 * (size + len(ids))
            features, weights = enlarge(features, weights, size, capacity)
        for j in range(len(ids)):
            features[size + j], weights[size + j] = ids[j], values[j]
        for child in range(2):
            stops[2 * i + child + 1], biases[2 * i + child] = size + node_stops[child + 1], node_biases[child]
        size += len(ids)
    return features[:size].copy(), weights[:size].copy(), stops, biases
