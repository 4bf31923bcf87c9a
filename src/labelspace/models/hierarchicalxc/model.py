"""HierarchicalXC: a binary tree of labels that share documents, with a classifier for each way down.

Srinivasan, Rao and Agarwal, "Extreme Classification using Autoencoders" (section 4).

1. Two labels are as alike as the documents they share are many, or with ``similarity="iou"`` as large a part of the
   documents of either. Complete-link clustering makes a binary tree of that (models/hierarchicalxc/dendrogram.py); ``ties`` says
   how clusters that share nothing are joined, and ``balance`` whether a chain-like tree is folded.
2. A document reaches the root and every node above one of its labels. The classifier of a child learns from the
   documents that reach its parent: those that reach the child against the others. Documents also go ``off_path``: they
   are followed so many steps off their ways, where every child is wrong.
3. ``input="code"``: a document is the code of an autoencoder, alpha |psi(phi(x)) - x|^2, and all classifiers learn at
   once, on the ways of a batch: a matrix (batch, nodes) with few entries, whatever the height of the tree.
   ``training="staged"``: the autoencoder first, then the classifiers on its codes; ``"pretrained"``: the same
   beginning, then all together; ``"joint"``: all from the start.
4. ``input="features"``: linear classifiers on the document's features by dual coordinate descent, many nodes a pass.
5. To tag a document, walk down from the root and keep the ``beam_size`` best nodes of each level. None, one or both children
   are followed: those with a chance of ``follow_threshold`` or more. A label's score is the product of the chances on its path.

Where we differ, and why: the authors take what the classifiers answer, yes or no, for the result, so that labels have
no order; the product of chances ranks them. ``follow_threshold=0.5`` is their rule, but a right label behind one doubtful step is
lost with it. A document that reaches a node has a label below it, so without those that went astray no classifier would
ever see that none of two children is right. Complete link leaves most clusters tied, and joined in the order of their
numbers they are a chain: see ``ties``. In joint training the code learns what the classifiers need; a code that was
made to reconstruct words alone is the weaker one (docs/methods/hierarchicalxc.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from labelspace.constraints import integer, layer_sizes, one_of, optional, parse_layer_sizes, real
from labelspace.estimator import learned, param
from labelspace.features.normalize import normalize_rows
from labelspace.kernels.beam_search import beam_search, dense_beam_search
from labelspace.kernels.quantize import Bytes, quantize_int8
from labelspace.kernels.threads import run_blocks
from labelspace.kernels.tree_classifiers import decisions, spans, train_nodes
from labelspace.labels.tree import Nodes
from labelspace.models.base import Model
from labelspace.models.fit_context import FitContext
from labelspace.models.hierarchicalxc.dendrogram import (
    MEASURES,
    TIES,
    balanced,
    complete_link,
    label_similarity,
    to_nodes,
)
from labelspace.training.autoencoder import (
    LearningRates,
    QuantizedEncoder,
    SparseDecoder,
    SparseEncoder,
    TrainingPhase,
    phases,
)
from labelspace.training.dense_layers import ACTIVATIONS, flatten_layers, layer_chain
from labelspace.training.epochs import batch_schedule, batches
from labelspace.training.linear_weights import compact_ids, feature_major
from labelspace.training.losses import sigmoid
from labelspace.training.negative_sampling import seen_labels
from labelspace.training.output_layer import append_ones
from labelspace.training.sparse_layers import Batch, SparseLayer, batch_rows
from labelspace.types import Csr, Floats, Ints, Longs, TopK

STEPS = 500  # batches that suffice to learn
EPOCHS = (6, 15)  # fewest and most that are chosen
ROW_BLOCK = 64  # documents a task
NODE_BLOCK = 64  # nodes a task
BIAS = 1.0  # of the classifiers on features
TOLERANCE, MAX_PASSES = 0.1, 20
COUNTED = 4096  # documents whose ways are counted at a time
LOGISTIC = 0.0  # what the search takes for the link
ROOT: Ints = np.zeros(1, np.int32)
NO_NODES: tuple[Ints, Floats, Longs, Floats] = (
    np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(1, np.int64), np.zeros(0, np.float32)
)  # fmt: skip


class HierarchicalXC(Model):
    """Classifiers along a binary tree of labels that share documents.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=600, d=400, l=50, seed=1)
    >>> train, test = data.rows(range(500)), data.rows(range(500, 600))
    >>> model = HierarchicalXC().fit(train.X, train.Y)
    >>> first = model.predict_topk(test.X, k=1).labels[:, 0]
    >>> bool(test.Y[np.arange(100), first].mean() > 0.5)
    True
    """

    name = "hierarchicalxc"
    title = "HierarchicalXC: a binary tree of co-occurring labels (Srinivasan et al.)"
    choose_when = "you compare with the paper, or want to see and use a tree of your labels"
    similarity: str = param(
        "iou", one_of(*MEASURES), "Similarity of labels: shared documents, or intersection over union."
    )
    ties: str = param("average", one_of(*TIES), "How clusters that share no documents are joined.")
    balance: str = param("auto", one_of("auto", "always", "never"), "Whether a chain-like tree is rebalanced.")
    input: str = param(
        "code", one_of("code", "features"), "What the node classifiers read: the autoencoder's code, or the features."
    )
    input_layers: int | str = param(512, layer_sizes(), "Units from the features to the code, the last being the code.")
    activation: str = param("relu", one_of(*ACTIVATIONS), "Activation function of hidden layers.")
    input_code: str = param("linear", one_of(*ACTIVATIONS), "Activation function of the document code.")
    alpha: float = param(1.0, real(at_least=0), "Weight of the reconstruction of documents.")
    training: str = param(
        "joint",
        one_of("joint", "staged", "pretrained"),
        "Joint from the start, staged (autoencoders first), or pretrained (autoencoders first, then all).",
    )
    epochs: int | None = param(
        None, optional(integer(1)), "Number of epochs; none chooses it by the number of documents."
    )
    batch_size: int = param(256, integer(1), "Maximum batch size.")
    learning_rate: float = param(0.003, real(above=0), "Learning rate.")
    feature_learning_rate: float = param(0.1, real(above=0), "Learning rate of the feature embeddings.")
    node_learning_rate: float = param(0.03, real(above=0), "Learning rate of the node classifiers.")
    dropout: float = param(0.1, real(at_least=0, below=1), "Share of hidden units dropped in training.")
    input_dropout: float = param(0.0, real(at_least=0, below=1), "Share of a document's features dropped in training.")
    n_sampled_features: int = param(2048, integer(1), "Absent features sampled per batch in the reconstruction loss.")
    off_path: int = param(1, integer(0), "Steps that training documents are followed off their paths, as negatives.")
    C: float = param(10.0, real(above=0), "Inverse regularization strength of the linear classifiers.")
    threshold: float = param(0.1, real(at_least=0), "Weights smaller than this are set to zero.")
    beam_size: int = param(20, integer(1), "Nodes or prefixes kept at each level of the search.")
    follow_threshold: float = param(
        0.0, real(at_least=0, below=1), "Minimum probability of a child to be followed in the search."
    )
    random_state: int = param(0, integer(0), "Seed of everything drawn at random.")

    first_child_: Ints = learned()  # (n_nodes,) see labels/tree.py
    last_child_: Ints = learned()
    label_: Ints = learned()
    similarity_: Floats = learned()  # (n_nodes,)
    vectors_: Bytes = learned()  # (n_features, width) the encoder's; this and the next five for ``input="code"``
    vector_scales_: Floats = learned()  # (n_features,)
    offset_: Floats = learned()  # (width,)
    dense_: Floats = learned()  # see training/dense_layers.py
    node_weights_: Bytes = learned()  # (n_nodes, code)
    node_scales_: Floats = learned()  # (n_nodes,)
    values_: Floats = (
        learned()
    )  # for ``input="features"``: feature f has values_[starts_[f] : starts_[f + 1]] for those nodes_
    nodes_: Ints = learned()
    starts_: Ints = learned()  # (n_features + 1,)
    bias_: Floats = learned()  # (n_nodes,)
    error_: float | None = (
        learned()
    )  # of the reconstruction of a document, whose length is 1; None without an autoencoder

    def _fit(self, X: Csr, Y: Csr, context: FitContext) -> None:
        X, seen = normalize_rows(X), seen_labels(Y)
        context.progress("tree", 0, 1)
        tree = self._grow(Y[:, seen])  # step 1
        context.progress("tree", 1, 1)
        self.first_child_, self.last_child_ = tree.first_child, tree.last_child
        self.label_ = np.where(tree.label < 0, -1, seen[tree.label]).astype(np.int32)
        missing = np.full(len(tree), np.nan, np.float32)
        self.similarity_ = missing if tree.similarity is None else tree.similarity
        self._keep_nothing(X.shape[1])
        if self.input == "code":
            self._fit_code(X, Y, context)  # step 3
        else:
            self._fit_features(X, Y[:, seen], tree, context)  # step 4

    def _grow(self, Y: Csr) -> Nodes:
        """The tree over the columns of Y."""
        tree = complete_link(label_similarity(Y, self.similarity), self.ties)
        folded = self.balance == "always" or (self.balance == "auto" and tree.is_chain())
        return to_nodes(balanced(tree) if folded else tree)

    def _keep_nothing(self, n_features: int) -> None:
        """The parts that the other kind of input needs."""
        none, empty = np.zeros(0, np.float32), np.zeros(0, np.int32)
        self.vectors_, self.vector_scales_ = np.zeros((n_features, 0), np.int8), np.zeros(n_features, np.float32)
        self.offset_, self.dense_, self.node_scales_ = none, none, none
        self.node_weights_ = np.zeros((len(self.label_), 0), np.int8)
        self.values_, self.nodes_, self.starts_ = none, empty, np.zeros(n_features + 1, np.int32)
        self.bias_, self.error_ = np.zeros(len(self.label_), np.float32), None

    def _fit_code(self, X: Csr, Y: Csr, context: FitContext) -> None:
        rng = np.random.default_rng(self.random_state)
        layers, ways = parse_layer_sizes(self.input_layers), NodeTargets.of(self._tree, Y, self.off_path)
        encoder = SparseEncoder.random(X, layers, self.activation, self.input_code, rng)
        decoder = SparseDecoder.random(X, layers[::-1], self.activation, self.n_sampled_features, rng)
        nodes = SparseLayer(rng.standard_normal((len(self.label_), layers[-1] + 1), np.float32))
        nodes.vectors *= np.float32(layers[-1] ** -0.5)
        nodes.vectors[:, -1] = ways.log_odds()
        net = Net(encoder, decoder, nodes, ways)
        batch, epochs = batch_schedule(X.shape[0], self.batch_size, self.epochs, STEPS, EPOCHS)
        plan = phases(self.training, self.alpha)
        with threadpool_limits(1, user_api="blas"):
            for number, phase in enumerate(plan):
                for rows, left in batches(X.shape[0], batch, epochs, rng, context.progress, number, len(plan)):
                    self._step(net, phase, X, rows, left, rng)
        self.vectors_, self.vector_scales_ = quantize_int8(encoder.features.vectors)
        self.offset_, self.dense_ = encoder.offset.value, flatten_layers(encoder.stack.layers)
        self.node_weights_, self.node_scales_ = quantize_int8(nodes.vectors[:, :-1])
        self.bias_, self.error_ = nodes.vectors[:, -1].copy(), decoder.error()

    def _step(self, net: Net, phase: TrainingPhase, X: Csr, rows: Ints, left: float, rng: np.random.Generator) -> None:
        """The autoencoder and the classifiers on some rows; ``left`` is the share of the rates that is left."""
        net.n_steps += 1
        of_features = self.feature_learning_rate if phase.classify else self.learning_rate  # a code alone needs no more
        rates = LearningRates(self.learning_rate * left, of_features * left, net.n_steps)
        trace = net.encoder.forward(batch_rows(X, rows, self.input_dropout, rng), self.dropout, rng)
        by_code = np.zeros_like(trace.code)
        if phase.classify:
            by_code += net.decide(trace.code, rows, self.node_learning_rate * left)
        if phase.alpha:
            target = batch_rows(X, rows, 0.0, rng)
            by_code += net.decoder.descend(trace.code, target, phase.alpha / len(rows), rates, rng)
        if not phase.freeze_codes:
            net.encoder.backward(trace, by_code, rates)

    def _fit_features(self, X: Csr, Y: Csr, tree: Nodes, context: FitContext) -> None:
        """Classifiers on the features; Y has a column for each label of the tree."""
        if tree.n_labels == 1:
            return  # nothing to decide
        bounds = spans(tree.first_child, tree.last_child)
        order = np.empty(tree.n_labels, np.int32)
        leaves = np.flatnonzero(tree.label >= 0)
        order[bounds[leaves, 0]] = tree.label[leaves]
        below, inner = Y[:, order].tocsc(), np.flatnonzero(tree.label < 0)
        first = tree.first_child[inner]
        cuts = np.stack([bounds[first, 0], bounds[first + 1, 0], bounds[first + 1, 1]], axis=1)
        blocks = node_blocks(len(inner))
        kept: list[tuple[Ints, Floats, Longs, Floats]] = [NO_NODES] * len(blocks)

        def train(start: int, stop: int) -> None:
            for at in range(start, stop):
                part = slice(*blocks[at])
                kept[at] = train_nodes(
                    X.data, X.indices, X.indptr, X.shape[1], below.indices, below.indptr, cuts[part], inner[part] == 0,
                    True, BIAS, float(self.C), TOLERANCE, MAX_PASSES, float(self.threshold), self.random_state + blocks[at][0],
                )  # fmt: skip

        run_blocks(train, len(blocks), 1, partial(context.progress, "nodes"))
        # Children are numbered in the order of their parents, so block after block gives all nodes but the root.
        sizes = np.concatenate([[0], *(np.diff(stops) for _, _, stops, _ in kept)])
        W = feature_major([(features, weights) for features, weights, _, _ in kept], X.shape[1], sizes)
        self.values_, self.nodes_, self.starts_ = W.data, compact_ids(W.indices, len(sizes)), W.indptr
        self.bias_ = np.concatenate([np.zeros(1, np.float32), *(biases for _, _, _, biases in kept)])

    @property
    def _tree(self) -> Nodes:
        return Nodes(self.first_child_, self.last_child_, self.label_, self.similarity_)

    def label_trees(self) -> list[Nodes]:
        """The tree; a label without training documents is not in it."""
        self.check_fitted()
        return [self._tree]

    def report(self) -> dict[str, Any]:
        """How the tree is built, and how well a document can be told from its code."""
        self.check_fitted()
        tree = self._tree
        depth = float(tree.level[tree.label >= 0].mean())
        return {
            "tree_height": tree.height,
            "tree_balance": round(tree.balance, 4),
            "tree_mean_depth": round(depth, 2),
            "tree_is_a_chain": tree.is_chain,
            "reconstruction_error": self.error_,
        }

    def _predict(self, X: Csr, k: int) -> TopK:
        X = normalize_rows(X)
        out = TopK.empty(X.shape[0], k)
        least = (
            float(np.float32(np.log(self.follow_threshold))) if self.follow_threshold else -np.inf
        )  # as steps are rounded
        tree = (self.first_child_, self.last_child_, self.label_)
        if self.input == "features":

            def search(start: int, stop: int) -> None:
                beam_search(
                    X.data, X.indices, X.indptr, start, stop, self.values_, self.nodes_, self.starts_, self.bias_,
                    *tree, ROOT, self.beam_size, LOGISTIC, least, out.labels, out.scores,
                )  # fmt: skip

        else:
            chain = layer_chain(parse_layer_sizes(self.input_layers), self.activation, self.input_code)
            encode = QuantizedEncoder(self.vectors_, self.vector_scales_, self.offset_, self.dense_, chain)

            def search(start: int, stop: int) -> None:
                dense_beam_search(
                    encode(X, start, stop), self.node_weights_, self.node_scales_, self.bias_, *tree, self.beam_size,
                    LOGISTIC, least, out.labels[start:stop], out.scores[start:stop],
                )  # fmt: skip

        run_blocks(search, X.shape[0], ROW_BLOCK)  # step 5
        return out


def node_blocks(n: int) -> list[tuple[int, int]]:
    """Nodes to train in one pass: one, one, two, four, and so on, since the first ones are reached by most documents.

    >>> node_blocks(5)
    [(0, 1), (1, 2), (2, 4), (4, 5)]
    """
    doubling = [0, *(2**i for i in range(NODE_BLOCK.bit_length() - 1))]
    starts = [start for start in doubling if start < n] + list(range(NODE_BLOCK, n, NODE_BLOCK))
    return list(zip(starts, [*starts[1:], n], strict=True))


@dataclass
class NodeTargets:
    """What the classifiers of a tree have to learn from the rows of Y."""

    tree: Nodes
    Y: Csr
    off_path: int  # steps that a row is followed off its ways, and one more
    leaf_of: Ints  # (n_labels,) -1 for a label that is not in the tree
    mark: Ints  # (n_nodes,) scratch

    @classmethod
    def of(cls, tree: Nodes, Y: Csr, off_path: int) -> NodeTargets:
        """The labels of the tree are columns of Y."""
        leaf_of = np.full(Y.shape[1], -1, np.int32)
        leaves = np.flatnonzero(tree.label >= 0).astype(np.int32)
        leaf_of[tree.label[leaves]] = leaves
        return cls(tree, Y, off_path + 1, leaf_of, np.full(len(tree), -1, np.int32))

    def of_rows(self, rows: Ints) -> Batch:
        """The children of all nodes that each row reaches, with 1 for those that it reaches too."""
        found: Batch = decisions(
            self.Y.indices, self.Y.indptr, rows, self.leaf_of, self.tree.parent, self.tree.first_child,
            self.tree.last_child, self.off_path, self.mark,
        )  # fmt: skip
        return found

    def log_odds(self) -> Floats:
        """Of reaching each node for a document that reaches its parent. Shape (n_nodes,)."""
        reached, asked = np.zeros(len(self.tree)), np.zeros(len(self.tree))
        for start in range(0, self.Y.shape[0], COUNTED):
            rows = np.arange(start, min(start + COUNTED, self.Y.shape[0]), dtype=np.int32)
            targets, nodes, _ = self.of_rows(rows)
            asked += np.bincount(nodes, minlength=len(asked))
            reached += np.bincount(nodes, targets, minlength=len(asked))
        odds: Floats = np.log((reached + 0.5) / (asked - reached + 0.5)).astype(np.float32)
        return odds


@dataclass
class Net:
    """The autoencoder and the classifiers while they learn."""

    encoder: SparseEncoder
    decoder: SparseDecoder
    nodes: SparseLayer  # (n_nodes, code + 1)
    ways: NodeTargets
    n_steps: int = 0  # steps begun

    def decide(self, code: Floats, rows: Ints, rate: float) -> Floats:
        """Move the classifiers on cross-entropy, summed over the ways of a row; the gradient by the code."""
        targets, nodes, ends = self.ways.of_rows(rows)
        hidden = append_ones(code)
        errors = sigmoid(self.nodes.at((targets, nodes, ends), hidden)) - targets
        errors /= np.float32(len(rows))
        batch: Batch = (errors, nodes, ends)
        gradient = self.nodes.embed(batch, np.zeros(hidden.shape[1], np.float32))[:, :-1]
        self.nodes.descend(batch, hidden, rate)
        return gradient
