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

from collections.abc import Collection, Mapping, Sequence
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
from labelspace.models.batched_prediction import index_among, overfetch
from labelspace.models.checks import Inputs, check_inputs, check_widths
from labelspace.models.evidence import Evidence
from labelspace.models.fit_context import FitContext
from labelspace.models.glas.encoder import Int8Encoder
from labelspace.models.glas.explanations import label_evidence
from labelspace.models.glas.learning import learn, place_label
from labelspace.models.glas.losses import USE_SIMILARITIES
from labelspace.models.glas.network import Net, append_bias
from labelspace.models.glas.training import ENOUGH_STEPS, EPOCH_BOUNDS, SCALE, train
from labelspace.models.partial_fit import NewDocuments
from labelspace.training.epochs import batch_schedule
from labelspace.training.losses import listed_probabilities, seen_labels
from labelspace.training.replay import MAX_SHARE, GradientRoots, Replay, nothing_to_replay
from labelspace.types import Bools, Csr, Floats, Ints, LabelSpace, Longs, Rng, TopK

INDEX_QUERIES = 300  # documents that the index is chosen by: more measure its recall better, and take longer
BACKGROUND_SIZE = 2_000  # training documents whose embeddings are stored: what a new label is contrasted with
DEFAULT_SHARE = 0.005  # of all documents, expected to carry a new label

# The paper's algorithms as parameters: all in which they differ from our defaults; lines are of the algorithms.
BOTH_ALGORITHMS: dict[str, Any] = {
    "embedding_dim": 1024,  # section 4
    "n_layers": 2,  # section 2.1: several linear layers with ReLU
    "hidden_bias": False,  # section 2.1: phi(x) = w'x
    "bias": False,  # section 2.1: h(x) = phi(x)'V
    "loss": "margin",  # eq. 1
    "pairs": "all",  # eq. 1: a sum over the sampled labels
    "all_labels": False,  # section 2.1: a sampled subset
    "n_hard_negatives": 0,
    "dropout": 0.0,
    "optimizer": "sgd",  # line 12, line 20
    "decay": False,
    "epochs": 10,  # section 4
    "patience": 1,  # section 4: until accuracy on held-out documents ceases to improve
    "stop_by": "precision",
    "batch_size": 4096,  # section 4
}
ALGORITHM_1 = BOTH_ALGORITHMS | {
    "normalize_document_embeddings": False,
    "normalize_label_embeddings": False,
    "regularizer": "none",
    "input_dropout": 0.0,
}
ALGORITHM_2 = BOTH_ALGORITHMS | {
    "weight_norm": True,  # section 3.1
    "reg_weight": 10.0,  # section 4
    "repeat_labels": True,  # lines 16 and 17: B x B
    "input_dropout": 0.2,  # section 4: keep probability 0.8
    "learning_rate": 0.003,  # eta_V, not given, nor is eta_w: chosen on validation documents
    "feature_learning_rate": 1.0,
}


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
        None,
        one_of("all", "one"),
        "True labels of a document that the loss counts, all or one drawn; none takes one for the margin loss.",
    )
    pairs: str = param(
        "hardest",
        one_of("hardest", "all"),
        "Wrong labels that the margin loss pairs with a true one: the mean of the hardest, or the sum of all.",
    ).only_with(loss="margin")
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
        "r_precision",
        one_of("r_precision", "precision"),
        "Score of validation documents to stop by: R-precision at 5, or precision at 1.",
    ).only_with(patience=AllBut(None))
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
    # Labels that were removed, by their ids; None for none.
    removed_: Ints | None = learned(
        array("int32", "n_removed", at_least=0, below="n_labels", optional=True), default=None
    )
    # For ``partial_fit``; None for models that were saved before there was any.
    replay_: Replay | None = learned(
        part(Replay, optional=True, n_features="n_features", n_labels="n_labels"), default=None
    )
    gradient_roots_: GradientRoots | None = learned(
        part(GradientRoots, optional=True, n_features="n_features", n_labels="n_labels"), default=None
    )
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
        """Check that the index contains vectors of labels, with their biases."""
        must(self.index_.dimension == len(self.encoder_.hidden_bias) + 1, "an index of the length of its embeddings")
        must(len(self.background_) > 0 and self.bias_scale_ != 0, "embeddings of training documents, and a scale")
        must(int(self.index_.ids.max(initial=-1)) < self.n_labels_, f"an index of its {self.n_labels_} labels")

    def _fit(self, X: Csr, Y: Csr, context: FitContext) -> None:
        X, Y, held_out = context.early_stopping_split(self._rows(X), Y, self.patience, self.random_state)
        if held_out is None and self.curve:
            held_out = context.validation
        held_out = None if held_out is None else (self._rows(held_out[0]), held_out[1])
        with threadpool_limits(1, user_api="blas"):
            net, curve = train(self, X, Y, held_out, context)  # steps 1 to 7
        self.curve_ = None if curve is None else _curve_rows(curve)
        self._store(net, X, Y, context)  # step 8

    def _rows(self, X: Csr) -> Csr:
        return normalize_rows(X) if self.normalize else X

    def _store(self, net: Net, X: Csr, Y: Csr, context: FitContext) -> None:
        """Store what prediction and going on learning need, and build the index of the label embeddings."""
        batch_size, _ = batch_schedule(X.shape[0], self.batch_size, self.epochs, ENOUGH_STEPS, EPOCH_BOUNDS)
        self.gradient_roots_ = GradientRoots.of(
            net.squares(), batch_size, np.bincount(Y.indices, minlength=Y.shape[1]) == 0
        )
        self.removed_ = None
        self.encoder_ = Int8Encoder.from_trained(net.encoder)
        self.scale_, self.bias_scale_ = net.scale, net.write_bias_column(net.scale)
        order = np.random.default_rng([self.random_state, 2]).permutation(X.shape[0])
        sampled = np.sort(order[:BACKGROUND_SIZE])
        embeddings = self.embed(X[sampled])
        self.background_ = embeddings.astype(np.float16)
        net.label_embeddings[:, :-1] *= np.float32(self.scale_)
        seen = seen_labels(Y)
        queries, measured_on = append_bias(embeddings, self.bias_scale_), np.isin(sampled, order[:INDEX_QUERIES])
        self.index_ = index.choose(
            net.compact(seen),
            seen,
            queries[measured_on],
            recall_target=self.recall_target,
            kind=self.index,
            seed=self.random_state,
            progress=context.progress,
            more_queries=queries[~measured_on],
        )
        self.replay_ = Replay.of(X, Y, self._replay_bytes, np.random.default_rng([self.random_state, 4]))

    @property
    def _replay_bytes(self) -> int:
        """The most that the documents to replay may take."""
        return int(MAX_SHARE * (self.encoder_.feature_embeddings.size + len(self.index_) * self.index_.dimension))

    @property
    def removed(self) -> Ints:
        """The ids of labels that were removed."""
        return np.zeros(0, np.int32) if self.removed_ is None else self.removed_

    def partial_fit(self, new: NewDocuments) -> Sequence[str]:
        """Make a few steps on further documents, and on some that are replayed: see ``glas.learning``."""
        if self.replay_ is None or self.gradient_roots_ is None:
            raise nothing_to_replay(self.name)
        X, replay = self._rows(new.X), self.replay_
        rng = np.random.default_rng([self.random_state, 5, replay.n_learned])
        learn(self, X, new, replay, self.gradient_roots_.with_labels(new.n_labels), rng)
        complete = np.flatnonzero(new.are_complete)
        self.replay_ = replay.with_documents(X[complete], new.Y[complete], self._replay_bytes, rng)
        self._renew_background(X, replay.n_learned, rng)
        return ()

    def _renew_background(self, X: Csr, n_learned: int, rng: Rng) -> None:
        """Put the embeddings of new documents in the place of some known ones, as a sample of all has them."""
        kept = self.background_
        n_new = int(rng.hypergeometric(X.shape[0], n_learned, min(len(kept), n_learned)))
        background = np.array(kept)
        places, rows = rng.permutation(len(kept))[:n_new], rng.permutation(X.shape[0])[:n_new]
        background[places] = self.embed(X[rows]).astype(np.float16)
        self.background_ = background

    def growing_views(self) -> Collection[str]:
        """Return the view of the documents."""
        return (self.view.name,)

    def insert_features(self, at: Mapping[str, Longs]) -> None:
        """Insert features that no document has before these columns: their embedding is 0."""
        columns, stored = at[self.view.name], self.encoder_
        table = np.insert(stored.feature_embeddings, columns, 0, axis=0)
        scales = np.insert(stored.feature_scales, columns, 0)
        self.encoder_ = stored._replace(feature_embeddings=table, feature_scales=scales)
        if self.gradient_roots_ is not None:
            self.gradient_roots_ = self.gradient_roots_.insert_features(columns)
        if self.replay_ is not None:
            self.replay_ = self.replay_.insert_features(columns, len(scales))

    def embed(self, X: Csr) -> Floats:
        """Return the embeddings of documents, whose rows are normalized with ``normalize``. Shape (n, dim)."""
        return self.encoder_.embed(X, self.normalize_document_embeddings)

    def report(self) -> dict[str, Any]:
        """Return, with ``curve``, P@1 on training and validation documents after each epoch, as in Figure 1."""
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
        top = index.search(append_bias(self.embed(self._rows(X)), self.bias_scale_), k)
        return listed_probabilities(top) if self.loss == "bce" else top

    def explain(self, X: Csr, labels: Ints) -> list[Evidence]:
        """Explain the scores z of some labels, which are log-odds for loss=bce, and scores as they are otherwise."""
        trained = (self.index_, self.bias_scale_, self.encoder_, self.normalize_document_embeddings)
        found = label_evidence(*trained, self._rows(X), labels, self.view.name)
        return found if self.loss == "bce" else [replace(evidence, score=evidence.log_odds) for evidence in found]

    def keep_for_prediction(self) -> Self:
        """Drop the embeddings of training documents except one; those to replay stay, since members go on learning."""
        self.background_ = self.background_[:1].copy()
        return self

    def add_label(self, name: str, examples: Inputs, share: float = DEFAULT_SHARE) -> int:
        """Add a label by documents that carry it, without training, and return its id.

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
        embeddings = self.embed(self._rows(X))
        v, b = place_label(embeddings, self.background_.astype(np.float32), self.scale_, share)
        b = b if self.bias else 0.0
        self.mask_cache.forget()
        self.index_ = self.index_.with_vectors([label], np.append(self.scale_ * v, b / self.bias_scale_)[None])
        self.removed_ = self._removed_after(np.setdiff1d(self.removed, [label]))
        if self.gradient_roots_ is not None:
            self.gradient_roots_ = self.gradient_roots_.with_labels(len(labels))
        self.labels_, self.n_labels_ = with_count(labels, label, X.shape[0]), len(labels)
        return label

    def has_label(self, name: str) -> bool:
        """Return whether a label is suggested: it was learned or added, and not removed."""
        return require_names(self.labels_).index.get(name, -1) in self.index_.ids

    def remove_label(self, name: str) -> None:
        """Never suggest a label again, without training."""
        self.check_fitted()
        labels = require_names(self.labels_)
        label = labels.index.get(name, -1)
        if label not in self.index_.ids:
            raise DataError(f"a label that is removed must be known, but {name!r} is not; see labels_.names")
        self.mask_cache.forget()
        self.index_.remove([label])
        self.removed_ = self._removed_after(np.union1d(self.removed, [label]))
        self.labels_ = without_label(labels, label)

    def _removed_after(self, labels: Ints) -> Ints | None:
        return labels.astype(np.int32) if len(labels) else None


def _curve_rows(rows: list[list[float]]) -> list[dict[str, float]]:
    """Return a row per epoch: P@1 in percent on training documents and, if any, on validation documents."""
    names = ("train P@1", "validation P@1")
    return [
        {"epoch": epoch} | {name: round(100 * score, 2) for name, score in zip(names, row, strict=False)}
        for epoch, row in enumerate(rows, 1)
    ]


def require_names(labels: LabelSpace | None) -> LabelSpace:
    """Return the labels; raise DataError if they have no names."""
    if labels is None:
        raise DataError("labels must have names to come and go, but the model has none; fit it with labels=")
    return labels


def with_count(labels: LabelSpace, label: int, n_documents: int) -> LabelSpace:
    """Return the labels with a new count of training documents of one label."""
    counts = np.zeros(len(labels), np.int64) if labels.counts is None else labels.counts.copy()
    counts[label] = n_documents
    return replace(labels, counts=counts)


def without_label(labels: LabelSpace, label: int) -> LabelSpace:
    """Return the labels with one retired: its id stays, its count is 0, and the hierarchy bypasses it."""
    if labels.hierarchy is not None:  # else consistent predictions would include it as an ancestor
        labels = replace(labels, hierarchy=labels.hierarchy.without(label))
    return with_count(labels, label, 0)
