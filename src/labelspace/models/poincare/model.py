"""Poincaré: documents and labels as points of one hyperbolic space, where rare labels lie further out.

Gerald and Baskiotis, "Joint Label/Example Hyperbolic Representation for Extreme Classification" (2019).

1. Hold 5 % of the documents out, unless some are given. Steps 2 to 7 make one learner; ``n_estimators`` are made side by
   side, each by a seed of its own.
2. Begin with label points l drawn from N(0, 1e-3) and a map theta near 0.
3. For each batch of documents, leave some features out; r = theta'x is placed in the ball by the exponential map at
   the origin (``projection``: or by the paper's p).
4. The labels to learn on are all of them, or, where they are many, the batch's own and ``n_negatives`` drawn by chance.
5. The loss: of each label of a document against the labels it does not have, the cross-entropy of exp(-alpha d).
6. To it comes what the paper leaves open: of each document against the others of the batch, the cross-entropy between
   the softmax of -d and the cosines of their label sets, times ``similarity_weight``.
7. Move theta by row-wise Adagrad and the label points by the same in their tangent spaces, along geodesics,
   with rates that fall to 0 in a straight line (``optimizer``: or as the paper does, by SGD or Adam scaled by the
   metric, with constant rates).
8. Place all training documents. A new one gets the votes of its nearest, weighed by exp(-sharpness d), and those of the
   nearest labels themselves (``route``); how they are weighed is chosen on the documents held out.

Where we differ, and why: with p, documents pile up at the boundary, and so they do without it where alpha is small.
There only their direction counts for distances to labels, while distances to each other grow with every accidental
difference, so that neighbors say little. A larger alpha, or step 6, holds them where both say much. The paper counts
votes; weighed, they say more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from labelspace import index
from labelspace.constraints import Constraint, boolean, integer, one_of, optional, real
from labelspace.errors import ParameterError
from labelspace.estimator import learned, param
from labelspace.features.normalize import normalize_rows
from labelspace.kernels.quantize import Bytes, quantize_int8
from labelspace.kernels.sparse_layers import embed_rows
from labelspace.kernels.threads import run_blocks, side_by_side
from labelspace.labels.rank_correlation import spearman
from labelspace.labels.voting import gain, tally
from labelspace.models.base import Model
from labelspace.models.fit_context import FitContext
from labelspace.models.poincare.geometry import Ball, Flat, Space
from labelspace.models.poincare.losses import label_gradients, similarity_gradient
from labelspace.training.early_stopping import VALIDATION_K, hold_out_rows, r_precision, should_stop, too_few_to_stop_by
from labelspace.training.epochs import batch_schedule
from labelspace.training.negative_sampling import ALL_LABELS, SampledLabels, choose, seen_labels
from labelspace.training.optimizers import RowAdagrad, RowAdam, RowOptimizer, RowSgd
from labelspace.training.sparse_layers import Batch, SparseLayer, batch_rows
from labelspace.types import Csr, Floats, Ints, Progress, TopK

STEPS = 600  # batches that suffice to learn
EPOCHS = (8, 20)  # fewest and most that are chosen
MANY_DOCUMENTS = 30_000  # above, fewer features need be left out: there is less to overfit
INPUT_DROPOUT = (0.2, 0.1)  # up to so many documents, and above
RATES = {"adagrad": (0.2, 0.03), "adam": (0.01, 0.001), "sgd": (1.0, 10.0)}  # of labels, and of features
ROW_BLOCK = 64  # documents a task
HELD_SHARE, HELD_DOCUMENTS = 0.05, 2_000
LABEL_SPREAD, FEATURE_SPREAD = 1e-3, 1e-2  # at the start; the paper has 1e-4 for the latter, to the same end
NEIGHBORS = (40, 10, 20, 80)  # tried, the usual one first
SHARPNESS = (4.0, 0.0, 2.0, 8.0, 16.0)
LABEL_WEIGHTS = (1.0, 0.0, 0.1, 0.3, 3.0)
LABEL_SHARPNESS = 0.25  # times alpha: how fast a label's own vote falls with its distance
LISTED = 100  # nearest labels that vote
LEAST_SUM = np.float32(1e-30)  # so that one may divide by it

Tick = Callable[[int], None]


class Poincare(Model):
    """Labels and documents in one hyperbolic space; documents near a new one vote, and so do labels near it.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=600, d=400, l=50, seed=1)
    >>> train, test = data.rows(range(500)), data.rows(range(500, 600))
    >>> model = Poincare().fit(train.X, train.Y)
    >>> first = model.predict_topk(test.X, k=1).labels[:, 0]
    >>> bool(test.Y[np.arange(100), first].mean() > 0.5)
    True
    """

    name = "poincare"
    title = "Poincaré: labels and documents in one hyperbolic space (Gerald and Baskiotis, 2019)"
    choose_when = "documents have many labels, labels form a hierarchy, or you want to see them on a map"
    embedding_dim: int = param(50, integer(1), "Dimension of the space.")
    n_estimators: int = param(1, integer(1, at_most=100), "Number of learners, whose votes are added up.")
    geometry: str = param("poincare", one_of(*index.poincare.GEOMETRIES), "Geometry of the space.")
    projection: str = param(
        "exponential",
        one_of("exponential", "clip"),
        "How documents are placed in the ball: by the exponential map, or clipped as in the paper.",
    )
    alpha: float = param(16.0, real(above=0), "Sharpness of the softmax of distances.")
    similarity_weight: float = param(0.3, real(at_least=0), "Weight of the loss between documents with similar labels.")
    optimizer: str = param("adagrad", one_of(*RATES), "Optimizer.")
    learning_rate: float | None = param(
        None, optional(real(above=0)), "Learning rate of the label points; none takes the optimizer's own."
    )
    feature_learning_rate: float | None = param(
        None, optional(real(above=0)), "Learning rate of the document map; none takes the optimizer's own."
    )
    input_dropout: float | None = param(
        None,
        optional(real(at_least=0, below=1)),
        "Share of a document's features dropped in training; none chooses it by the number of documents.",
    )
    epochs: int | None = param(
        None, optional(integer(1)), "Number of epochs; none chooses it by the number of documents."
    )
    batch_size: int = param(256, integer(1), "Maximum batch size.")
    all_labels: bool | None = param(
        None, optional(boolean()), "Train on all labels, not on sampled ones; none decides by their number."
    )
    n_negatives: int = param(
        1024, integer(1), "Negative labels sampled per batch, where not all labels are trained on."
    )
    patience: int | None = param(
        None,
        optional(integer(1)),
        "Stop after this many epochs without improvement on validation documents; none runs all epochs.",
    )
    route: str = param(
        "both", one_of("both", "vote", "labels"), "Who votes: the nearest documents, the nearest labels, or both."
    )
    n_neighbors: int | None = param(
        None, optional(integer(1)), "Nearest documents that vote; none chooses the number on held-out documents."
    )
    sharpness: float | None = param(
        None, optional(real(at_least=0)), "How fast a vote falls with distance; none chooses it on held-out documents."
    )
    label_weight: float | None = param(
        None, optional(real(at_least=0)), "Weight of the labels' own votes; none chooses it on held-out documents."
    )
    n_clusters: int | str | None = param(
        None,
        optional(Constraint("a whole number of at least 1, or auto", lambda v: v == "auto" or integer(1).holds(v))),
        "Clusters of the document index; none searches all documents, auto chooses.",
    )
    random_state: int = param(0, integer(0), "Seed of everything drawn at random.")

    vectors_: Bytes = learned()  # (learners, n_features, dimension)
    vector_scales_: Floats = learned()  # (learners, n_features)
    Y_: Csr = learned()  # (n_documents, n_labels)
    neighbors_: int = learned()
    sharpness_: float = learned()
    label_weight_: float = learned()
    report_: dict[str, Any] = learned()
    documents_: list[index.PointIndex] = learned(index.PointIndex)  # of each learner, the training documents by their rows in Y_
    points_: list[index.PointIndex] = learned(index.PointIndex)  # of each learner, the labels with a training document

    @property
    def space(self) -> Space:
        """The geometry by its name."""
        return Flat() if self.geometry == "euclidean" else Ball(self.projection == "exponential")

    def _fit(self, X: Csr, Y: Csr, context: FitContext) -> None:
        X = normalize_rows(X)
        rest, held, own = self._parted(X, Y, context)  # step 1
        lesson = Objective.of(X[rest], Y[rest], held, self)
        total = self.n_estimators * lesson.epochs * lesson.steps
        with threadpool_limits(1, user_api="blas"):
            learned = side_by_side(
                lambda number, tick: self._learn(lesson, number, tick),
                self.n_estimators,
                lambda done: context.progress("batches", min(done, total), total),
            )
        self._keep(learned, lesson.seen, X, Y, rest)
        self._choose(held, context.progress)
        for number, documents in enumerate(self.documents_):
            if len(own):
                documents.add(own, self._places(X[own], number))
        self._tell([found.accuracies for found in learned])

    def _parted(self, X: Csr, Y: Csr, context: FitContext) -> tuple[Ints, tuple[Csr, Csr] | None, Ints]:
        """The rows to train on, the documents held out, and which rows of train these are."""
        every, none = np.arange(X.shape[0], dtype=np.int32), np.zeros(0, np.int32)
        if context.validation is not None:
            truth = context.validation[1].copy()
            truth.resize(truth.shape[0], Y.shape[1])  # who names fewer labels has none of the others
            if truth.nnz:
                held = np.random.default_rng(self.random_state).permutation(truth.shape[0])[:HELD_DOCUMENTS]
                if truth[held].nnz:
                    return every, (normalize_rows(context.validation[0])[np.sort(held)], truth[np.sort(held)]), none
        parted = hold_out_rows(Y, HELD_SHARE, HELD_DOCUMENTS, self.random_state)
        if parted is not None:
            return parted[0], (X[parted[1]], Y[parted[1]]), parted[1].astype(np.int32)
        if self.patience is not None:
            raise too_few_to_stop_by(X.shape[0])
        return every, None, none

    def _learn(self, lesson: Objective, number: int, tick: Tick) -> Learned:
        """Train one learner; what is drawn depends on the seed and its number alone."""
        rng = np.random.default_rng([self.random_state, number])
        net = Net.random(lesson, self, rng)  # step 2
        accuracies: list[float] = []
        best = None
        for epoch in range(lesson.epochs):
            order = rng.permutation(lesson.X.shape[0]).astype(np.int32)
            for at in range(lesson.steps):
                left = 1.0 - (epoch * lesson.steps + at) / (lesson.epochs * lesson.steps)
                rows = order[at * lesson.batch : (at + 1) * lesson.batch]
                self._step(net, lesson, rows, left if self.optimizer == "adagrad" else 1.0, rng)
                tick(1)
            if lesson.held is not None:
                accuracies.append(net.accuracy(*lesson.held))
                if self.patience is not None and int(np.argmax(accuracies)) == epoch:
                    best = (net.features.vectors.copy(), net.points.copy())
                if should_stop(accuracies, self.patience):
                    tick((lesson.epochs - epoch - 1) * lesson.steps)
                    break
        vectors, points = best or (net.features.vectors, net.points)
        return Learned(*quantize_int8(vectors), points, accuracies)

    def _step(self, net: Net, lesson: Objective, rows: Ints, left: float, rng: np.random.Generator) -> None:
        """One batch; ``left`` is the share of the rates that is left."""
        given = batch_rows(lesson.X, rows, lesson.input_dropout, rng)  # step 3
        r = net.features.embed(given, net.zeros)
        lifted = net.space.lift_vectors(r)
        true = lesson.Y[rows]
        chosen = SampledLabels(lesson.labels, true.indices, true.indptr)
        if not lesson.all_labels:
            chosen = choose(true, lesson.labels, self.n_negatives, rng)  # step 4
        points = net.points if chosen.every else net.points[chosen.ids]
        gradient, by_points = label_gradients(net.space, lifted, points, chosen, self.alpha)  # step 5
        if self.similarity_weight:
            gradient += similarity_gradient(net.space, lifted, true, self.similarity_weight)  # step 6
        moved = net.space.move(points, by_points, net.optimizer, chosen.ids, net.learning_rate * left)  # step 7
        if chosen.every:
            net.points = moved
        else:
            net.points[chosen.ids] = moved
        net.descend_features(given, net.space.vectors_back(r, gradient), left)

    def _keep(self, learned: list[Learned], seen: Ints, X: Csr, Y: Csr, rest: Ints) -> None:
        """Keep what prediction needs: the maps in bytes, and all points where they can be searched."""
        self.vectors_ = np.stack([found.vectors for found in learned])
        self.vector_scales_ = np.stack([found.scales for found in learned])
        self.Y_ = Y.copy()  # the caller may go on using theirs
        self.points_ = [index.PointIndex(found.points, seen, self.geometry) for found in learned]
        clusters = self.n_clusters if self.n_clusters in (None, "auto") else int(self.n_clusters)
        self.documents_ = [
            index.PointIndex(self._places(X[rest], number), rest, self.geometry, clusters, seed=int(self.random_state))
            for number in range(len(learned))
        ]

    def _places(self, X: Csr, number: int) -> Floats:
        """The points of rows of unit length by one learner, each on its own. Shape (n, dimension)."""
        out = np.empty((X.shape[0], self.embedding_dim), np.float32)
        vectors, scales, zeros = self.vectors_[number], self.vector_scales_[number], np.zeros_like(out[:1])
        space = self.space

        def embed(start: int, stop: int) -> None:
            embed_rows(X.data, X.indices, X.indptr, start, stop, vectors, scales, zeros[0], out)
            out[start:stop] = space.place(out[start:stop])

        run_blocks(embed, len(out), ROW_BLOCK)
        return out

    def _choose(self, held: tuple[Csr, Csr] | None, progress: Progress) -> None:
        """How votes are weighed: as told, or as serves the documents held out best; step 8."""
        choices = self._choices()
        best = choices[0]
        if held is not None and len(choices) > 1:
            found = self._evidence(held[0], max(choice.neighbors for choice in choices), VALIDATION_K)
            best = self._best(choices, found, held[1], progress)
        self.neighbors_, self.sharpness_, self.label_weight_ = best.neighbors, best.sharpness, best.label_weight

    def _choices(self) -> list[Weighing]:
        """The ways to try, the usual one first."""
        given = (self.n_neighbors, self.sharpness, self.label_weight)
        usual = (NEIGHBORS, SHARPNESS, LABEL_WEIGHTS)
        tried = [grid if own is None else (own,) for own, grid in zip(given, usual, strict=True)]
        if self.route == "vote":
            tried[2] = tried[2][:1]
        elif self.route == "labels":
            tried[:2] = tried[0][:1], tried[1][:1]
        return [Weighing(int(m), float(s), float(w)) for m, s, w in product(*tried)]

    def _best(
        self, choices: list[Weighing], found: list[tuple[TopK, TopK]], truth: Csr, progress: Progress
    ) -> Weighing:
        """The choice that ranks the labels of documents best."""
        gains = []
        for choice in choices:
            gains.append(gain(self._ranked(found, choice, min(VALIDATION_K, self.n_labels_)), truth))
            progress("weighing votes", len(gains), len(choices))
        return choices[int(np.argmax(gains))]

    def _evidence(self, X: Csr, neighbors: int, k: int) -> list[tuple[TopK, TopK]]:
        """Of each learner, the nearest documents and labels; scores are distances below zero."""
        found = []
        for number in range(len(self.points_)):
            places = self._places(X, number)
            near = TopK.empty(len(places), 0)
            if self.route != "labels":
                near = self.documents_[number].search(places, min(neighbors, self.Y_.shape[0]))
            listed = TopK.empty(len(places), 0)
            if self.route != "vote":
                listed = self.points_[number].search(places, min(max(LISTED, k), len(self.points_[number])))
            found.append((near, listed))
        return found

    def _ranked(self, found: list[tuple[TopK, TopK]], choice: Weighing, k: int) -> TopK:
        """The labels with most votes; scores are shares of them."""
        share = {"vote": 0.0, "labels": 1.0, "both": choice.label_weight / (1 + choice.label_weight)}[self.route]
        parts = np.float32(len(found))
        near, votes = [], []
        for documents, _ in found:
            weights = fading(documents.scores[:, : choice.neighbors], choice.sharpness)
            weights *= np.float32(1 - share) / (np.maximum(weights.sum(axis=1, keepdims=True), LEAST_SUM) * parts)
            near.append(documents.labels[:, : choice.neighbors])
            votes.append(weights)
        listed = np.concatenate([labels.labels for _, labels in found], axis=1)
        own = np.concatenate([fading(labels.scores, LABEL_SHARPNESS * self.alpha) for _, labels in found], axis=1)
        own *= np.float32(share) / parts
        return tally(np.concatenate(near, axis=1), np.concatenate(votes, axis=1), self.Y_, k, TopK(listed, own))

    def _predict(self, X: Csr, k: int) -> TopK:
        choice = Weighing(self.neighbors_, self.sharpness_, self.label_weight_)
        return self._ranked(self._evidence(normalize_rows(X), choice.neighbors, k), choice, k)

    def label_points(self) -> Floats:
        """The labels' points in the ball by the first learner; NaN for one without training documents."""
        self.check_fitted()
        if self.geometry == "euclidean":
            raise ParameterError(
                "a map needs a point in the Poincaré ball for each label, but geometry is euclidean; "
                "train with geometry=poincare"
            )
        points = np.full((self.n_labels_, self.embedding_dim), np.nan, np.float32)
        points[self.points_[0].ids] = self.points_[0].points
        return points

    def _tell(self, accuracies: list[list[float]]) -> None:
        """What there is to report of the training."""
        counts = np.bincount(self.Y_.indices, minlength=self.n_labels_)
        by_learner = []
        for points in self.points_:
            norms = np.linalg.norm(points.points.astype(np.float64), axis=1)
            by_learner.append(spearman(norms, counts[points.ids]))
        outside = np.linalg.norm(self.documents_[0].points.astype(np.float64), axis=1)
        self.report_ = {
            "norm_against_frequency": None if np.isnan(by_learner[0]) else round(float(np.mean(by_learner)), 4),
            "mean_norm_of_labels": round(float(np.linalg.norm(self.points_[0].points, axis=1).mean()), 4),
            "mean_norm_of_documents": round(float(outside.mean()), 4),
            "accuracy_by_epoch": [[round(value, 5) for value in one] for one in accuracies],
        }

    def report(self) -> dict[str, Any]:
        """Spearman's correlation of the labels' norms with their training documents, and more."""
        self.check_fitted()
        chosen = {"neighbors": self.neighbors_, "sharpness": self.sharpness_, "label_weight": self.label_weight_}
        return {**self.report_, **chosen}


@dataclass(frozen=True)
class Weighing:
    """How votes count."""

    neighbors: int
    sharpness: float
    label_weight: float


@dataclass(frozen=True)
class Learned:
    """What is left of a learner's training."""

    vectors: Bytes
    scales: Floats
    points: Floats  # of the labels with a document
    accuracies: list[float]


@dataclass(frozen=True)
class Objective:
    """What is learned from, and in which batch_schedule; labels are numbered among those with a document."""

    X: Csr
    Y: Csr
    held: tuple[Csr, Csr] | None
    seen: Ints  # which labels they are
    labels: Ints
    batch: int
    epochs: int
    steps: int
    all_labels: bool
    input_dropout: float

    @classmethod
    def of(cls, X: Csr, Y: Csr, held: tuple[Csr, Csr] | None, model: Poincare) -> Objective:
        """The batch_schedule that suit the data, where the user did not say."""
        seen = seen_labels(Y)
        batch, epochs = batch_schedule(X.shape[0], model.batch_size, model.epochs, STEPS, EPOCHS)
        return cls(
            X,
            Y[:, seen],
            None if held is None else (held[0], held[1][:, seen]),
            seen,
            np.arange(len(seen), dtype=np.int32),
            batch,
            epochs,
            -(-X.shape[0] // batch),
            len(seen) <= ALL_LABELS if model.all_labels is None else model.all_labels,
            INPUT_DROPOUT[X.shape[0] > MANY_DOCUMENTS] if model.input_dropout is None else model.input_dropout,
        )


class Net:
    """All that a learner learns, while it does."""

    def __init__(self, model: Poincare, features: SparseLayer, points: Floats) -> None:
        self.space, self.geometry, self.features, self.points = model.space, model.geometry, features, points
        usual = RATES[model.optimizer]
        self.learning_rate = usual[0] if model.learning_rate is None else model.learning_rate
        self.feature_learning_rate = usual[1] if model.feature_learning_rate is None else model.feature_learning_rate
        self.optimizer = row_optimizer(model.optimizer, points)
        self.of_features = None if model.optimizer == "adagrad" else row_optimizer(model.optimizer, features.vectors)
        self.zeros = np.zeros(points.shape[1], np.float32)

    @classmethod
    def random(cls, lesson: Objective, model: Poincare, rng: np.random.Generator) -> Net:
        """All near the origin."""
        features = SparseLayer.random(lesson.X, model.embedding_dim, rng, spread=FEATURE_SPREAD)
        points = rng.standard_normal((len(lesson.seen), model.embedding_dim), np.float32) * np.float32(LABEL_SPREAD)
        return cls(model, features, points)

    def descend_features(self, given: Batch, gradient: Floats, left: float) -> None:
        """Move theta on the gradient (batch, dimension) by r."""
        if self.of_features is None:
            self.features.descend(given, gradient, self.feature_learning_rate * left)
            return
        features, rows = self.features.gradients(given, gradient)
        self.features.vectors[features] += self.of_features.steps(features, rows, self.feature_learning_rate * left)

    def accuracy(self, X: Csr, Y: Csr) -> float:
        """The share of right labels among the nearest."""
        places = self.space.place(self.features.embed((X.data, X.indices, X.indptr), self.zeros))
        labels = index.PointIndex(self.points, np.arange(len(self.points)), self.geometry)
        return r_precision(labels.search(places, VALIDATION_K), Y)


def row_optimizer(form: str, table: Floats) -> RowOptimizer:
    """The optimizer of a table by its name."""
    if form == "sgd":
        return RowSgd()
    return RowAdagrad(len(table)) if form == "adagrad" else RowAdam(*table.shape)


def fading(scores: Floats, sharpness: float) -> Floats:
    """exp(sharpness score) over that of the best, for scores (n, m) best first; 0 for places without one."""
    if not scores.shape[1]:
        return scores
    best = np.where(np.isfinite(scores[:, :1]), scores[:, :1], np.float32(0))
    with np.errstate(invalid="ignore"):
        faded: Floats = np.exp(np.float32(sharpness) * (scores - best))
    faded[~np.isfinite(scores)] = 0.0
    return faded
