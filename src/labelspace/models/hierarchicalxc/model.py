"""HierarchicalXC: a binary tree of labels that share documents, with a classifier for each way down.

Srinivasan, Rao and Agarwal, "Extreme Classification using Autoencoders" (section 4).

1. Two labels are as alike as the documents they share are many, or with ``similarity="iou"`` as large a part of the
   documents of either. Complete-link clustering makes a binary tree of that (models/hierarchicalxc/dendrogram.py); ``ties`` says
   how clusters that share nothing are joined, and ``balance`` whether a chain-like tree is folded.
2. A document reaches the root and every node above one of its labels. The classifier of a child learns from the
   documents that reach its parent: those that reach the child against the others. Documents also go ``astray``: they
   are followed so many steps off their ways, where every child is wrong.
3. ``input="code"``: a document is the code of an autoencoder, alpha |psi(phi(x)) - x|^2, and all classifiers learn at
   once, on the ways of a batch: a matrix (batch, nodes) with few entries, whatever the height of the tree.
   ``training="staged"``: the autoencoder first, then the classifiers on its codes; ``"pretrained"``: the same
   beginning, then all together; ``"joint"``: all from the start.
4. ``input="features"``: linear classifiers on the document's features by dual coordinate descent, many nodes a pass.
5. To tag a document, walk down from the root and keep the ``beam`` best nodes of each level. None, one or both children
   are followed: those with a chance of ``follow`` or more. A label's score is the product of the chances on its path.

Where we differ, and why: the authors take what the classifiers answer, yes or no, for the result, so that labels have
no order; the product of chances ranks them. ``follow=0.5`` is their rule, but a right label behind one doubtful step is
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

from labelspace.estimator import above, at_least, listed_widths, one_of, optional, share, whole, widths
from labelspace.features.normalize import unit_rows
from labelspace.kernels.beam_search import beam_search, dense_beam_search
from labelspace.kernels.quantize import Bytes, in_bytes
from labelspace.kernels.threads import run_blocks
from labelspace.kernels.tree_classifiers import decisions, spans, train_nodes
from labelspace.labels.tree import Nodes
from labelspace.models.base import Aids, Model
from labelspace.models.hierarchicalxc.dendrogram import (
    MEASURES,
    TIES,
    balanced,
    complete_link,
    label_likeness,
    to_nodes,
)
from labelspace.training.autoencoder import Phase, Rates, SparseDecoder, SparseEncoder, StoredEncoder, phases
from labelspace.training.dense_layers import ACTIVATIONS, chain_of, flattened
from labelspace.training.early_stopping import batches, portions
from labelspace.training.linear_weights import by_features, short_numbers
from labelspace.training.losses import sigmoid
from labelspace.training.negative_sampling import labels_seen
from labelspace.training.output_layer import with_ones
from labelspace.training.sparse_layers import Batch, SparseLayer, some_rows
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
    text_features = {"ngrams": 1}
    rules = {
        "similarity": one_of(*MEASURES),
        "ties": one_of(*TIES),
        "balance": one_of("auto", "always", "never"),
        "input": one_of("code", "features"),
        "input_layers": widths(),
        "activation": one_of(*ACTIVATIONS),
        "input_code": one_of(*ACTIVATIONS),
        "alpha": at_least(0),
        "training": one_of("joint", "staged", "pretrained"),
        "epochs": optional(whole(1)),
        "batch": whole(1),
        "rate": above(0),
        "feature_rate": above(0),
        "node_rate": above(0),
        "dropout": share,
        "input_dropout": share,
        "drawn": whole(1),
        "astray": whole(0),
        "C": above(0),
        "threshold": at_least(0),
        "beam": whole(1),
        "follow": share,
        "seed": whole(0),
    }
    state = (
        "first_child_", "last_child_", "label_", "similarity_", "vectors_", "vector_scales_", "offset_", "dense_",
        "node_weights_", "node_scales_", "values_", "nodes_", "starts_", "bias_", "error_",
    )  # fmt: skip

    first_child_: Ints  # (n_nodes,) see labels/tree.py
    last_child_: Ints
    label_: Ints
    similarity_: Floats  # (n_nodes,)
    vectors_: Bytes  # (n_features, width) the encoder's; this and the next five for ``input="code"``
    vector_scales_: Floats  # (n_features,)
    offset_: Floats  # (width,)
    dense_: Floats  # see training/dense_layers.py
    node_weights_: Bytes  # (n_nodes, code)
    node_scales_: Floats  # (n_nodes,)
    values_: Floats  # for ``input="features"``: feature f has values_[starts_[f] : starts_[f + 1]] for those nodes_
    nodes_: Ints
    starts_: Ints  # (n_features + 1,)
    bias_: Floats  # (n_nodes,)
    error_: float | None  # of the reconstruction of a document, whose length is 1; None without an autoencoder

    def __init__(
        self,
        similarity: str = "iou",
        ties: str = "average",
        balance: str = "auto",
        input: str = "code",
        input_layers: int | str = 512,
        activation: str = "relu",
        input_code: str = "linear",
        alpha: float = 1.0,
        training: str = "joint",
        epochs: int | None = None,
        batch: int = 256,
        rate: float = 0.003,
        feature_rate: float = 0.1,
        node_rate: float = 0.03,
        dropout: float = 0.1,
        input_dropout: float = 0.0,
        drawn: int = 2048,
        astray: int = 1,
        C: float = 10.0,
        threshold: float = 0.1,
        beam: int = 20,
        follow: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.similarity = similarity
        self.ties = ties
        self.balance = balance
        self.input = input
        self.input_layers = input_layers
        self.activation = activation
        self.input_code = input_code
        self.alpha = alpha
        self.training = training
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.feature_rate = feature_rate
        self.node_rate = node_rate
        self.dropout = dropout
        self.input_dropout = input_dropout
        self.drawn = drawn
        self.astray = astray
        self.C = C
        self.threshold = threshold
        self.beam = beam
        self.follow = follow
        self.seed = seed

    def _fit(self, X: Csr, Y: Csr, aids: Aids) -> None:
        X, seen = unit_rows(X), labels_seen(Y)
        aids.progress("tree", 0, 1)
        tree = self._grow(Y[:, seen])  # step 1
        aids.progress("tree", 1, 1)
        self.first_child_, self.last_child_ = tree.first_child, tree.last_child
        self.label_ = np.where(tree.label < 0, -1, seen[tree.label]).astype(np.int32)
        missing = np.full(len(tree), np.nan, np.float32)
        self.similarity_ = missing if tree.similarity is None else tree.similarity
        self._keep_nothing(X.shape[1])
        if self.input == "code":
            self._fit_code(X, Y, aids)  # step 3
        else:
            self._fit_features(X, Y[:, seen], tree, aids)  # step 4

    def _grow(self, Y: Csr) -> Nodes:
        """The tree over the columns of Y."""
        tree = complete_link(label_likeness(Y, self.similarity), self.ties)
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

    def _fit_code(self, X: Csr, Y: Csr, aids: Aids) -> None:
        rng = np.random.default_rng(self.seed)
        layers, ways = listed_widths(self.input_layers), Ways.of(self._tree, Y, self.astray)
        encoder = SparseEncoder.random(X, layers, self.activation, self.input_code, rng)
        decoder = SparseDecoder.random(X, layers[::-1], self.activation, self.drawn, rng)
        nodes = SparseLayer(rng.standard_normal((len(self.label_), layers[-1] + 1), np.float32))
        nodes.vectors *= np.float32(layers[-1] ** -0.5)
        nodes.vectors[:, -1] = ways.log_odds()
        net = Net(encoder, decoder, nodes, ways)
        batch, epochs = portions(X.shape[0], self.batch, self.epochs, STEPS, EPOCHS)
        plan = phases(self.training, self.alpha)
        with threadpool_limits(1, user_api="blas"):
            for number, phase in enumerate(plan):
                for rows, left in batches(X.shape[0], batch, epochs, rng, aids.progress, number, len(plan)):
                    self._step(net, phase, X, rows, left, rng)
        self.vectors_, self.vector_scales_ = in_bytes(encoder.features.vectors)
        self.offset_, self.dense_ = encoder.offset.value, flattened(encoder.stack.layers)
        self.node_weights_, self.node_scales_ = in_bytes(nodes.vectors[:, :-1])
        self.bias_, self.error_ = nodes.vectors[:, -1].copy(), decoder.error()

    def _step(self, net: Net, phase: Phase, X: Csr, rows: Ints, left: float, rng: np.random.Generator) -> None:
        """The autoencoder and the classifiers on some rows; ``left`` is the share of the rates that is left."""
        net.number += 1
        of_features = self.feature_rate if phase.classify else self.rate  # a code alone needs no more
        rates = Rates(self.rate * left, of_features * left, net.number)
        trace = net.encoder.forward(some_rows(X, rows, self.input_dropout, rng), self.dropout, rng)
        by_code = np.zeros_like(trace.code)
        if phase.classify:
            by_code += net.decide(trace.code, rows, self.node_rate * left)
        if phase.alpha:
            target = some_rows(X, rows, 0.0, rng)
            by_code += net.decoder.descend(trace.code, target, phase.alpha / len(rows), rates, rng)
        if not phase.codes_rest:
            net.encoder.backward(trace, by_code, rates)

    def _fit_features(self, X: Csr, Y: Csr, tree: Nodes, aids: Aids) -> None:
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
                    True, BIAS, float(self.C), TOLERANCE, MAX_PASSES, float(self.threshold), self.seed + blocks[at][0],
                )  # fmt: skip

        run_blocks(train, len(blocks), 1, partial(aids.progress, "nodes"))
        # Children are numbered in the order of their parents, so block after block gives all nodes but the root.
        sizes = np.concatenate([[0], *(np.diff(stops) for _, _, stops, _ in kept)])
        W = by_features([(features, weights) for features, weights, _, _ in kept], X.shape[1], sizes)
        self.values_, self.nodes_, self.starts_ = W.data, short_numbers(W.indices, len(sizes)), W.indptr
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
        X = unit_rows(X)
        out = TopK.empty(X.shape[0], k)
        least = float(np.float32(np.log(self.follow))) if self.follow else -np.inf  # as steps are rounded
        tree = (self.first_child_, self.last_child_, self.label_)
        if self.input == "features":

            def search(start: int, stop: int) -> None:
                beam_search(
                    X.data, X.indices, X.indptr, start, stop, self.values_, self.nodes_, self.starts_, self.bias_,
                    *tree, ROOT, self.beam, LOGISTIC, least, out.labels, out.scores,
                )  # fmt: skip

        else:
            chain = chain_of(listed_widths(self.input_layers), self.activation, self.input_code)
            encode = StoredEncoder(self.vectors_, self.vector_scales_, self.offset_, self.dense_, chain)

            def search(start: int, stop: int) -> None:
                dense_beam_search(
                    encode(X, start, stop), self.node_weights_, self.node_scales_, self.bias_, *tree, self.beam,
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
class Ways:
    """What the classifiers of a tree have to learn from the rows of Y."""

    tree: Nodes
    Y: Csr
    astray: int  # steps that a row is followed off its ways, and one more
    leaf_of: Ints  # (n_labels,) -1 for a label that is not in the tree
    mark: Ints  # (n_nodes,) scratch

    @classmethod
    def of(cls, tree: Nodes, Y: Csr, astray: int) -> Ways:
        """The labels of the tree are columns of Y."""
        leaf_of = np.full(Y.shape[1], -1, np.int32)
        leaves = np.flatnonzero(tree.label >= 0).astype(np.int32)
        leaf_of[tree.label[leaves]] = leaves
        return cls(tree, Y, astray + 1, leaf_of, np.full(len(tree), -1, np.int32))

    def of_rows(self, rows: Ints) -> Batch:
        """The children of all nodes that each row reaches, with 1 for those that it reaches too."""
        found: Batch = decisions(
            self.Y.indices, self.Y.indptr, rows, self.leaf_of, self.tree.parent, self.tree.first_child,
            self.tree.last_child, self.astray, self.mark,
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
    ways: Ways
    number: int = 0  # steps begun

    def decide(self, code: Floats, rows: Ints, rate: float) -> Floats:
        """Move the classifiers on cross-entropy, summed over the ways of a row; the gradient by the code."""
        targets, nodes, ends = self.ways.of_rows(rows)
        hidden = with_ones(code)
        errors = sigmoid(self.nodes.at((targets, nodes, ends), hidden)) - targets
        errors /= np.float32(len(rows))
        batch: Batch = (errors, nodes, ends)
        gradient = self.nodes.embed(batch, np.zeros(hidden.shape[1], np.float32))[:, :-1]
        self.nodes.descend(batch, hidden, rate)
        return gradient
