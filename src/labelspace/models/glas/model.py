"""GLaS: documents and labels embedded on one sphere, regularized by the co-occurrence of labels.

Guo et al., "Breaking the Glass Ceiling for Embedding-Based Classifiers for Large Output Spaces" (2019), Algorithm 2.
A label's score is z = s phi(x).v + b, where phi(x) and v have length 1; s is a scale and b the label's bias.
phi: document embeddings (batch, dim), V: label embeddings (m, dim), U: label similarities (m, m).

1. Initialize phi and the label embeddings v at random; b at the log-odds of each label's frequency.
2. For each batch of documents, apply input dropout and compute phi: feature embeddings, summed, through a ReLU
   (``n_layers`` above 1: and dense layers with ReLUs between), normalized to length 1.
3. Draw one label of each document.
4. Train on all labels, or, where they are many, on those of the batch, ``n_negatives`` sampled for the batch, and for
   each document the ``n_hard_negatives`` nearest ones by an approximate search.
5. The loss: binary cross-entropy (default), softmax cross-entropy, or the margin loss of eq. 1, between the drawn label
   and all wrong ones or the hardest (stochastic negative mining).
6. The regularizer of eq. 3 on the drawn labels: the inner products of their embeddings are to equal their co-occurrence
   similarity U. Others: ``spread_out`` (eq. 2), ``laplacian`` (eq. 4), ``gravity`` (documents and labels repel).
7. Update feature and label embeddings of the batch by row-wise Adagrad, label embeddings along the sphere; all else by
   Adam or Adagrad. Learning rates fall linearly to 0. Or all by SGD, with a rate for phi and one for labels.
8. Put the label embeddings into an index; rank the labels of a document by z.

The cost of a step does not depend on the number of features, nor above ``MAX_UNSAMPLED_LABELS`` on that of labels.

Where we differ, and why: the paper has no biases; binary cross-entropy, which we add, needs them, and with embeddings
of length 1 nothing else distinguishes a frequent label from a rare one. All labels of a document count in it and in
softmax, which is the expectation of drawing one. Row-wise Adagrad stores one number per row and touches only the rows
of a batch. The preset ``paper`` is Algorithm 2 as published, ``algorithm_1`` is Algorithm 1.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from labelspace import index
from labelspace.errors import DataError, ParameterError
from labelspace.estimator import learned, param
from labelspace.estimator.parameter_constraints import (
    AllBut,
    boolean,
    integer,
    list_of,
    mapping,
    one_of,
    optional,
    real,
)
from labelspace.estimator.state_constraints import array, must, part, plain
from labelspace.features.normalize import normalize_rows
from labelspace.index import Index, index_class
from labelspace.labels.statistics import MEASURES
from labelspace.models import parameters
from labelspace.models.base import Model
from labelspace.models.batched_prediction import overfetch
from labelspace.models.checks import Inputs, check_inputs, check_widths
from labelspace.models.evidence import Evidence
from labelspace.models.fit_context import FitContext, Held
from labelspace.models.glas.encoder import Encoder, Int8Encoder
from labelspace.models.glas.explanations import LabelVectors
from labelspace.models.glas.hard_negatives import mine_hard_negatives
from labelspace.models.glas.label_lists import LabelLists
from labelspace.models.glas.label_placement import DEFAULT_SHARE, place_label, require_names, with_count, without_label
from labelspace.models.glas.losses import loss_gradient
from labelspace.models.glas.network import Net, append_bias
from labelspace.models.glas.presets import ALGORITHM_1, ALGORITHM_2
from labelspace.models.glas.regularizers import USE_SIMILARITIES, regularizer_gradient
from labelspace.models.glas.training_data import TrainingData, sample_positives
from labelspace.training.allowed_index import index_among
from labelspace.training.checkpoints import data_fingerprint
from labelspace.training.epochs import Curve, epoch_batches, run_epochs
from labelspace.training.losses import seen_labels, sigmoid
from labelspace.training.sparse_layers import batch_rows
from labelspace.types import Bools, Csr, Floats, Ints, Progress, TopK

SCALE = 20.0  # s at first, of cross-entropies
SCALE_LEARNING_RATE = 0.01  # of log s, by Adam
CURVE_DOCUMENTS = 2_000  # training documents by which the curve is measured
INDEX_QUERIES = 300  # documents that the index is chosen by
BACKGROUND_SIZE = 2_000  # training documents whose embeddings are stored: what a new label is contrasted with


class Glas(Model):
    """Embeds labels and documents in one space, where a label can be added without training.

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
    trains_from_cache = True
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"paper": ALGORITHM_2, "algorithm_1": ALGORITHM_1}

    normalize: bool = parameters.normalize()
    embedding_dim: int = param(512, integer(16, at_most=1024), "Dimension of the embeddings of labels and documents.")
    n_layers: int = param(1, integer(1), "Layers of the document encoder, all of the same width.")
    activation: str = param("relu", one_of("relu", "linear"), "Activation function of hidden layers.")
    weight_norm: bool = param(False, boolean(), "Normalize the weights of every unit.")
    hidden_bias: bool = param(True, boolean(), "Learn a bias for every unit of the document encoder.")
    bias: bool = param(True, boolean(), "Learn a bias for every label.")
    normalize_document_embeddings: bool = param(True, boolean(), "Normalize document embeddings to length one.")
    normalize_label_embeddings: bool = param(True, boolean(), "Normalize label embeddings to length one.")
    loss: str = param("bce", one_of("bce", "softmax", "margin"), "Binary or softmax cross-entropy, or the margin loss.")
    margin: float = param(0.3, real(above=0), "Margin of the margin loss.").only_with(loss="margin")
    positives: str | None = param(
        None, one_of("all", "one"),
        "True labels of a document that the loss counts, all or one drawn; none takes one for the margin loss.",
    )  # fmt: skip
    pairs: str = param(
        "hardest", one_of("hardest", "all"),
        "Wrong labels that the margin loss pairs with a true one: the mean of the hardest, or the sum of all.",
    ).only_with(loss="margin")  # fmt: skip
    n_hardest: int = param(10, integer(1), "Hardest wrong labels that the margin loss counts.").only_with(
        loss="margin", pairs="hardest"
    )
    regularizer: str = param(
        "glas", one_of("glas", "spread_out", "laplacian", "gravity", "none"), "Regularizer of label embeddings."
    )
    similarity: str = param(
        "arithmetic", one_of(*MEASURES), "Similarity of labels that the regularizer aims at."
    ).only_with(regularizer=USE_SIMILARITIES, reg_weight=AllBut(0))
    reg_weight: float = param(1000.0, real(at_least=0), "Weight of the regularizer.").only_with(
        regularizer=AllBut("none")
    )
    repeat_labels: bool = param(
        False, boolean(), "Count a label in the regularizer as often as it is drawn."
    ).only_with(regularizer=AllBut("none"), reg_weight=AllBut(0))
    scale: float | None = param(
        None, real(above=0), f"Initial scale of the scores; none takes {SCALE:g}, for the margin loss 1."
    )
    learn_scale: bool | None = param(None, boolean(), "Learn the scale; none does, but not for the margin loss.")
    input_dropout: float | None = parameters.input_dropout(None)
    dropout: float = parameters.dropout(0.4)
    epochs: int | None = parameters.epochs()
    batch_size: int | None = parameters.batch_size()
    optimizer: str = param("adagrad", one_of("adagrad", "sgd"), "Row-wise Adagrad, with Adam for dense layers, or SGD.")
    decay: bool = param(True, boolean(), "Let learning rates fall linearly to 0.")
    learning_rate: float = parameters.learning_rate(0.03)
    feature_learning_rate: float = parameters.feature_learning_rate(0.2)
    all_labels: bool | None = parameters.all_labels()
    n_negatives: int = parameters.n_negatives(1024)
    n_hard_negatives: int = param(8, integer(0), "Hard negative labels mined per document.").only_with(
        **parameters.SAMPLED
    )
    patience: int | None = parameters.patience()
    stop_by: str = param(
        "r_precision", one_of("r_precision", "precision"),
        "Score of validation documents to stop by: R-precision at 5, or precision at 1.",
    ).only_with(patience=AllBut(None))  # fmt: skip
    curve: bool = param(False, boolean(), "Report P@1 on training and validation documents after each epoch.")
    index: str = param("auto", one_of(*index.choice.KINDS), "Kind of label index; auto chooses it by measured recall.")
    recall_target: float = param(0.99, real(above=0, at_most=1), "Recall that an approximate index must reach.")
    random_state: int = parameters.random_state()

    encoder_: Int8Encoder = learned(part(Int8Encoder, n_features="n_features", dim="dim"))
    scale_: float = learned(plain(real()))  # s
    bias_scale_: float = learned(plain(real()))  # last coordinate of a query; that of a label is b / bias_scale_
    # Embeddings of training documents.
    background_: npt.NDArray[np.float16] = learned(array("float16", "n_background", "dim"))
    index_: Index = learned(part(index_class))  # of (s v, b / bias_scale_)
    # P@1 after each epoch, in percent; None without ``curve``.
    curve_: list[dict[str, float]] | None = learned(plain(optional(list_of(mapping(real())))), default=None)

    def check_params(self) -> None:
        """Check every parameter, that those of the loss agree, and that there is a package for the kind of index."""
        super().check_params()
        if self.loss == "bce" and self.positives == "one":
            raise ParameterError("positives must be all with loss=bce, but is 'one'; leave it out")
        if self.loss == "margin" and self.positives == "all" and self.pairs != "all":
            raise ParameterError(
                "positives must be one with pairs=hardest, but is 'all'; leave it out or set pairs=all"
            )
        if self.index in index.approximate.KINDS:
            index.approximate.require_faiss(self.index)

    def check_state(self) -> None:
        """The index holds vectors of labels, with their biases."""
        must(self.index_.dimension == len(self.encoder_.hidden_bias) + 1, "an index of the length of its embeddings")
        must(len(self.background_) > 0 and self.bias_scale_ != 0, "embeddings of training documents, and a scale")
        must(int(self.index_.ids.max(initial=-1)) < self.n_labels_, f"an index of its {self.n_labels_} labels")

    def _fit(self, X: Csr, Y: Csr, context: FitContext) -> None:
        X, Y, held_out = context.early_stopping_split(self._rows(X), Y, self.patience, self.random_state)
        if held_out is None and self.curve:
            held_out = context.validation
        held_out = None if held_out is None else (self._rows(held_out[0]), held_out[1])
        net = self._init_net(X, Y)  # step 1
        with threadpool_limits(1, user_api="blas"):
            self._train(net, X, Y, held_out, context)  # steps 2 to 7
        self._store(net, X, Y, context)  # step 8

    def _init_net(self, X: Csr, Y: Csr) -> Net:
        rng = np.random.default_rng([self.random_state, 0])
        encoder = Encoder.random(
            X, self.embedding_dim, self.n_layers, self.activation == "relu", self.weight_norm, rng, self.optimizer,
            self.normalize_document_embeddings, self.hidden_bias,
        )  # fmt: skip
        margin = self.loss == "margin"
        scale, bias = self.scale or (1.0 if margin else SCALE), "zero" if margin else "log_odds"
        return Net.random(
            encoder, Y, scale, bias if self.bias else "none", rng, self.optimizer, self.normalize_label_embeddings
        )

    def _rows(self, X: Csr) -> Csr:
        return normalize_rows(X) if self.normalize else X

    def _train(self, net: Net, X: Csr, Y: Csr, held_out: Held | None, context: FitContext) -> None:
        """All epochs, from the last checkpoint on; with early stopping the net ends as it was after its best epoch."""
        measure = self.similarity if self.regularizer in USE_SIMILARITIES else None
        data = TrainingData.build(X, Y, measure, self.batch_size, self.epochs, self.input_dropout, self.all_labels)
        if not data.all_labels and self.n_hard_negatives and len(data.labels):
            net.lists = LabelLists(data.labels, net.label_embeddings.shape[1])
        seen = seen_labels(Y)
        identity = {"params": self.get_params(), "data": data_fingerprint(X, Y, *(held_out or ()))}
        curve = self._curve(net, X, Y, held_out, seen) if self.curve else None
        score = net.validation_score if self.stop_by == "r_precision" else net.precision_at_1
        run_epochs(
            net, data.epochs, lambda epoch: self._run_epoch(net, data, epoch, context.progress),
            None if held_out is None or self.patience is None else lambda: score(*held_out, seen), self.patience,
            identity, context.checkpoint, curve=curve,
        )  # fmt: skip
        self.curve_ = None if curve is None else _curve_rows(curve.rows)

    def _curve(self, net: Net, X: Csr, Y: Csr, held_out: Held | None, seen: Ints) -> Curve:
        """P@1 on a sample of the training documents, the same in each epoch, and on documents not trained on."""
        rows = np.sort(np.random.default_rng([self.random_state, 3]).permutation(X.shape[0])[:CURVE_DOCUMENTS])
        measured = [(X[rows], Y[rows])] + ([] if held_out is None else [held_out])
        return Curve(lambda: [net.precision_at_1(*documents, seen) for documents in measured])

    def _run_epoch(self, net: Net, data: TrainingData, epoch: int, progress: Progress) -> None:
        """One pass over the documents; its random numbers depend on the seed and the epoch's number alone."""
        rng = np.random.default_rng([self.random_state, 1, epoch])
        hard = None
        if net.lists is not None and epoch:
            hard = mine_hard_negatives(net, net.lists, data.X, self.n_hard_negatives, self.random_state, progress)
        n_batches = len(range(0, data.X.shape[0], data.batch_size))
        batches = epoch_batches(data.X.shape[0], data.batch_size, epoch, data.epochs, rng)
        for done, (rows, lr_decay) in enumerate(batches, epoch * n_batches + 1):
            factor = lr_decay if self.decay else 1.0
            self._step(net, data, rows, None if hard is None else hard[rows], factor, rng)
            progress("batches", done, data.epochs * n_batches)
        if self.optimizer == "sgd" and not net.is_finite():
            raise ParameterError(
                f"learning rates must be small enough for SGD, but weights overflowed in epoch {epoch + 1}; "
                "set a smaller learning_rate and feature_learning_rate"
            )

    def _step(
        self, net: Net, data: TrainingData, rows: Ints, hard: Ints | None, lr_decay: float, rng: np.random.Generator
    ) -> None:
        """The body of Algorithm 2 for one batch; ``hard`` are its hard negatives."""
        net.n_steps += 1
        learning_rate, feature_learning_rate = self.learning_rate * lr_decay, self.feature_learning_rate * lr_decay
        sgd, Y_batch = self.optimizer == "sgd", data.Y[rows]
        inputs = batch_rows(data.X, rows, data.input_dropout, rng)  # step 2
        activations = net.encoder.forward(inputs, self.dropout, rng)
        phi = activations.embeddings
        positives = sample_positives(Y_batch.indptr, rng)  # step 3
        sampled = data.sample_labels(Y_batch, self.n_negatives, hard, rng)  # step 4
        scores = net.scores(phi, sampled)
        counted = positives if (self.positives or ("one" if self.loss == "margin" else "all")) == "one" else None
        n_hardest = None if self.pairs == "all" else self.n_hardest
        score_gradient = loss_gradient(scores, sampled, counted, self.loss, self.margin, n_hardest)  # step 5
        labels, counts = np.unique(Y_batch.indices[positives[positives >= 0]], return_counts=True)  # step 6
        V = net.label_embeddings[labels, :-1]
        regularizer = regularizer_gradient(
            self.regularizer, self.reg_weight, labels, V, phi, data.similarities, counts if self.repeat_labels else None
        )
        gradient = net.update_labels(score_gradient, phi, sampled, regularizer, learning_rate)  # step 7
        if self.loss != "margin" if self.learn_scale is None else self.learn_scale:
            by_log_scale = np.array([np.vdot(gradient, phi)], np.float32)
            net.log_scale.step(by_log_scale, learning_rate if sgd else SCALE_LEARNING_RATE * lr_decay, net.n_steps)
        if regularizer.of_documents is not None:
            gradient += regularizer.of_documents
        dense_rate = feature_learning_rate if sgd else learning_rate
        net.encoder.backward(activations, gradient, dense_rate, feature_learning_rate, net.n_steps)

    def _store(self, net: Net, X: Csr, Y: Csr, context: FitContext) -> None:
        """Store what prediction needs, and build the index of the label embeddings."""
        self.encoder_ = Int8Encoder.from_trained(net.encoder)
        self.scale_, self.bias_scale_ = net.scale, net.write_bias_column(net.scale)
        order = np.random.default_rng([self.random_state, 2]).permutation(X.shape[0])
        sampled = np.sort(order[:BACKGROUND_SIZE])
        embeddings = self._embed(X[sampled])
        self.background_ = embeddings.astype(np.float16)
        net.label_embeddings[:, :-1] *= np.float32(self.scale_)
        seen = seen_labels(Y)
        queries, measured_on = append_bias(embeddings, self.bias_scale_), np.isin(sampled, order[:INDEX_QUERIES])
        self.index_ = index.choose(
            net.compact(seen), seen, queries[measured_on], recall_target=self.recall_target, kind=self.index,
            seed=self.random_state, progress=context.progress, more_queries=queries[~measured_on],
        )  # fmt: skip

    def _embed(self, X: Csr) -> Floats:
        return self.encoder_.embed(X, self.normalize_document_embeddings)

    def report(self) -> dict[str, Any]:
        """With ``curve``, P@1 on training and validation documents after each epoch, as in Figure 1."""
        self.check_fitted()
        return {} if self.curve_ is None else {"curve": self.curve_}

    def _predict(self, X: Csr, k: int, allowed: Bools | None = None) -> TopK:
        if allowed is None:
            return self._search(self.index_, X, k)
        some = index_among(self.index_, allowed, self.mask_cache)
        return overfetch(self._predict, X, k, allowed) if some is None else self._search(some, X, k)

    def _search(self, index: Index, X: Csr, k: int) -> TopK:
        if not len(index):
            return TopK.empty(X.shape[0], k)
        top = index.search(append_bias(self._embed(self._rows(X)), self.bias_scale_), k)
        if self.loss == "bce":
            listed = top.labels >= 0
            top.scores[listed] = sigmoid(top.scores[listed])
        return top

    def explain(self, X: Csr, labels: Ints) -> list[Evidence]:
        """Why these labels have their scores z, which are log-odds for loss=bce, and as they are for other losses."""
        known, X = LabelVectors(self.index_, self.bias_scale_), self._rows(X)
        found = known.evidence(self.encoder_, self.normalize_document_embeddings, X, labels, self.view.name)
        return found if self.loss == "bce" else [replace(evidence, score=evidence.log_odds) for evidence in found]

    def keep_for_prediction(self) -> Self:
        """Drop the embeddings of training documents, but one."""
        self.background_ = self.background_[:1].copy()
        return self

    def add_label(self, name: str, examples: Inputs, share: float = DEFAULT_SHARE) -> int:
        """Add a label by documents that carry it, without training; returns its id.

        ``share`` of all documents are expected to carry it. A name that was removed before gets its id again.
        """
        self.check_fitted()
        labels = require_names(self.labels_)
        views = check_inputs(examples)
        check_widths(views, self.widths_)
        X = self.read(views)
        if not X.shape[0] or not X.nnz:
            raise DataError(f"a label must have an example with a known feature, but {name!r} has none; give some")
        labels = labels.extended([name])
        label = labels.index[name]
        if label in self.index_.ids:
            raise DataError(f"a label that is added must be new, but {name!r} is known; remove it first")
        embeddings = self._embed(self._rows(X))
        v, b = place_label(embeddings, self.background_.astype(np.float32), self.scale_, share)
        b = b if self.bias else 0.0
        self.mask_cache.forget()
        self.index_.add([label], np.append(self.scale_ * v, b / self.bias_scale_)[None])
        self.labels_, self.n_labels_ = with_count(labels, label, X.shape[0]), len(labels)
        return label

    def remove_label(self, name: str) -> None:
        """Never suggest a label again, without training."""
        self.check_fitted()
        labels = require_names(self.labels_)
        label = labels.index.get(name, -1)
        if label not in self.index_.ids:
            raise DataError(f"a label that is removed must be known, but {name!r} is not; see labels_.names")
        self.mask_cache.forget()
        self.index_.remove([label])
        self.labels_ = without_label(labels, label)


def _curve_rows(rows: list[list[float]]) -> list[dict[str, float]]:
    """A row per epoch: P@1 in percent on training documents and, where there are some, on validation documents."""
    names = ("train P@1", "validation P@1")
    return [
        {"epoch": epoch} | {name: round(100 * score, 2) for name, score in zip(names, row, strict=False)}
        for epoch, row in enumerate(rows, 1)
    ]
