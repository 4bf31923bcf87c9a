"""The tree-embedded label space: labels as embeddings, level by level, searched from the root down.

Proposed, and not built, in Pathak, "Hierarchical Label Embedding for Xtreme Multi-Label Classification" (2024).

1. The tree: the ``hierarchy`` that is given, or clusters of clusters of labels, learned from their documents. A DAG is
   read as a tree with one parent per label; predictions are made consistent with all parents at the end (tree.py).
2. Encoder: the features of a document become ``hidden_dim`` units, and these a vector for each level, of dimension
   ``root_dim`` at the top and ``embedding_dim`` at the bottom: general labels need few coordinates. Each node has an
   embedding with the dimension of its level (network.py, layout.py).
3. Prediction loss: for each node on a document's paths, which of its children are on them too? The margin of a child is
   the product of its embedding and the document's vector, plus a bias; with ``space=poincare`` both are points of the
   Poincaré ball, and their distance replaces the angle (layout.py). The logistic losses of all levels are summed with
   weights: one number in ``level_weight`` is that of each level relative to the level above, several are those of the
   levels (layout.py).
4. Consistency loss: the squared distance of a child from the projection of its parent, with ``consistency_weight``. The
   projection is one matrix for all parents of a level, plus one of low rank (``projection_rank``) for each parent, or a
   full matrix for each parent (projections.py).
5. Regularizer: ``weight_decay`` of embeddings, and of the projections' difference from the identity; and
   ``dimension_penalty`` times the sum of the norms of every coordinate over the nodes of a level, by a proximal step
   after each batch: coordinates that a level does not need become 0 for all its nodes (layout.py).
6. Label texts: where documents are texts, the name of each label is a further training document with weight
   ``label_text`` (tree.py).
7. Prediction is a beam search from the root with ``beam_size`` nodes per level. The score of a label is the product of
   the probabilities on its path, so no label outranks an ancestor, averaged over ``n_estimators`` networks with
   different initializations. A ``rare_boost`` above 0 gives up that order, and ranks labels with few documents higher,
   as PSP@k rewards.

Where documents do not carry the ancestors of their labels (what is filed under rye is not filed under bread), each
label with descendants gets an extra leaf, and only leaves are ranked.

The preset ``paper`` is what the document proposes, with all three losses; ``poincare`` is the same in the ball.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from threadpoolctl import threadpool_limits

from labelspace.errors import DataError, ModelError
from labelspace.estimator import learned, param
from labelspace.estimator.parameter_constraints import AllBut, boolean, integer, one_of, optional, real
from labelspace.estimator.state_constraints import array, must, part, parts, plain
from labelspace.features.normalize import normalize_rows
from labelspace.features.views import BIGRAMS
from labelspace.kernels.beam_search import average_tree_lists
from labelspace.kernels.threads import run_blocks, run_parallel
from labelspace.labels.clustering import pifa_embeddings
from labelspace.labels.hierarchy import include_ancestors
from labelspace.labels.tree import TreeNodes
from labelspace.models import parameters
from labelspace.models.base import Model
from labelspace.models.batched_prediction import overfetch
from labelspace.models.evidence import Evidence
from labelspace.models.fit_context import FitContext
from labelspace.models.treespace import layout
from labelspace.models.treespace.explanations import TreeEvidence
from labelspace.models.treespace.kernels import SearchedNodes, level_beam_search
from labelspace.models.treespace.network import LearningRates, LevelNet, QuantizedLevelNet
from labelspace.models.treespace.projections import Penalties
from labelspace.models.treespace.tree import TrainingSet, clustered_nodes, hierarchy_nodes, is_closed
from labelspace.training.epochs import batch_schedule, batches
from labelspace.training.losses import seen_labels
from labelspace.training.sparse_layers import batch_rows
from labelspace.types import Bools, Csr, Floats, Ints, LabelSpace, TopK

STEPS = 500  # batches that suffice to learn
EPOCHS = (10, 15)  # bounds of the number of epochs that is chosen
MAX_LEAF = 100  # labels per cluster of the lowest level, all of which are scored where the beam gets there
AVERAGED_LABELS = 50  # labels per learner that are averaged: more than k, since learners rank them differently
ROW_BLOCK = 64  # documents per task
SPACES = ("euclidean", "poincare")
# The document has no numbers: these are small weights that have an effect. Label names, several learners and dropout
# are ours.
PAPER: Mapping[str, Any] = {
    "consistency_weight": 0.01,  # consistency loss
    "projection_rank": None,  # projection matrices: each parent has one
    "weight_decay": 0.01,  # regularization of projection matrices
    "dimension_penalty": 0.1,  # regularization of embedding dimensionality
    "label_text": 0.0,
    "n_estimators": 1,
    "dropout": 0.0,
    "input_dropout": 0.0,
}


class Treespace(Model):
    """Labels as embeddings, with more dimensions on each level, searched from the root down.

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
    choose_when = "labels form a hierarchy and predictions must agree with it"
    view = BIGRAMS
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"paper": PAPER, "poincare": {**PAPER, "space": "poincare"}}

    hierarchy: str = param(
        "auto", one_of("auto", "given", "learned"), "Use a given or a learned one; auto prefers given."
    )
    space: str = param("euclidean", one_of(*SPACES), "Geometry of the label embeddings.")
    root_dim: int = param(64, integer(1), "Dimension of the embeddings of the first level.")
    embedding_dim: int = param(256, integer(1), "Dimension of the embeddings of the last level.")
    hidden_dim: int = parameters.hidden_dim(512)
    level_weight: layout.LevelWeight = param(
        1.0, layout.LEVEL_WEIGHT, "Weight of each level's loss relative to the level above; or one for each level."
    )
    consistency_weight: float = param(0.0, real(at_least=0), "Weight of the consistency loss of parents and children.")
    projection_rank: int | None = param(
        1, optional(integer(1)), "Rank of a parent's own projection; none for a full matrix, and none shared."
    ).only_with(consistency_weight=AllBut(0))
    weight_decay: float = param(0.0, real(at_least=0), "Weight decay.")
    dimension_penalty: float = param(
        0.0, real(at_least=0), "Weight of the penalty on the number of dimensions that a level uses."
    )
    normalize: bool = parameters.normalize()
    label_text: float = parameters.label_text(0.5)
    n_estimators: int = param(3, integer(1), "Number of learners, averaged.")
    epochs: int | None = parameters.epochs()
    batch_size: int | None = parameters.batch_size()
    learning_rate: float = param(0.05, real(above=0), "Learning rate of the label embeddings.")
    feature_learning_rate: float = parameters.feature_learning_rate(0.1)
    dense_learning_rate: float = param(0.002, real(above=0), "Learning rate of the dense layers.")
    dropout: float = parameters.dropout(0.4)
    input_dropout: float = parameters.input_dropout(0.1)
    rare_boost: float = param(
        0.0, real(at_least=0, at_most=10), "Prefer labels with few documents; 0 ranks by probability."
    )
    branching_factor: int = param(16, integer(2), "Children per node of a learned hierarchy.").only_with(
        hierarchy=("auto", "learned")
    )
    beam_size: int = parameters.beam_size(20)
    random_state: int = parameters.random_state()

    tree_: TreeNodes = learned(part(TreeNodes, n_nodes="n_nodes", n_labels="n_labels"))
    level_dims_: Ints = learned(array("int32", "levels", at_least=1))
    # Whether documents carry the ancestors of their labels: then every node is a label.
    is_closed_: bool = learned(plain(boolean()))
    uses_given_hierarchy_: bool = learned(plain(boolean()))
    estimators_: list[QuantizedLevelNet] = learned(
        parts(QuantizedLevelNet, "n_learners", n_features="n_features", n_nodes="n_nodes")
    )
    label_counts_: Ints = learned(array("int32", "n_labels", at_least=0))  # training documents of each label

    def check_state(self) -> None:
        """Check that there is a dimension per level, room for the embedding of each node, and no label at the root."""
        must(self.tree_.label[0] < 0, "a root that is no label")
        must(len(self.level_dims_) == max(self.tree_.height, 1), "a dimension per level of the tree")
        must(len(self.estimators_) > 0, "learners")
        document_dim, node_dims = int(self.level_dims_.sum(dtype=np.int64)), int(self._layout.width.sum(dtype=np.int64))
        for net in self.estimators_:
            must(net.level_maps.shape[1] == document_dim, f"document vectors of length {document_dim}")
            must(net.node_embeddings.size == node_dims, f"node embeddings of {node_dims} numbers")

    def attach_labels(self, labels: LabelSpace | None) -> None:
        """Attach the labels; raise if documents carry the ancestors of labels, and there is no hierarchy."""
        super().attach_labels(labels)
        if self.is_closed_ and (labels is None or labels.hierarchy is None):
            raise ModelError("the saved treespace must have the hierarchy of its labels, but has none; train it again")

    def _fit(self, X: Csr, Y: Csr, context: FitContext) -> None:
        X = normalize_rows(X) if self.normalize else X
        context.progress("tree", 0, 1)
        self.tree_ = self._build_tree(X, Y, context)  # step 1
        context.progress("tree", 1, 1)
        self.label_counts_ = np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.int32)
        self.level_dims_ = layout.level_dims(self.root_dim, self.embedding_dim, max(self.tree_.height, 1))
        weights = layout.level_weights(self.level_weight, len(self.level_dims_))
        texts = (context.label_features, self.label_text, self.normalize)
        data = TrainingSet(X, Y, self.tree_, weights, *texts)  # step 6
        batch_size, epochs = batch_schedule(data.X.shape[0], self.batch_size, self.epochs, STEPS, EPOCHS)
        total = epochs * self.n_estimators
        with threadpool_limits(1, user_api="blas"):
            self.estimators_ = run_parallel(
                lambda number, tick: self._train_learner(data, number, batch_size, epochs, tick),
                self.n_estimators,
                lambda done: context.progress("epochs", min(done, total), total),
            )

    def _build_tree(self, X: Csr, Y: Csr, context: FitContext) -> TreeNodes:
        seen = seen_labels(Y)
        given = None if context.labels is None or self.hierarchy == "learned" else context.labels.hierarchy
        if given is None and self.hierarchy == "given":
            raise DataError(
                "hierarchy='given' needs a hierarchy of the labels, but there is none; put a hierarchy.tsv beside the "
                "data, give labels=LabelSpace(..., hierarchy=...), or set hierarchy='learned'"
            )
        self.uses_given_hierarchy_ = given is not None
        self.is_closed_ = given is not None and is_closed(Y, given)
        if given is not None:
            return hierarchy_nodes(given, seen, self.is_closed_)
        return clustered_nodes(pifa_embeddings(X, Y[:, seen]), seen, self.branching_factor, MAX_LEAF, self.random_state)

    def _train_learner(
        self, data: TrainingSet, number: int, batch_size: int, epochs: int, tick: Callable[[int], None]
    ) -> QuantizedLevelNet:
        """Train one network (steps 2 to 5)."""
        rng = np.random.default_rng([self.random_state, number])
        penalties = Penalties(self.consistency_weight, self.projection_rank, self.weight_decay, self.dimension_penalty)
        ball = self.space == "poincare"
        learning_rates = (self.learning_rate, self.dense_learning_rate, self.feature_learning_rate)
        net = LevelNet(data.X, self._layout, self.hidden_dim, data.probabilities, rng, ball=ball, penalties=penalties)
        for rows, lr_decay in batches(data.X.shape[0], batch_size, epochs, rng, lambda *_: tick(1)):
            rates = LearningRates(*(rate * lr_decay for rate in learning_rates))
            batch = batch_rows(data.X, rows, self.input_dropout, rng)
            net.train_step(batch, rows, data.paths, data.weights[rows], self.dropout, rates, rng)
        return QuantizedLevelNet.from_net(net)

    @cached_property
    def _layout(self) -> layout.LevelLayout:
        return layout.LevelLayout(self.tree_, self.level_dims_)

    @cached_property
    def _node_norms(self) -> list[Floats]:
        """The norms of the node embeddings of each learner; without the ball they are not used, nor computed."""
        if self.space != "poincare":
            return [np.ones_like(net.node_scales) for net in self.estimators_]
        return [net.node_norms(self._layout) for net in self.estimators_]

    def label_trees(self) -> list[TreeNodes]:
        """Return the tree; a label without training documents is not in it."""
        self.check_fitted()
        return [self.tree_]

    def report(self) -> dict[str, Any]:
        """Return the shape of the tree and of the embeddings; effective dimensions are means over the learners."""
        self.check_fitted()
        used = [
            layout.effective_dimensions(self._layout, net.dequantized_nodes(self._layout)) for net in self.estimators_
        ]
        return {
            "levels": len(self.level_dims_),
            "nodes": len(self.tree_) - 1,
            "hierarchy_is_given": self.uses_given_hierarchy_,
            "documents_carry_labels_above": self.is_closed_,
            "dimensions": self.level_dims_.tolist(),
            "effective_dimensions": np.mean(used, axis=0).round(1).tolist(),
            "parameters": sum(net.n_parameters for net in self.estimators_),
        }

    def _predict(self, X: Csr, k: int, allowed: Bools | None = None) -> TopK:
        if allowed is not None:
            return overfetch(self._predict, X, k, allowed)
        X = normalize_rows(X) if self.normalize else X
        node_norms = self._node_norms
        reranked = self.is_closed_ or len(self.estimators_) > 1 or self.rare_boost > 0
        depth = max(k, min(AVERAGED_LABELS, self.n_labels_)) if reranked else k
        shape = (len(self.estimators_), X.shape[0], depth)
        labels, scores = np.full(shape, -1, np.int32), np.full(shape, -np.inf, np.float32)
        ball, beam_size = self.space == "poincare", min(self.beam_size, len(self.tree_))

        def search(start: int, stop: int) -> None:
            for at, net in enumerate(self.estimators_):
                nodes = SearchedNodes(net.node_embeddings, net.node_scales, node_norms[at], net.node_bias)
                documents, norms = layout.bound_norms(self._layout, net.document_vectors(X[start:stop]), ball)
                found = (labels[at, start:stop], scores[at, start:stop])
                level_beam_search(documents, norms, nodes, self._layout.arrays, ball, beam_size, *found)

        run_blocks(search, X.shape[0], ROW_BLOCK)
        return self._combine(labels, np.exp(scores), k)

    def explain(self, X: Csr, labels: Ints) -> list[Evidence]:
        """Explain the scores of some labels by the shares of features along their paths."""
        document = TreeEvidence(self, self._layout, normalize_rows(X) if self.normalize else X, self.view.name)
        return [document.evidence(label) for label in labels.tolist()]

    def _combine(self, labels: Ints, probabilities: Floats, k: int) -> TopK:
        """Return the mean of the learners' lists (learners, n, depth), consistent with the hierarchy or boosted."""
        top = TopK.empty(labels.shape[1], labels.shape[2])
        if len(labels) > 1:
            average_tree_lists(labels, probabilities, top.labels, top.scores)
        else:  # in the order of the search, whose log-probabilities have more digits
            top = TopK(labels[0], np.where(labels[0] >= 0, probabilities[0], -np.inf))
        if self.rare_boost:  # rare labels may outrank their ancestors: consistency is given up
            weights = (1 / np.maximum(self.label_counts_, 1))[top.labels] ** self.rare_boost
            scores = np.where(top.labels >= 0, top.scores * weights, -np.inf)
            order = np.argsort(-scores, axis=1, kind="stable")
            top = TopK(np.take_along_axis(top.labels, order, 1), np.take_along_axis(scores, order, 1))
            return top.padded(k)
        if not self.is_closed_:
            return top.padded(k)
        assert self.labels_ is not None  # the hierarchy came with them
        assert self.labels_.hierarchy is not None
        return include_ancestors(top, self.labels_.hierarchy, k)
