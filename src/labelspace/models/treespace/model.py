"""The tree-embedded label space: labels as vectors, level by level, searched from the root down.

Proposed, and never built, in Pathak, "Hierarchical Label Embedding for Xtreme Multi-Label Classification" (2024).

1. The tree: the ``hierarchy`` that is given, or clusters of clusters of labels that are learned from their documents.
   A DAG is read as a tree by one parent a label; answers are made to agree with all parents in the end.
2. A document's features become ``hidden_dim`` units, and these a vector for each level, ``root_dim`` long at the top
   and ``embedding_dim`` at the bottom: what is general needs few coordinates. Each node has a vector of its level's length.
3. Prediction loss: of a document that reaches a node, which of its children does it reach? A child's margin is the
   product of its vector and the document's, plus a bias; with ``space=poincare`` both are points of the Poincaré ball
   and their distance takes the place of the angle. The logistic losses of all levels are summed, each level counting
   ``level_weight`` times what the one above does.
4. Consistency loss: a child is pulled with ``consistency_weight`` to where its parent's projection takes the parent: one
   matrix for all parents of a level, and one of low ``projection_rank`` for each parent.
5. Regularizer: ``weight_decay`` of vectors, and of what projections do beyond keeping the coordinates.
6. Names: where documents are texts, the name of each label is learned from too, as a document that counts
   ``label_text``.
7. To tag, go down from the root by the ``beam_size`` best nodes of each level. The score of a label is the product of the
   chances on its way, so no label outranks one above it; the mean of the ``n_estimators``, which begin differently. With
   ``rare_boost`` above 0 that order is given up for one in which labels of few documents go first: what PSP@k asks for.

Where documents do not carry the labels above theirs (what is filed under rye is not filed under bread), each label that
has others below gets a leaf of its own, and leaves are ranked alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from labelspace.constraints import integer, one_of, optional, real
from labelspace.errors import DataError
from labelspace.estimator import learned, param
from labelspace.features.normalize import normalize_rows
from labelspace.features.views import BIGRAMS
from labelspace.kernels.code_search import mean_of_lists
from labelspace.kernels.level_embeddings import TINY, map_units, search_levels
from labelspace.kernels.quantize import Bytes, quantize_int8
from labelspace.kernels.sparse_layers import embed_rows
from labelspace.kernels.threads import run_blocks, side_by_side
from labelspace.labels.clustering import pifa_embeddings
from labelspace.labels.hierarchy import consistent
from labelspace.labels.tree import Nodes
from labelspace.models.base import Model
from labelspace.models.fit_context import FitContext
from labelspace.models.treespace.network import LevelNet, Pace, Shape, level_widths, nodes_in_bytes, placed
from labelspace.models.treespace.tree import hierarchy_nodes, is_closed, learned_nodes, node_rows
from labelspace.training.epochs import batch_schedule, batches
from labelspace.training.negative_sampling import seen_labels
from labelspace.training.sparse_layers import batch_rows
from labelspace.types import Csr, Floats, Ints, Longs, TopK

STEPS = 500  # batches that suffice to learn
EPOCHS = (10, 15)  # fewest and most that are chosen
LEAF = 100  # labels below one cluster of the lowest level
LISTED = 50  # labels of each learner that take part in the mean
ROW_BLOCK = 64  # documents a task
SPACES = ("euclidean", "poincare")

Tick = Callable[[int], None]


class Treespace(Model):
    """Labels as vectors that grow longer level by level, searched from the root down.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=600, d=400, l=50, seed=1)
    >>> train, test = data.rows(range(500)), data.rows(range(500, 600))
    >>> model = Treespace(hidden_dim=64, n_estimators=1).fit(train.X, train.Y, labels=train.labels)
    >>> first = model.predict_topk(test.X, k=1).labels[:, 0]
    >>> bool(test.Y[np.arange(100), first].mean() > 0.5)
    True
    """

    name = "treespace"
    title = "Tree-embedded label space (proposed by Pathak, 2024)"
    choose_when = "labels live in a hierarchy and answers must agree with it"
    view = BIGRAMS
    hierarchy: str = param(
        "auto", one_of("auto", "given", "learned"), "Use the hierarchy given, or learn one; auto prefers the one given."
    )
    space: str = param("euclidean", one_of(*SPACES), "Geometry of the label embeddings.")
    root_dim: int = param(64, integer(1), "Dimension of the embeddings of the first level.")
    embedding_dim: int = param(256, integer(1), "Dimension of the embeddings of the last level.")
    hidden_dim: int = param(512, integer(1), "Units of the hidden layer.")
    level_weight: float = param(1.0, real(above=0), "Weight of each level's loss relative to the level above.")
    consistency_weight: float = param(
        0.0, real(at_least=0), "Weight of the consistency loss between parents and children."
    )
    projection_rank: int = param(1, integer(1), "Rank of a parent's own projection.")
    weight_decay: float = param(0.0, real(at_least=0), "Weight decay.")
    label_text: float = param(0.5, real(at_least=0), "Weight of the labels' own texts; 0 leaves them out.")
    n_estimators: int = param(3, integer(1), "Number of learners, averaged.")
    epochs: int | None = param(
        None, optional(integer(1)), "Number of epochs; none chooses it by the number of documents."
    )
    batch_size: int = param(256, integer(1), "Maximum batch size.")
    learning_rate: float = param(0.05, real(above=0), "Learning rate of the label embeddings.")
    feature_learning_rate: float = param(0.1, real(above=0), "Learning rate of the feature embeddings.")
    dense_learning_rate: float = param(0.002, real(above=0), "Learning rate of the dense layers.")
    dropout: float = param(0.4, real(at_least=0, below=1), "Share of hidden units dropped in training.")
    input_dropout: float = param(0.1, real(at_least=0, below=1), "Share of a document's features dropped in training.")
    rare_boost: float = param(0.0, real(at_least=0), "Prefer labels with few documents; 0 ranks by probability.")
    branching_factor: int = param(16, integer(2), "Children per node of a learned hierarchy.")
    beam_size: int = param(20, integer(1), "Nodes or prefixes kept at each level of the search.")
    random_state: int = param(0, integer(0), "Seed of everything drawn at random.")

    first_child_: Ints = learned()  # (n_nodes,) see labels/tree.py
    last_child_: Ints = learned()
    label_: Ints = learned()  # (n_nodes,) -1 for a node that is no label
    level_dims_: Ints = learned()  # (levels,)
    is_closed_: bool = learned()  # every node is a label, and documents carry those above theirs
    is_given_: bool = learned()  # the hierarchy was
    features_: Bytes = learned()  # (learners, n_features, hidden)
    feature_scales_: Floats = learned()  # (learners, n_features)
    offset_: Floats = learned()  # (learners, hidden)
    maps_: Floats = learned()  # (learners, hidden, sum of widths)
    vectors_: Bytes = learned()  # (learners, sum of the nodes' widths)
    vector_scales_: Floats = learned()  # (learners, n_nodes)
    bias_: Floats = learned()  # (learners, n_nodes)
    counts_: Ints = learned()  # (n_labels,) training documents of each label

    _derived: _Ready | None = None

    def _fit(self, X: Csr, Y: Csr, context: FitContext) -> None:
        X = normalize_rows(X)
        context.progress("tree", 0, 1)
        nodes = self._grow(X, Y, context)  # step 1
        context.progress("tree", 1, 1)
        self.first_child_, self.last_child_, self.label_ = nodes.first_child, nodes.last_child, nodes.label
        self.counts_ = np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.int32)
        self.level_dims_ = level_widths(self.root_dim, self.embedding_dim, max(nodes.height, 1))
        task = self._task(X, Y, nodes, context)
        steps = task.epochs * self.n_estimators
        with threadpool_limits(1, user_api="blas"):
            nets = side_by_side(
                lambda learner, tick: self._learn(task, learner, tick),
                self.n_estimators,
                lambda done: context.progress("epochs", min(done, steps), steps),
            )
        self.features_ = np.stack([net.features[0] for net in nets])
        self.feature_scales_ = np.stack([net.features[1] for net in nets])
        self.offset_ = np.stack([net.offset for net in nets])
        self.maps_ = np.stack([net.maps for net in nets])
        self.vectors_ = np.stack([net.vectors[0] for net in nets])
        self.vector_scales_ = np.stack([net.vectors[1] for net in nets])
        self.bias_ = np.stack([net.bias for net in nets])

    def _grow(self, X: Csr, Y: Csr, context: FitContext) -> Nodes:
        seen = seen_labels(Y)
        given = None if context.labels is None or self.hierarchy == "learned" else context.labels.hierarchy
        if given is None and self.hierarchy == "given":
            raise DataError(
                "hierarchy='given' needs a hierarchy of the labels, but there is none; put a hierarchy.tsv beside the "
                "data, give labels=LabelSpace(..., hierarchy=...), or set hierarchy='learned'"
            )
        self.is_given_ = given is not None
        self.is_closed_ = given is not None and is_closed(Y, given)
        if given is not None:
            return hierarchy_nodes(given, seen, self.is_closed_)
        return learned_nodes(pifa_embeddings(X, Y[:, seen]), seen, self.branching_factor, LEAF, self.random_state)

    def _task(self, X: Csr, Y: Csr, nodes: Nodes, context: FitContext) -> _Task:
        """What every learner learns from: the documents, and behind them the names of the labels that have any."""
        weights = np.ones(X.shape[0], np.float32)
        if self.label_text and context.label_features is not None:
            named = nodes.label[nodes.label >= 0]
            texts = context.label_features[named]
            named, texts = named[np.diff(texts.indptr) > 0], texts[np.diff(texts.indptr) > 0]
            own = sp.csr_matrix(
                (np.ones(len(named), np.float32), named, np.arange(len(named) + 1)), (len(named), Y.shape[1])
            )
            X, Y = sp.vstack([X, normalize_rows(texts)]).tocsr(), sp.vstack([Y, own]).tocsr()
            weights = np.append(weights, np.full(len(named), self.label_text, np.float32))
        starts, reached = node_rows(Y, nodes)
        counts = np.bincount(reached, minlength=len(nodes)).astype(np.float32)
        chances = (counts + 0.5) / (counts[np.maximum(nodes.parent, 0)] + 1)
        batch, epochs = batch_schedule(X.shape[0], self.batch_size, self.epochs, STEPS, EPOCHS)
        of_levels = np.float32(self.level_weight) ** np.arange(len(self.level_dims_), dtype=np.float32)
        return _Task(
            X, starts, reached, weights[:, None] * of_levels, chances, Shape(nodes, self.level_dims_), batch, epochs
        )

    def _learn(self, task: _Task, learner: int, tick: Tick) -> _Learned:
        """Steps 2 to 6."""
        rng = np.random.default_rng([self.random_state, learner])
        net = LevelNet(
            task.X, task.shape, self.hidden_dim, self.projection_rank if self.consistency_weight else None, task.chances,
            self.space == "poincare", rng,
        )  # fmt: skip
        steps = batches(task.X.shape[0], task.batch, task.epochs, rng, lambda *_: tick(1))
        for rows, left in steps:
            pace = Pace(
                self.learning_rate * left,
                self.dense_learning_rate * left,
                self.feature_learning_rate * left,
                2 * self.consistency_weight,
                self.weight_decay,
            )
            batch = batch_rows(task.X, rows, self.input_dropout, rng)
            net.learn(batch, rows, task.starts, task.reached, task.weights[rows], self.dropout, pace, rng)
        return _Learned(
            quantize_int8(net.features.vectors), net.offset.value, net.maps.value.T.copy(),
            nodes_in_bytes(task.shape, net.vectors), net.bias,
        )  # fmt: skip

    @property
    def _nodes(self) -> Nodes:
        return Nodes(self.first_child_, self.last_child_, self.label_)

    def label_trees(self) -> list[Nodes]:
        """The tree; a label without training documents is not in it."""
        self.check_fitted()
        return [self._nodes]

    def report(self) -> dict[str, Any]:
        """The shape of the tree and of the space."""
        self.check_fitted()
        return {
            "levels": len(self.level_dims_),
            "nodes": len(self.label_) - 1,
            "hierarchy_is_given": self.is_given_,
            "documents_carry_labels_above": self.is_closed_,
            "dimensions": self.level_dims_.tolist(),
            "parameters": int(self.features_.size + self.maps_.size + self.vectors_.size + self.bias_.size),
        }

    def _predict(self, X: Csr, k: int) -> TopK:
        X, n, ready = normalize_rows(X), X.shape[0], self._ready()
        shape, more = ready.shape, self.is_closed_ or self.n_estimators > 1 or self.rare_boost > 0
        listed = max(k, min(LISTED, self.n_labels_)) if more else k
        labels = np.full((self.n_estimators, n, listed), -1, np.int32)
        scores = np.full((self.n_estimators, n, listed), -np.inf, np.float32)
        ball = self.space == "poincare"

        def search(start: int, stop: int) -> None:
            hidden = np.empty((stop - start, self.hidden_dim), np.float32)
            documents = np.empty((stop - start, int(self.level_dims_.sum())), np.float32)
            part = X[start:stop]
            for learner in range(self.n_estimators):
                embed_rows(
                    part.data, part.indices, part.indptr, 0, stop - start, self.features_[learner],
                    self.feature_scales_[learner], self.offset_[learner], hidden,
                )  # fmt: skip
                map_units(hidden, self.maps_[learner], documents)
                used, lengths = placed(shape, documents, ball)
                search_levels(
                    used, lengths, self.vectors_[learner], self.vector_scales_[learner], ready.lengths[learner],
                    self.bias_[learner], *shape.tree, self.label_, shape.level, shape.offset, shape.width, shape.place,
                    ball, self.beam_size, labels[learner, start:stop], scores[learner, start:stop],
                )  # fmt: skip

        run_blocks(search, n, ROW_BLOCK)
        return self._joined(labels, np.exp(scores), k)

    def _joined(self, labels: Ints, chances: Floats, k: int) -> TopK:
        """The mean of the learners' lists (learners, n, listed), in agreement with the hierarchy."""
        top = TopK.empty(labels.shape[1], labels.shape[2])
        if self.n_estimators > 1:
            mean_of_lists(labels, chances, top.labels, top.scores)
        else:  # its order knows more digits than its chances: it is kept
            top = TopK(labels[0], np.where(labels[0] >= 0, chances[0], -np.inf))
        if self.rare_boost:  # labels of few documents go before those above them: nothing to agree with any more
            return self._rare_first(top).padded(k)
        if not self.is_closed_:
            return top.padded(k)
        assert self.labels_ is not None  # the hierarchy came with them
        assert self.labels_.hierarchy is not None
        return consistent(top, self.labels_.hierarchy, k)

    def _rare_first(self, top: TopK) -> TopK:
        """Each score times (1 / documents of the label) ** rare, in that order."""
        seldom = 1 / np.maximum(self.counts_, 1)
        scores = np.where(top.labels >= 0, top.scores * seldom[top.labels] ** self.rare_boost, -np.inf)
        order = np.argsort(-scores, axis=1, kind="stable")
        return TopK(np.take_along_axis(top.labels, order, 1), np.take_along_axis(scores, order, 1))

    def _ready(self) -> _Ready:
        """What is derived from the state, on first use and again after a new ``fit``."""
        if self._derived is None or self._derived.of is not self.vectors_:
            shape = Shape(self._nodes, self.level_dims_)
            lengths = np.ones_like(self.vector_scales_)
            if self.space == "poincare":
                squares = np.square(self.vectors_, dtype=np.float32)
                sums = np.add.reduceat(squares, shape.offset[1:], axis=1)
                lengths[:, 1:] = np.sqrt(sums) * self.vector_scales_[:, 1:] + TINY
            self._derived = _Ready(self.vectors_, shape, lengths)
        return self._derived


@dataclass(frozen=True)
class _Ready:
    """What a search needs beside the state."""

    of: Bytes
    shape: Shape
    lengths: Floats  # (learners, n_nodes) of the nodes' vectors, in the ball


@dataclass(frozen=True)
class _Task:
    """What every learner learns from."""

    X: Csr
    starts: Longs  # document i reaches the nodes reached[starts[i] : starts[i + 1]]
    reached: Ints
    weights: Floats  # (n, levels) what an error of a document on a level counts
    chances: Floats  # (n_nodes,) to be reached from the parent
    shape: Shape
    batch: int
    epochs: int


@dataclass(frozen=True)
class _Learned:
    """What is kept of a learner."""

    features: tuple[Bytes, Floats]
    offset: Floats
    maps: Floats
    vectors: tuple[Bytes, Floats]
    bias: Floats
