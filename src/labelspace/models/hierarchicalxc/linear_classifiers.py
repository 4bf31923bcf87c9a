"""HierarchicalXC on features: linear classifiers of the nodes by dual coordinate descent, many nodes per pass."""

from collections.abc import Callable
from typing import Annotated, NamedTuple

import numpy as np

from labelspace.estimator.state_constraints import IDS, are_sorted_spans, array, ids, must, offsets
from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.dual_cd import SolverOptions
from labelspace.kernels.threads import run_blocks
from labelspace.kernels.tree_classifiers import ClassifierOptions
from labelspace.labels.tree import TreeNodes
from labelspace.models.hierarchicalxc.kernels import leaf_ranges, train_nodes
from labelspace.training.linear_weights import compact_ids, feature_major_weights
from labelspace.types import Csr, Floats, Ints, Longs

NODE_BLOCK = 64  # nodes per task
BIAS = 1.0  # the bias feature
TOLERANCE, MAX_PASSES = 0.1, 20


class LinearClassifiers(NamedTuple):
    """Sparse weights of all nodes: feature f has ``values[starts[f] : starts[f + 1]]`` for the nodes at this slice."""

    values: Annotated[Floats, array("float32", "n_weights")]
    nodes: Annotated[Ints, ids("n_weights", below="n_nodes", dtypes=IDS)]
    starts: Annotated[Ints, offsets("n_features", into="n_weights")]
    bias: Annotated[Floats, array("float32", "n_nodes")]

    def check_state(self) -> None:
        """The search relies on the order of a feature's nodes."""
        must(are_sorted_spans(self.nodes, self.starts), "the nodes of each feature in order")


def train_linear_classifiers(
    X: Csr, Y: Csr, tree: TreeNodes, C: float, threshold: float, random_state: int, progress: Callable[[int, int], None]
) -> LinearClassifiers:
    """A logistic classifier of each node but the root; Y has a column for each label of the tree."""
    if tree.n_labels == 1:  # nothing to learn
        empty = np.zeros(X.shape[1] + 1, np.int32)
        return LinearClassifiers(np.zeros(0, np.float32), empty[:0], empty, np.zeros(len(tree), np.float32))
    bounds = leaf_ranges(tree.first_child, tree.last_child)
    order = np.empty(tree.n_labels, np.int32)
    leaves = np.flatnonzero(tree.label >= 0)
    order[bounds[leaves, 0]] = tree.label[leaves]
    documents, inner = Y[:, order].tocsc(), np.flatnonzero(tree.label < 0)
    first = tree.first_child[inner]
    cuts = np.stack([bounds[first, 0], bounds[first + 1, 0], bounds[first + 1, 1]], axis=1)
    blocks = node_blocks(len(inner))
    trained: dict[int, tuple[Ints, Floats, Longs, Floats]] = {}
    options = ClassifierOptions(True, BIAS, SolverOptions(C, TOLERANCE, MAX_PASSES), threshold)

    def train(start: int, stop: int) -> None:
        for at in range(start, stop):
            part = slice(*blocks[at])
            trained[at] = train_nodes(
                csr_arrays(X),
                X.shape[1],
                documents.indices,
                documents.indptr,
                cuts[part],
                inner[part] == 0,
                options,
                random_state + blocks[at][0],
            )

    run_blocks(train, len(blocks), 1, progress)
    # Children are numbered in the order of their parents, so block after block gives all nodes but the root.
    features, weights, ends, biases = zip(*(trained[at] for at in range(len(blocks))), strict=True)
    sizes = np.concatenate([[0], *map(np.diff, ends)])
    W = feature_major_weights(list(zip(features, weights, strict=True)), X.shape[1], sizes)
    bias = np.concatenate([np.zeros(1, np.float32), *biases])
    return LinearClassifiers(W.data, compact_ids(W.indices, len(sizes)), W.indptr, bias)


def node_blocks(n: int) -> list[tuple[int, int]]:
    """Nodes to train per pass: one, one, two, four, and so on, since most documents are examples of the first nodes.

    >>> node_blocks(5)
    [(0, 1), (1, 2), (2, 4), (4, 5)]
    """
    doubling = [0, *(2**i for i in range(NODE_BLOCK.bit_length() - 1))]
    starts = [start for start in doubling if start < n] + list(range(NODE_BLOCK, n, NODE_BLOCK))
    return list(zip(starts, [*starts[1:], n], strict=True))
