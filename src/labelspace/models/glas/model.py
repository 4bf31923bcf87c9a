"""GLaS: documents and labels as points on one sphere, kept from overfitting by what labels have in common.

Guo et al., "Breaking the Glass Ceiling for Embedding-Based Classifiers for Large Output Spaces" (2019), Algorithm 2.
A label's score is z = s phi(x).v + b, where phi(x) and v have length 1.

1. Begin with random weights of phi and random label points v; b at the log-odds of each label's frequency.
2. For each batch of documents, leave some of their features out (``input_dropout``) and find phi: a vector a feature,
   summed, through a ReLU (``n_layers=2``: and a dense layer), brought to length 1.
3. Draw one label of each document.
4. The labels to learn on are all of them, or, where they are many, those of the batch, ``n_negatives`` drawn by chance
   for all the batch, and for each document the ``n_hard_negatives`` ones that the label index held nearest to it.
5. The loss: binary cross-entropy (default), softmax cross-entropy, or the margin of eq. 1 between the drawn label and
   the hardest wrong ones.
6. The regularizer of eq. 3 on the drawn labels: the products of their points are to be what the labels' documents have
   in common, U. The others: ``spread_out`` (eq. 2, U is 0 off its diagonal), ``gravity`` (documents and drawn labels
   are to be apart).
7. Move the vectors of the batch's features and the points of the labels by row-wise Adagrad, the points along the
   sphere; all else by Adam or Adagrad. Rates fall to 0 in a straight line.
8. Put the label points into an index; rank the labels of a document by z.

What a step costs depends on neither the number of features nor, above ``ALL_LABELS``, the number of labels.

Where we differ, and why: the paper has no biases; binary cross-entropy, which we add, needs them, and with points all
of one length nothing else tells a frequent label from a rare one. All labels of a document count in it and in softmax,
which is the mean of drawing one. Row-wise Adagrad keeps one number a row and touches a batch's rows only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from labelspace import index, store
from labelspace.constraints import boolean, integer, one_of, optional, real
from labelspace.errors import DataError, ParameterError
from labelspace.estimator import learned, param
from labelspace.features.normalize import normalize_rows
from labelspace.index import Approximate, Index, index_class
from labelspace.kernels.losses import margin_gradient
from labelspace.kernels.quantize import Bytes, quantize_int8
from labelspace.kernels.sparse_layers import block_of, dense_rows, descend_unit_rows, embed_rows
from labelspace.kernels.threads import run_blocks
from labelspace.labels.cooccurrence import MEASURES, similarity
from labelspace.models.base import Model
from labelspace.models.checks import Inputs, check_inputs, check_widths
from labelspace.models.fit_context import FitContext
from labelspace.models.glas.encoder import Encoder
from labelspace.training.checkpoints import fingerprint
from labelspace.training.dense_layers import Dense, lengths
from labelspace.training.early_stopping import VALIDATION_K, r_precision
from labelspace.training.epochs import batch_schedule, run_epochs
from labelspace.training.losses import bce_gradient, log_odds, sigmoid, softmax_gradient
from labelspace.training.negative_sampling import ALL_LABELS, SampledLabels, choose, seen_labels
from labelspace.training.optimizers import AdagradParameter, AdamParameter
from labelspace.training.sparse_layers import SparseLayer, batch_rows
from labelspace.types import Csr, Floats, Ints, LabelSpace, Longs, Progress, TopK

STEPS = 300  # batches that suffice to learn
EPOCHS = (8, 12)  # fewest and most that are chosen
MANY_DOCUMENTS = 30_000  # above, fewer features need be left out: there is less to overfit
INPUT_DROPOUT = (0.2, 0.1)  # up to so many documents, and above
LABEL_BLOCK = 512  # labels a task: their scores of a batch stay in the cache
ROW_BLOCK = 64  # documents a task
MINED_BLOCK = 4096  # documents whose nearest labels are looked up at a time
MINING_LISTS = 2  # times the square root of the number of labels: quick to make, and near enough
MINING_EFFORT = 8  # lists read
MINED_ON = 32  # labels a list that the lists are made by
ADDED_BLOCK = 65_536  # labels handed to the index at a time
SCALE_RATE = 0.01  # of s, in logarithms
SHOWN = 300  # documents that an index is chosen by
BACKGROUND = 2_000  # documents kept as points: what a new label is set against
SHARE = 0.005  # of all documents that a new label is taken to be on, unless one is told


class Glas(Model):
    """Labels and documents as points of one space; a label that was never trained can be placed in it.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=600, d=400, l=50, seed=1)
    >>> train, test = data.rows(range(500)), data.rows(range(500, 600))
    >>> model = Glas(embedding_dim=64).fit(train.X, train.Y)
    >>> first = model.predict_topk(test.X, k=1).labels[:, 0]
    >>> bool(test.Y[np.arange(100), first].mean() > 0.5)
    True
    """

    name = "glas"
    title = "GLaS: label and document embeddings on one sphere (Guo et al., 2019)"
    choose_when = "rare labels matter, labels come and go, or there are very many of them"
    resumes_training = True
    embedding_dim: int = param(512, integer(16, at_most=1024), "Dimension of the embeddings of labels and documents.")
    n_layers: int = param(1, one_of(1, 2), "Layers of the document encoder.")
    activation: str = param("relu", one_of("relu", "linear"), "Activation function of hidden layers.")
    weight_norm: bool = param(False, boolean(), "Normalize the weights of every unit.")
    loss: str = param(
        "bce",
        one_of("bce", "softmax", "margin"),
        "Loss: binary cross-entropy, softmax cross-entropy, or the margin of eq. 1.",
    )
    margin: float = param(0.3, real(above=0), "Margin of the margin loss.")
    n_hardest: int = param(10, integer(1), "Hardest wrong labels that the margin loss counts.")
    regularizer: str = param(
        "glas", one_of("glas", "spread_out", "gravity", "none"), "Regularizer of the label embeddings."
    )
    similarity: str = param("arithmetic", one_of(*MEASURES), "Similarity of labels that the GLaS regularizer aims at.")
    reg_weight: float = param(1000.0, real(at_least=0), "Weight of the regularizer.")
    scale: float = param(20.0, real(above=0), "Initial scale of the scores.")
    learn_scale: bool = param(True, boolean(), "Learn the scale.")
    input_dropout: float | None = param(
        None,
        optional(real(at_least=0, below=1)),
        "Share of a document's features dropped in training; none chooses it by the number of documents.",
    )
    dropout: float = param(0.4, real(at_least=0, below=1), "Share of hidden units dropped in training.")
    epochs: int | None = param(
        None, optional(integer(1)), "Number of epochs; none chooses it by the number of documents."
    )
    batch_size: int = param(256, integer(1), "Maximum batch size.")
    learning_rate: float = param(0.03, real(above=0), "Learning rate.")
    feature_learning_rate: float = param(0.2, real(above=0), "Learning rate of the feature embeddings.")
    all_labels: bool | None = param(
        None, optional(boolean()), "Train on all labels, not on sampled ones; none decides by their number."
    )
    n_negatives: int = param(
        1024, integer(1), "Negative labels sampled per batch, where not all labels are trained on."
    )
    n_hard_negatives: int = param(8, integer(0), "Hard negative labels mined per document, where labels are sampled.")
    patience: int | None = param(
        None,
        optional(integer(1)),
        "Stop after this many epochs without improvement on validation documents; none runs all epochs.",
    )
    index: str = param("auto", one_of(*index.choice.KINDS), "Kind of label index; auto chooses it by measured recall.")
    recall_target: float = param(0.99, real(above=0, at_most=1), "Recall that an approximate index must reach.")
    random_state: int = param(0, integer(0), "Seed of everything drawn at random.")

    vectors_: Bytes = learned()  # (n_features, dimension)
    vector_scales_: Floats = learned()  # (n_features,)
    offset_: Floats = learned()  # (dimension,)
    second_: Floats = learned()  # (dimension, dimension) of the dense layer, a row a unit of the first; (0, 0) without
    second_offset_: Floats = learned()  # (dimension,) or (0,)
    scale_: float = learned()  # s
    bias_scale_: float = (
        learned()
    )  # what a document's point has as its last coordinate, by which a label's b / lever is multiplied
    background_: npt.NDArray[np.float16] = learned()  # (some, dimension) training documents as points
    index_: Index = learned(index_class)  # of (s v, b / lever)

    def _fit(self, X: Csr, Y: Csr, context: FitContext) -> None:
        X, Y, held = context.early_stopping_split(normalize_rows(X), Y, self.patience, self.random_state)
        held = None if held is None else (normalize_rows(held[0]), held[1])
        net = self._begin(X, Y)  # step 1
        with threadpool_limits(1, user_api="blas"):
            self._train(net, X, Y, held, context)
        self._keep(net, X, Y, context)  # step 8

    def _begin(self, X: Csr, Y: Csr) -> Net:
        rng = np.random.default_rng([self.random_state, 0])
        features = SparseLayer.random(X, self.embedding_dim, rng, self.weight_norm)
        second = None
        if self.n_layers == 2:
            second = Dense.random(self.embedding_dim, self.embedding_dim, rng, self.weight_norm)
        encoder = Encoder(features, second, self.embedding_dim, self.activation == "relu")
        plain = self.loss == "margin"  # eq. 1 knows neither scale nor bias; a bias is learned all the same, from 0
        points = np.zeros((Y.shape[1], self.embedding_dim + 1), np.float32)  # the last column: the index's, see lever
        for start in range(0, len(points), LABEL_BLOCK):
            block = rng.standard_normal((len(points[start : start + LABEL_BLOCK]), self.embedding_dim), np.float32)
            points[start : start + LABEL_BLOCK, :-1] = block / lengths(block)[:, None]
        bias = np.zeros(Y.shape[1], np.float32) if plain else log_odds(Y)
        log_scale = np.full(1, 0.0 if plain else np.log(self.scale), np.float32)
        return Net(encoder, points, AdagradParameter(bias), AdamParameter(log_scale))

    def _train(self, net: Net, X: Csr, Y: Csr, held: tuple[Csr, Csr] | None, context: FitContext) -> None:
        """All epochs; a training that was cut off goes on where it was, one that may stop early ends at its best."""
        what = {"params": self.get_params(), "data": fingerprint(X, Y, *(held or ()))}
        lesson, seen = Objective.of(X, Y, self), seen_labels(Y)
        run_epochs(
            net, lesson.epochs, lambda epoch: self._epoch(net, lesson, epoch, context.progress),
            None if held is None else lambda: net.accuracy(*held, seen), self.patience, what, context.checkpoint,
        )  # fmt: skip

    def _epoch(self, net: Net, lesson: Objective, epoch: int, progress: Progress) -> None:
        """One pass over the documents; what is drawn depends on the seed and the epoch's number alone."""
        rng = np.random.default_rng([self.random_state, 1, epoch])
        near = None
        if not lesson.all_labels and self.n_hard_negatives and epoch:
            near = self._nearest(net, lesson, progress)
        order = rng.permutation(lesson.X.shape[0]).astype(np.int32)
        steps = -(-len(order) // lesson.batch)
        for at in range(steps):
            rows = order[at * lesson.batch : (at + 1) * lesson.batch]
            left = 1.0 - (epoch * steps + at) / (lesson.epochs * steps)
            self._step(net, lesson, rows, near, left, rng)
            progress("batches", epoch * steps + at + 1, lesson.epochs * steps)

    def _step(
        self, net: Net, lesson: Objective, rows: Ints, near: Ints | None, left: float, rng: np.random.Generator
    ) -> None:
        """The body of Algorithm 2; ``left`` is the share of the rates that is left."""
        net.n_steps += 1
        given = batch_rows(lesson.X, rows, lesson.input_dropout, rng)  # step 2
        trace = net.encoder.forward(given, self.dropout, rng)
        true = lesson.Y[rows]
        drawn = draw(true.indptr, rng)  # step 3
        chosen = self._chosen(lesson, true, rows, near, rng)  # step 4
        errors = net.scores(trace.points, chosen)
        self._to_errors(errors, chosen, drawn)  # step 5
        pull = self._pull(net, lesson, trace.points, np.unique(true.indices[drawn[drawn >= 0]]))  # step 6
        gradient = net.descend_labels(errors, trace.points, chosen, pull, self.learning_rate * left)  # step 7
        if self.learn_scale and self.loss != "margin":
            by_scale = np.array([np.vdot(gradient, trace.points)], np.float32)
            net.log_scale.step(by_scale, SCALE_RATE * left, net.n_steps)
        if pull.of_points is not None:
            gradient += pull.of_points
        net.encoder.backward(trace, gradient, self.learning_rate * left, self.feature_learning_rate * left, net.n_steps)

    def _chosen(
        self, lesson: Objective, true: Csr, rows: Ints, near: Ints | None, rng: np.random.Generator
    ) -> SampledLabels:
        """The labels that a batch learns on."""
        if lesson.all_labels:
            return SampledLabels(lesson.labels, true.indices, true.indptr)
        return choose(true, lesson.labels, self.n_negatives, rng, None if near is None else near[rows])

    def _to_errors(self, scores: Floats, chosen: SampledLabels, drawn: Longs) -> None:
        """The gradient of the loss by the scores, in their place."""

        def turn(start: int, stop: int) -> None:
            part, at = scores[start:stop], (chosen.columns, chosen.ends, start)
            if self.loss == "bce":
                bce_gradient(part, *at, chosen.weights)
            elif self.loss == "softmax":
                softmax_gradient(part, *at, chosen.weights)
            else:
                margin_gradient(*at, drawn, self.margin, min(self.n_hardest, scores.shape[1]), part)
            part /= np.float32(len(scores))

        run_blocks(turn, len(scores), ROW_BLOCK)

    def _pull(self, net: Net, lesson: Objective, points: Floats, labels: Ints) -> RegularizerGradient:
        """The regularizer's gradient by the points of some labels, and by those of the documents."""
        if self.regularizer == "none" or self.reg_weight == 0 or not len(labels):
            return RegularizerGradient(labels[:0], np.zeros((0, points.shape[1]), np.float32))
        V = net.points[labels, :-1]
        if self.regularizer == "gravity":
            by_product: Floats = points @ V.T
            by_product *= np.float32(2 * self.reg_weight / (len(points) * len(labels)))
            return RegularizerGradient(labels, by_product.T @ points, by_product @ V)
        by_product = V @ V.T
        if self.regularizer == "glas":
            by_product -= lesson.alike(labels)
        else:
            by_product[np.diag_indices(len(labels))] = 0.0
        by_product *= np.float32(4 * self.reg_weight / len(labels) ** 2)
        return RegularizerGradient(labels, by_product @ V)

    def _nearest(self, net: Net, lesson: Objective, progress: Progress) -> Ints:
        """The ``n_hard_negatives`` labels of each document that score best now, looked up in an index. Shape (n, hard)."""
        lever = net.arm()
        lists = round(MINING_LISTS * len(lesson.labels) ** 0.5)
        order = np.random.default_rng(self.random_state).permutation(lesson.labels)
        first, rest = order[: MINED_ON * lists], order[MINED_ON * lists :]
        labels = Approximate(net.points[first], first, "ivf", "int8", MINING_EFFORT, self.random_state, n_lists=lists)
        for start in range(0, len(rest), ADDED_BLOCK):  # in parts: no second table of all points
            some = rest[start : start + ADDED_BLOCK]
            labels.add(some, net.points[some])
        n = lesson.X.shape[0]
        near = np.empty((n, self.n_hard_negatives), np.int32)
        for start in range(0, n, MINED_BLOCK):
            rows = lesson.X[start : start + MINED_BLOCK]
            asked = append_bias(net.encoder.points((rows.data, rows.indices, rows.indptr)) * net.scale, lever)
            near[start : start + MINED_BLOCK] = labels.search(asked, self.n_hard_negatives).labels
            progress("looking up hard labels", min(start + MINED_BLOCK, n), n)
        return near

    def _keep(self, net: Net, X: Csr, Y: Csr, context: FitContext) -> None:
        """Keep what prediction needs, and an index of the label points."""
        encoder = net.encoder
        table = encoder.features.vectors
        if self.weight_norm:
            table *= encoder.features.unit_scales * encoder.length.value
        self.vectors_, self.vector_scales_ = quantize_int8(table)
        self.offset_ = encoder.offset.value
        self.second_, self.second_offset_ = np.zeros((0, 0), np.float32), np.zeros(0, np.float32)
        if encoder.second is not None:
            self.second_ = np.ascontiguousarray(encoder.second.weights.T)
            self.second_offset_ = encoder.second.offset.value
        self.scale_, self.bias_scale_ = net.scale, net.arm(net.scale)
        del table, encoder.features
        shown = np.random.default_rng([self.random_state, 2]).permutation(X.shape[0])
        self.background_ = self._points(X[np.sort(shown[:BACKGROUND])]).astype(np.float16)
        net.points[:, :-1] *= np.float32(self.scale_)
        seen = seen_labels(Y)
        queries = append_bias(self._points(X[np.sort(shown[:SHOWN])]), self.bias_scale_)
        self.index_ = index.choose(
            net.packed(seen), seen, queries, recall_target=self.recall_target, kind=self.index, seed=self.random_state,
            progress=context.progress,
        )  # fmt: skip

    def _points(self, X: Csr) -> Floats:
        """phi(x) of rows of unit length; each row on its own, so that a batch changes nothing. Shape (n, dimension)."""
        out = np.empty((X.shape[0], self.embedding_dim), np.float32)

        def embed(start: int, stop: int) -> None:
            embed_rows(X.data, X.indices, X.indptr, start, stop, self.vectors_, self.vector_scales_, self.offset_, out)
            part = out[start:stop]
            if self.activation == "relu":
                np.maximum(part, 0, out=part)
            if self.n_layers == 2:
                dense_rows(part.copy(), self.second_, self.second_offset_, part)
            part /= lengths(part)[:, None]

        run_blocks(embed, len(out), ROW_BLOCK)
        return out

    def add_label(self, name: str, examples: Inputs, share: float = SHARE) -> int:
        """Place a label by documents that carry it, without training again; its id is returned.

        ``share`` is that of all documents expected to carry it. A name that was removed before comes back.
        """
        if not 0 < share < 1:
            raise ParameterError(f"share must be above 0 and below 1, but is {share}; give a part of all documents")
        labels = self._named_labels()
        views = check_inputs(examples)
        check_widths(views, self.widths_)
        X = self.read(views)
        if not X.shape[0] or not X.nnz:
            raise DataError(f"a label must have an example with a known feature, but {name!r} has none; give some")
        extended = labels.extended([name])
        label = extended.index[name]
        if label in self.index_.ids:
            raise DataError(f"a label that is added must be new, but {name!r} is known; remove it first")
        v, b = place(self._points(normalize_rows(X)), self.background_.astype(np.float32), self.scale_, share)
        self.index_.add([label], np.append(self.scale_ * v, b / self.bias_scale_)[None])
        self._recount(extended, label, X.shape[0])
        return label

    def remove_label(self, name: str) -> None:
        """Suggest a label no more, without training again."""
        labels = self._named_labels()
        label = labels.index.get(name, -1)
        if label not in self.index_.ids:
            raise DataError(f"a label that is removed must be known, but {name!r} is not; see labels_.names")
        self.index_.remove([label])
        if labels.hierarchy is not None:  # or closing answers upwards would suggest it
            labels = replace(labels, hierarchy=labels.hierarchy.without(label))
        self._recount(labels, label, 0)

    def _named_labels(self) -> LabelSpace:
        self.check_fitted()
        if self.labels_ is None:
            raise DataError("labels must have names to come and go, but the model has none; fit it with labels=")
        return self.labels_

    def _recount(self, labels: LabelSpace, label: int, documents: int) -> None:
        counts = np.zeros(len(labels), np.int64) if labels.counts is None else labels.counts.copy()
        counts[label] = documents
        self.labels_, self.n_labels_ = replace(labels, counts=counts), len(labels)

    def _predict(self, X: Csr, k: int) -> TopK:
        top = self.index_.search(append_bias(self._points(normalize_rows(X)), self.bias_scale_), k)
        if self.loss == "bce":
            listed = top.labels >= 0
            top.scores[listed] = sigmoid(top.scores[listed])
        return top


@dataclass(frozen=True)
class RegularizerGradient:
    """What a regularizer adds to gradients."""

    labels: Ints  # (m,) in rising order
    of_labels: Floats  # (m, dimension)
    of_points: Floats | None = None  # (batch, dimension)


@dataclass(frozen=True)
class Objective:
    """What is learned from, and in which batch_schedule."""

    X: Csr
    Y: Csr
    labels: Ints  # those that steps choose from: all of them, or, where they are many, those with a document
    likeness: Csr | None  # U of eq. 3
    place: Ints  # (n_labels,) of -1, to work in
    batch: int
    epochs: int
    all_labels: bool
    input_dropout: float

    @classmethod
    def of(cls, X: Csr, Y: Csr, model: Glas) -> Objective:
        """The batch_schedule that suit the data, where the user did not say."""
        seen = seen_labels(Y)
        likeness = similarity(Y, model.similarity) if model.regularizer == "glas" else None
        batch, epochs = batch_schedule(X.shape[0], model.batch_size, model.epochs, STEPS, EPOCHS)
        every = len(seen) <= ALL_LABELS if model.all_labels is None else model.all_labels
        return cls(
            X,
            Y,
            seen if not every else np.arange(Y.shape[1], dtype=np.int32),
            likeness,
            np.full(Y.shape[1], -1, np.int32),
            batch,
            epochs,
            every,
            INPUT_DROPOUT[X.shape[0] > MANY_DOCUMENTS] if model.input_dropout is None else model.input_dropout,
        )

    def alike(self, labels: Ints) -> Floats:
        """The part of U on some labels, dense."""
        out = np.empty((len(labels), len(labels)), np.float32)
        assert self.likeness is not None
        block_of(self.likeness.data, self.likeness.indices, self.likeness.indptr, labels, self.place, out)
        return out


class Net:
    """All that is learned, while it is."""

    def __init__(self, encoder: Encoder, points: Floats, bias: AdagradParameter, log_scale: AdamParameter) -> None:
        self.encoder, self.points, self.bias, self.log_scale = encoder, points, bias, log_scale
        self.squares = np.zeros(len(points), np.float32)  # Adagrad's memory
        self.n_steps = 0  # steps begun

    @property
    def scale(self) -> float:
        """What the products of points are multiplied by: s."""
        return float(np.exp(self.log_scale.value[0]))

    def arrays(self) -> store.Arrays:
        """Every array that a step changes, by name: what a checkpoint holds."""
        encoder = self.encoder
        arrays: store.Arrays = {"points": self.points, "squares": self.squares}
        arrays |= {"vectors": encoder.features.vectors, "vector_squares": encoder.features.squares}
        arrays |= {"unit_lengths": encoder.features.lengths}
        arrays |= {"bias": self.bias.value, "bias_square": self.bias.square}
        moving = {"log_scale": self.log_scale, "offset": encoder.offset, "length": encoder.length}
        if encoder.second is not None:
            dense = encoder.second
            moving |= {"second": dense.rows, "second_offset": dense.offset, "second_length": dense.length}
        for name, weights in moving.items():
            arrays |= {name: weights.value, f"{name}_mean": weights.mean, f"{name}_square": weights.square}
        return arrays

    def scores(self, points: Floats, chosen: SampledLabels) -> Floats:
        """The scores z of the chosen labels for each document. Shape (batch, len(chosen.ids))."""
        out = np.empty((len(points), len(chosen.ids)), np.float32)
        scaled = points * np.float32(self.scale)

        def score(start: int, stop: int) -> None:
            part = out[:, start:stop]
            np.matmul(scaled, self._some(chosen, start, stop).T, out=part)
            part += self.bias.value[chosen.ids[start:stop]]

        run_blocks(score, len(chosen.ids), LABEL_BLOCK)
        return out

    def descend_labels(
        self, errors: Floats, points: Floats, chosen: SampledLabels, pull: RegularizerGradient, rate: float
    ) -> Floats:
        """Move the labels on the gradient by their scores; that by the documents' points is returned."""
        n, scale = len(chosen.ids), np.float32(self.scale)
        places = pull.labels if chosen.every else np.searchsorted(chosen.ids[: chosen.n_sure], pull.labels)
        gradients = np.empty((-(-n // LABEL_BLOCK), *points.shape), np.float32)

        def descend(start: int, stop: int) -> None:
            error = errors[:, start:stop]
            np.matmul(error, self._some(chosen, start, stop), out=gradients[start // LABEL_BLOCK])
            own = error.T @ points
            own *= scale
            first, last = np.searchsorted(places, [start, stop])
            own[places[first:last] - start] += pull.of_labels[first:last]
            descend_unit_rows(own, chosen.ids, start, stop, rate, self.points, self.squares)
            self.bias.step(error.sum(axis=0), rate, chosen.ids[start:stop])

        run_blocks(descend, n, LABEL_BLOCK)
        gradient: Floats = gradients.sum(axis=0)  # in one order, whatever the threads did
        gradient *= scale
        return gradient

    def _some(self, chosen: SampledLabels, start: int, stop: int) -> Floats:
        """The points of some of the chosen labels; a view where all labels are chosen."""
        return self.points[slice(start, stop) if chosen.every else chosen.ids[start:stop], :-1]

    def packed(self, labels: Ints) -> Floats:
        """The points of some labels, in rising order, with what stands beside them; the others are given up."""
        for start in range(0, len(labels), LABEL_BLOCK):  # forward and in place: no second table
            some = labels[start : start + LABEL_BLOCK]
            self.points[start : start + len(some)] = self.points[some]
        return self.points[: len(labels)]

    def arm(self, length: float = 1.0) -> float:
        """Write b / lever beside points of some length, so that an inner product gives z; the lever is returned.

        It is such that b / lever is not much larger than the other coordinates: an index goes by all of them alike.
        """
        usual = length / np.sqrt(self.points.shape[1])
        lever = max(float(np.abs(self.bias.value).max() / (2 * usual)), 1e-3)
        np.divide(self.bias.value, np.float32(lever), out=self.points[:, -1])
        return lever

    def accuracy(self, X: Csr, Y: Csr, seen: Ints) -> float:
        """The share of right labels among the first 5 of those seen in train, at most as many as a document has."""
        lever = self.arm()
        asked = append_bias(self.encoder.points((X.data, X.indices, X.indptr)) * np.float32(self.scale), lever)
        return r_precision(index.Exact(self.points[seen], seen).search(asked, VALIDATION_K), Y)


def draw(ends: Ints, rng: np.random.Generator) -> Longs:
    """A place among the labels of each document, by chance; -1 for a document without."""
    counts = np.diff(ends)
    places = ends[:-1] + (rng.random(len(counts)) * counts).astype(np.int64)
    return np.where(counts > 0, places, -1)


def append_bias(points: Floats, lever: float) -> Floats:
    """Points with one more coordinate."""
    return np.concatenate([points, np.full((len(points), 1), lever, np.float32)], axis=1)


def place(examples: Floats, background: Floats, scale: float, share: float) -> tuple[Floats, float]:
    """The point and the bias of a new label, by the points of documents that carry it and of others.

    The point lies where the mean of the examples is, seen from that of the others. The bias is such that z is above 0
    for this share of the others: no more documents than are expected to carry the label.
    """
    v: Floats = examples.mean(axis=0) - background.mean(axis=0)
    v /= max(float(np.linalg.norm(v)), 1e-12)
    return v, -scale * float(np.quantile(background @ v, 1.0 - share))
