"""The tree-embedded label space: labels as vectors, level by level, searched from the root down.

Proposed, and never built, in Pathak, "Hierarchical Label Embedding for Xtreme Multi-Label Classification" (2024).

1. The tree: the ``hierarchy`` that is given, or clusters of clusters of labels that are learned from their documents.
   A DAG is read as a tree by one parent a label; answers are made to agree with all parents in the end.
2. A document's features become ``hidden`` units, and these a vector for each level, ``root_dimension`` long at the top
   and ``dimension`` at the bottom: what is general needs few coordinates. Each node has a vector of its level's length.
3. Prediction loss: of a document that reaches a node, which of its children does it reach? A child's margin is the
   product of its vector and the document's, plus a bias; with ``space=poincare`` both are points of the Poincaré ball
   and their distance takes the place of the angle. The logistic losses of all levels are summed, each level counting
   ``level_weight`` times what the one above does.
4. Consistency loss: a child is pulled with ``consistency`` to where its parent's projection takes the parent: one
   matrix for all parents of a level, and one of low ``rank`` for each parent.
5. Regularizer: ``decay`` of vectors, and of what projections do beyond keeping the coordinates.
6. Names: where documents are texts, the name of each label is learned from too, as a document that counts
   ``label_text``.
7. To tag, go down from the root by the ``beam`` best nodes of each level. The score of a label is the product of the
   chances on its way, so no label outranks one above it; the mean of the ``learners``, which begin differently. With
   ``rare`` above 0 that order is given up for one in which labels of few documents go first: what PSP@k asks for.

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

from labelspace.errors import DataError
from labelspace.estimator import above, at_least, one_of, optional, share, whole
from labelspace.features.normalize import unit_rows
from labelspace.kernels.code_search import mean_of_lists
from labelspace.kernels.level_embeddings import TINY, map_units, search_levels
from labelspace.kernels.quantize import Bytes, in_bytes
from labelspace.kernels.sparse_layers import embed_rows
from labelspace.kernels.threads import run_blocks, side_by_side
from labelspace.labels.clustering import instance_features
from labelspace.labels.hierarchy import consistent
from labelspace.labels.tree import Nodes
from labelspace.models.base import Aids, Model
from labelspace.models.treespace.network import LevelNet, Pace, Shape, level_widths, nodes_in_bytes, placed
from labelspace.models.treespace.tree import hierarchy_nodes, is_closed, learned_nodes, node_rows
from labelspace.training.early_stopping import batches, portions
from labelspace.training.negative_sampling import labels_seen
from labelspace.training.sparse_layers import some_rows
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
    >>> model = Treespace(hidden=64, learners=1).fit(train.X, train.Y, labels=train.labels)
    >>> first = model.predict_topk(test.X, k=1).labels[:, 0]
    >>> bool(test.Y[np.arange(100), first].mean() > 0.5)
    True
    """

    name = "treespace"
    title = "Tree-embedded label space (proposed by Pathak, 2024)"
    choose_when = "labels live in a hierarchy and answers must agree with it"
    rules = {
        "hierarchy": one_of("auto", "given", "learned"),
        "space": one_of(*SPACES),
        "root_dimension": whole(1),
        "dimension": whole(1),
        "hidden": whole(1),
        "level_weight": above(0),
        "consistency": at_least(0),
        "rank": whole(1),
        "decay": at_least(0),
        "label_text": at_least(0),
        "learners": whole(1),
        "epochs": optional(whole(1)),
        "batch": whole(1),
        "rate": above(0),
        "feature_rate": above(0),
        "dense_rate": above(0),
        "dropout": share,
        "input_dropout": share,
        "rare": at_least(0),
        "branching": whole(2),
        "beam": whole(1),
        "seed": whole(0),
    }
    state = (
        "first_child_", "last_child_", "label_", "widths_", "is_closed_", "is_given_", "features_", "feature_scales_",
        "offset_", "maps_", "vectors_", "vector_scales_", "bias_", "counts_",
    )  # fmt: skip

    first_child_: Ints  # (n_nodes,) see labels/tree.py
    last_child_: Ints
    label_: Ints  # (n_nodes,) -1 for a node that is no label
    widths_: Ints  # (levels,)
    is_closed_: bool  # every node is a label, and documents carry those above theirs
    is_given_: bool  # the hierarchy was
    features_: Bytes  # (learners, n_features, hidden)
    feature_scales_: Floats  # (learners, n_features)
    offset_: Floats  # (learners, hidden)
    maps_: Floats  # (learners, hidden, sum of widths)
    vectors_: Bytes  # (learners, sum of the nodes' widths)
    vector_scales_: Floats  # (learners, n_nodes)
    bias_: Floats  # (learners, n_nodes)
    counts_: Ints  # (n_labels,) training documents of each label

    _derived: _Ready | None = None

    def __init__(
        self,
        hierarchy: str = "auto",
        space: str = "euclidean",
        root_dimension: int = 64,
        dimension: int = 256,
        hidden: int = 512,
        level_weight: float = 1.0,
        consistency: float = 0.0,
        rank: int = 1,
        decay: float = 0.0,
        label_text: float = 0.5,
        learners: int = 3,
        epochs: int | None = None,
        batch: int = 256,
        rate: float = 0.05,
        feature_rate: float = 0.1,
        dense_rate: float = 0.002,
        dropout: float = 0.4,
        input_dropout: float = 0.1,
        rare: float = 0.0,
        branching: int = 16,
        beam: int = 20,
        seed: int = 0,
    ) -> None:
        self.hierarchy = hierarchy
        self.space = space
        self.root_dimension = root_dimension
        self.dimension = dimension
        self.hidden = hidden
        self.level_weight = level_weight
        self.consistency = consistency
        self.rank = rank
        self.decay = decay
        self.label_text = label_text
        self.learners = learners
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.feature_rate = feature_rate
        self.dense_rate = dense_rate
        self.dropout = dropout
        self.input_dropout = input_dropout
        self.rare = rare
        self.branching = branching
        self.beam = beam
        self.seed = seed

    def _fit(self, X: Csr, Y: Csr, aids: Aids) -> None:
        X = unit_rows(X)
        aids.progress("tree", 0, 1)
        nodes = self._grow(X, Y, aids)  # step 1
        aids.progress("tree", 1, 1)
        self.first_child_, self.last_child_, self.label_ = nodes.first_child, nodes.last_child, nodes.label
        self.counts_ = np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.int32)
        self.widths_ = level_widths(self.root_dimension, self.dimension, max(nodes.height, 1))
        task = self._task(X, Y, nodes, aids)
        steps = task.epochs * self.learners
        with threadpool_limits(1, user_api="blas"):
            nets = side_by_side(
                lambda learner, tick: self._learn(task, learner, tick),
                self.learners,
                lambda done: aids.progress("epochs", min(done, steps), steps),
            )
        self.features_ = np.stack([net.features[0] for net in nets])
        self.feature_scales_ = np.stack([net.features[1] for net in nets])
        self.offset_ = np.stack([net.offset for net in nets])
        self.maps_ = np.stack([net.maps for net in nets])
        self.vectors_ = np.stack([net.vectors[0] for net in nets])
        self.vector_scales_ = np.stack([net.vectors[1] for net in nets])
        self.bias_ = np.stack([net.bias for net in nets])

    def _grow(self, X: Csr, Y: Csr, aids: Aids) -> Nodes:
        seen = labels_seen(Y)
        given = None if aids.labels is None or self.hierarchy == "learned" else aids.labels.hierarchy
        if given is None and self.hierarchy == "given":
            raise DataError(
                "hierarchy='given' needs a hierarchy of the labels, but there is none; put a hierarchy.tsv beside the "
                "data, give labels=LabelSpace(..., hierarchy=...), or set hierarchy='learned'"
            )
        self.is_given_ = given is not None
        self.is_closed_ = given is not None and is_closed(Y, given)
        if given is not None:
            return hierarchy_nodes(given, seen, self.is_closed_)
        return learned_nodes(instance_features(X, Y[:, seen]), seen, self.branching, LEAF, self.seed)

    def _task(self, X: Csr, Y: Csr, nodes: Nodes, aids: Aids) -> _Task:
        """What every learner learns from: the documents, and behind them the names of the labels that have any."""
        weights = np.ones(X.shape[0], np.float32)
        if self.label_text and aids.label_features is not None:
            named = nodes.label[nodes.label >= 0]
            texts = aids.label_features[named]
            named, texts = named[np.diff(texts.indptr) > 0], texts[np.diff(texts.indptr) > 0]
            own = sp.csr_matrix(
                (np.ones(len(named), np.float32), named, np.arange(len(named) + 1)), (len(named), Y.shape[1])
            )
            X, Y = sp.vstack([X, unit_rows(texts)]).tocsr(), sp.vstack([Y, own]).tocsr()
            weights = np.append(weights, np.full(len(named), self.label_text, np.float32))
        starts, reached = node_rows(Y, nodes)
        counts = np.bincount(reached, minlength=len(nodes)).astype(np.float32)
        chances = (counts + 0.5) / (counts[np.maximum(nodes.parent, 0)] + 1)
        batch, epochs = portions(X.shape[0], self.batch, self.epochs, STEPS, EPOCHS)
        of_levels = np.float32(self.level_weight) ** np.arange(len(self.widths_), dtype=np.float32)
        return _Task(
            X, starts, reached, weights[:, None] * of_levels, chances, Shape(nodes, self.widths_), batch, epochs
        )

    def _learn(self, task: _Task, learner: int, tick: Tick) -> _Learned:
        """Steps 2 to 6."""
        rng = np.random.default_rng([self.seed, learner])
        net = LevelNet(
            task.X, task.shape, self.hidden, self.rank if self.consistency else None, task.chances,
            self.space == "poincare", rng,
        )  # fmt: skip
        steps = batches(task.X.shape[0], task.batch, task.epochs, rng, lambda *_: tick(1))
        for rows, left in steps:
            pace = Pace(
                self.rate * left, self.dense_rate * left, self.feature_rate * left, 2 * self.consistency, self.decay
            )
            batch = some_rows(task.X, rows, self.input_dropout, rng)
            net.learn(batch, rows, task.starts, task.reached, task.weights[rows], self.dropout, pace, rng)
        return _Learned(
            in_bytes(net.features.vectors), net.offset.value, net.maps.value.T.copy(),
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
            "levels": len(self.widths_),
            "nodes": len(self.label_) - 1,
            "hierarchy_is_given": self.is_given_,
            "documents_carry_labels_above": self.is_closed_,
            "dimensions": self.widths_.tolist(),
            "parameters": int(self.features_.size + self.maps_.size + self.vectors_.size + self.bias_.size),
        }

    def _predict(self, X: Csr, k: int) -> TopK:
        X, n, ready = unit_rows(X), X.shape[0], self._ready()
        shape, more = ready.shape, self.is_closed_ or self.learners > 1 or self.rare > 0
        listed = max(k, min(LISTED, self.n_labels_)) if more else k
        labels = np.full((self.learners, n, listed), -1, np.int32)
        scores = np.full((self.learners, n, listed), -np.inf, np.float32)
        ball = self.space == "poincare"

        def search(start: int, stop: int) -> None:
            hidden = np.empty((stop - start, self.hidden), np.float32)
            documents = np.empty((stop - start, int(self.widths_.sum())), np.float32)
            part = X[start:stop]
            for learner in range(self.learners):
                embed_rows(
                    part.data, part.indices, part.indptr, 0, stop - start, self.features_[learner],
                    self.feature_scales_[learner], self.offset_[learner], hidden,
                )  # fmt: skip
                map_units(hidden, self.maps_[learner], documents)
                used, lengths = placed(shape, documents, ball)
                search_levels(
                    used, lengths, self.vectors_[learner], self.vector_scales_[learner], ready.lengths[learner],
                    self.bias_[learner], *shape.tree, self.label_, shape.level, shape.offset, shape.width, shape.place,
                    ball, self.beam, labels[learner, start:stop], scores[learner, start:stop],
                )  # fmt: skip

        run_blocks(search, n, ROW_BLOCK)
        return self._joined(labels, np.exp(scores), k)

    def _joined(self, labels: Ints, chances: Floats, k: int) -> TopK:
        """The mean of the learners' lists (learners, n, listed), in agreement with the hierarchy."""
        top = TopK.empty(labels.shape[1], labels.shape[2])
        if self.learners > 1:
            mean_of_lists(labels, chances, top.labels, top.scores)
        else:  # its order knows more digits than its chances: it is kept
            top = TopK(labels[0], np.where(labels[0] >= 0, chances[0], -np.inf))
        if self.rare:  # labels of few documents go before those above them: nothing to agree with any more
            return self._rare_first(top).padded(k)
        if not self.is_closed_:
            return top.padded(k)
        assert self.labels_ is not None  # the hierarchy came with them
        assert self.labels_.hierarchy is not None
        return consistent(top, self.labels_.hierarchy, k)

    def _rare_first(self, top: TopK) -> TopK:
        """Each score times (1 / documents of the label) ** rare, in that order."""
        seldom = 1 / np.maximum(self.counts_, 1)
        scores = np.where(top.labels >= 0, top.scores * seldom[top.labels] ** self.rare, -np.inf)
        order = np.argsort(-scores, axis=1, kind="stable")
        return TopK(np.take_along_axis(top.labels, order, 1), np.take_along_axis(scores, order, 1))

    def _ready(self) -> _Ready:
        """What is derived from the state, on first use and again after a new ``fit``."""
        if self._derived is None or self._derived.of is not self.vectors_:
            shape = Shape(self._nodes, self.widths_)
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
