"""Classifiers of the tree's nodes: on codes, together with an autoencoder, or linear ones on features."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from labelspace.estimator.state_constraints import IDS, are_sorted_spans, array, ids, must, offsets
from labelspace.kernels.beam_search import Tree
from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.dual_cd import SolverOptions
from labelspace.kernels.threads import run_blocks
from labelspace.kernels.tree_classifiers import ClassifierOptions
from labelspace.labels.tree import TreeNodes
from labelspace.models.hierarchicalxc.kernels import classifier_targets, leaf_ranges, train_nodes
from labelspace.training.autoencoder import SparseDecoder, SparseEncoder
from labelspace.training.dense_layers import append_ones
from labelspace.training.linear_weights import compact_ids, feature_major_weights
from labelspace.training.losses import sigmoid
from labelspace.training.sparse_layers import Batch, SparseLayer
from labelspace.types import Csr, Floats, Ints, Longs, Rng

COUNTED_AT_ONCE = 4096  # documents whose targets are counted at once: bounds the memory
NODE_BLOCK = 64  # nodes per task
BIAS = 1.0  # the value of the bias feature
TOLERANCE = 0.1  # of the linear classifiers, as in LIBLINEAR
MAX_PASSES = 20  # of coordinate descent per node


class NodeTargets:
    """The nodes that a row of Y trains, with target 1 or 0; documents are followed ``off_path`` steps off their paths.

    The tree is over columns of Y.
    """

    def __init__(self, tree: TreeNodes, Y: Csr, off_path: int) -> None:
        self.tree, self.Y = tree, Y
        self.max_distance = off_path + 1  # steps down from a node on the path to the farthest node that is trained
        self.leaf_of = np.full(Y.shape[1], -1, np.int32)  # -1 for a label that is not in the tree
        leaves = np.flatnonzero(tree.label >= 0).astype(np.int32)
        self.leaf_of[tree.label[leaves]] = leaves
        self.nodes = (self.leaf_of, tree.parent, Tree(tree.first_child, tree.last_child, tree.label))
        self.mark = np.full(len(tree), -1, np.int32)  # scratch

    def of_rows(self, rows: Ints) -> Batch:
        """Return a CSR matrix (rows, n_nodes): for each row the nodes to train, 1 for nodes on its paths, else 0."""
        targets: Batch = classifier_targets(csr_arrays(self.Y), rows, *self.nodes, self.max_distance, self.mark)
        return targets

    def log_odds(self) -> Floats:
        """Return the log-odds that a node is on the path of a document on which it is trained. Shape (n_nodes,)."""
        positives, examples = np.zeros(len(self.tree)), np.zeros(len(self.tree))
        for start in range(0, self.Y.shape[0], COUNTED_AT_ONCE):
            rows = np.arange(start, min(start + COUNTED_AT_ONCE, self.Y.shape[0]), dtype=np.int32)
            targets, nodes, _ = self.of_rows(rows)
            examples += np.bincount(nodes, minlength=len(examples))
            positives += np.bincount(nodes, targets, minlength=len(examples))
        return np.asarray(np.log((positives + 0.5) / (examples - positives + 0.5)), np.float32)


@dataclass
class CodeNet:
    """Training on codes: an autoencoder of documents, and a classifier on its code for each node."""

    encoder: SparseEncoder
    decoder: SparseDecoder
    classifiers: SparseLayer  # (n_nodes, code + 1), the bias last
    targets: NodeTargets
    n_steps: int = 0

    def descend_classifiers(self, code: Floats, rows: Ints, learning_rate: float) -> Floats:
        """Update the classifiers on the cross-entropy, summed over nodes of a row; return the gradient by the code."""
        targets, nodes, ends = self.targets.of_rows(rows)
        inputs = append_ones(code)
        errors = sigmoid(self.classifiers.entry_scores((targets, nodes, ends), inputs)) - targets
        errors /= np.float32(len(rows))
        batch: Batch = (errors, nodes, ends)
        gradient = self.classifiers.embed(batch, np.zeros(inputs.shape[1], np.float32))[:, :-1]
        self.classifiers.backward(batch, inputs, learning_rate)
        return gradient


def init_classifiers(targets: NodeTargets, code_dim: int, prior_bias: bool, rng: Rng) -> SparseLayer:
    """Draw random weights, with biases at the log-odds of each node or at 0."""
    classifiers = SparseLayer(rng.standard_normal((len(targets.tree), code_dim + 1), np.float32))
    classifiers.vectors *= np.float32(code_dim**-0.5)
    classifiers.vectors[:, -1] = targets.log_odds() if prior_bias else 0
    return classifiers


class LinearClassifiers(NamedTuple):
    """Sparse weights of all nodes: feature f has ``values[starts[f] : starts[f + 1]]`` for the nodes at this slice."""

    values: Annotated[Floats, array("float32", "n_weights")]
    nodes: Annotated[Ints, ids("n_weights", below="n_nodes", dtypes=IDS)]
    starts: Annotated[Ints, offsets("n_features", into="n_weights")]
    bias: Annotated[Floats, array("float32", "n_nodes")]

    def check_state(self) -> None:
        """Check the order of a feature's nodes, on which the search relies."""
        must(are_sorted_spans(self.nodes, self.starts), "the nodes of each feature in order")


def train_linear_classifiers(
    X: Csr, Y: Csr, tree: TreeNodes, C: float, threshold: float, random_state: int, progress: Callable[[int, int], None]
) -> LinearClassifiers:
    """Train a logistic classifier of each node except the root, by dual coordinate descent, many nodes per pass.

    Y has a column for each label of the tree.
    """
    if tree.n_labels == 1:  # nothing to learn
        empty = np.zeros(X.shape[1] + 1, np.int32)
        return LinearClassifiers(np.zeros(0, np.float32), empty[:0], empty, np.zeros(len(tree), np.float32))
    bounds = leaf_ranges(tree.first_child, tree.last_child)
    leaves = np.flatnonzero(tree.label >= 0)
    order = tree.label[leaves[np.argsort(bounds[leaves, 0])]]
    rows, positives = csr_arrays(X), csr_arrays(Y[:, order].tocsc())
    inner = np.flatnonzero(tree.label < 0)
    first = tree.first_child[inner]
    cuts = np.stack([bounds[first, 0], bounds[first + 1, 0], bounds[first + 1, 1]], axis=1)
    blocks = node_blocks(len(inner))
    trained: dict[int, tuple[Ints, Floats, Longs, Floats]] = {}

    options = ClassifierOptions(True, BIAS, SolverOptions(C, TOLERANCE, MAX_PASSES), threshold, np.ones(X.shape[0]))

    def train(start: int, stop: int) -> None:
        for at in range(start, stop):
            part = slice(*blocks[at])
            nodes = (cuts[part], inner[part] == 0)
            trained[at] = train_nodes(rows, X.shape[1], positives, *nodes, options, random_state + part.start)

    run_blocks(train, len(blocks), 1, progress)
    # Children are numbered in the order of their parents, so block after block gives all nodes except the root.
    features, weights, ends, biases = zip(*(trained[at] for at in range(len(blocks))), strict=True)
    sizes = np.concatenate([[0], *map(np.diff, ends)])
    W = feature_major_weights(list(zip(features, weights, strict=True)), X.shape[1], sizes)
    bias = np.concatenate([np.zeros(1, np.float32), *biases])
    return LinearClassifiers(W.data, compact_ids(W.indices, len(sizes)), W.indptr, bias)


def node_blocks(n: int) -> list[tuple[int, int]]:
    """Split nodes by pass: one, one, two, four, and so on, since most documents are examples of the first nodes.

    >>> node_blocks(5)
    [(0, 1), (1, 2), (2, 4), (4, 5)]
    """
    doubling = [0, *(2**i for i in range(NODE_BLOCK.bit_length() - 1))]
    starts = [start for start in doubling if start < n] + list(range(NODE_BLOCK, n, NODE_BLOCK))
    return list(zip(starts, [*starts[1:], n], strict=True))
