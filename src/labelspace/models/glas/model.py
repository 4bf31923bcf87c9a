"""GLaS: documents and labels embedded on one sphere, regularized by the co-occurrence of labels.

Guo et al., "Breaking the Glass Ceiling for Embedding-Based Classifiers for Large Output Spaces" (2019), Algorithm 2.
A label's score is z = s phi(x).v + b, where phi(x) and v have length 1; s is a scale and b the label's bias.
phi: document embeddings (batch, dim), V: label embeddings (m, dim), U: label similarities (m, m).

1. Initialize phi and the label embeddings v at random; b at the log-odds of each label's frequency.
2. For each batch of documents, apply input dropout and compute phi: feature embeddings, summed, through a ReLU
   (``n_layers=2``: and a dense layer), normalized to length 1.
3. Sample one label of each document.
4. Train on all labels, or, where they are many, on those of the batch, ``n_negatives`` sampled for the batch, and for
   each document the ``n_hard_negatives`` nearest ones by the label index.
5. The loss: binary cross-entropy (default), softmax cross-entropy, or the margin loss of eq. 1 between the sampled
   label and the hardest wrong ones.
6. The regularizer of eq. 3 on the sampled labels: the inner products of their embeddings are to equal their
   co-occurrence similarity U. Others: ``spread_out`` (eq. 2), ``gravity`` (documents and sampled labels repel).
7. Update feature and label embeddings of the batch by row-wise Adagrad, label embeddings along the sphere; all else by
   Adam or Adagrad. Learning rates fall linearly to 0.
8. Put the label embeddings into an index; rank the labels of a document by z.

The cost of a step does not depend on the number of features, nor above ``MAX_UNSAMPLED_LABELS`` on that of labels.

Where we differ, and why: the paper has no biases; binary cross-entropy, which we add, needs them, and with embeddings
of length 1 nothing else distinguishes a frequent label from a rare one. All labels of a document count in it and in
softmax, which is the expectation of sampling one. Row-wise Adagrad stores one number per row and touches only the rows
of a batch.
"""

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from labelspace import index
from labelspace.errors import DataError
from labelspace.estimator import learned, param
from labelspace.features.normalize import normalize_rows
from labelspace.index import Index, index_class
from labelspace.labels.cooccurrence import MEASURES
from labelspace.models import parameters
from labelspace.models.base import Model
from labelspace.models.checks import Inputs, check_inputs, check_widths
from labelspace.models.fit_context import FitContext, Held
from labelspace.models.glas.encoder import Encoder, Int8Encoder
from labelspace.models.glas.hard_negatives import mine_hard_negatives
from labelspace.models.glas.label_placement import DEFAULT_SHARE, place_label, require_names, with_count, without_label
from labelspace.models.glas.losses import loss_gradient
from labelspace.models.glas.network import Net, append_bias
from labelspace.models.glas.regularizers import regularizer_gradient
from labelspace.models.glas.training_data import TrainingData, sample_positives
from labelspace.parameter_constraints import boolean, integer, one_of, real
from labelspace.state_constraints import array, must, part, plain
from labelspace.training.checkpoints import data_fingerprint
from labelspace.training.epochs import run_epochs
from labelspace.training.losses import sigmoid
from labelspace.training.negative_sampling import seen_labels
from labelspace.training.sparse_layers import batch_rows
from labelspace.types import Csr, Ints, Progress, TopK

SCALE_LEARNING_RATE = 0.01  # of log s
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

    embedding_dim: int = param(512, integer(16, at_most=1024), "Dimension of the embeddings of labels and documents.")
    n_layers: int = param(1, one_of(1, 2), "Layers of the document encoder.")
    activation: str = param("relu", one_of("relu", "linear"), "Activation function of hidden layers.")
    weight_norm: bool = param(False, boolean(), "Normalize the weights of every unit.")
    loss: str = param("bce", one_of("bce", "softmax", "margin"), "Binary or softmax cross-entropy, or the margin loss.")
    margin: float = param(0.3, real(above=0), "Margin of the margin loss.")
    n_hardest: int = param(10, integer(1), "Hardest wrong labels that the margin loss counts.")
    regularizer: str = param(
        "glas", one_of("glas", "spread_out", "gravity", "none"), "Regularizer of label embeddings."
    )
    similarity: str = param("arithmetic", one_of(*MEASURES), "Similarity of labels that the GLaS regularizer aims at.")
    reg_weight: float = param(1000.0, real(at_least=0), "Weight of the regularizer.")
    scale: float = param(20.0, real(above=0), "Initial scale of the scores.")
    learn_scale: bool = param(True, boolean(), "Learn the scale.")
    input_dropout: float | None = parameters.input_dropout(None)
    dropout: float = parameters.dropout(0.4)
    epochs: int | None = parameters.epochs()
    batch_size: int | None = parameters.batch_size()
    learning_rate: float = parameters.learning_rate(0.03)
    feature_learning_rate: float = parameters.feature_learning_rate(0.2)
    all_labels: bool | None = parameters.all_labels()
    n_negatives: int = parameters.n_negatives(1024)
    n_hard_negatives: int = param(8, integer(0), "Hard negative labels mined per document, where labels are sampled.")
    patience: int | None = parameters.patience()
    index: str = param("auto", one_of(*index.choice.KINDS), "Kind of label index; auto chooses it by measured recall.")
    recall_target: float = param(0.99, real(above=0, at_most=1), "Recall that an approximate index must reach.")
    random_state: int = parameters.random_state()

    encoder_: Int8Encoder = learned(part(Int8Encoder, n_features="n_features", dim="dim"))
    scale_: float = learned(plain(real()))  # s
    bias_scale_: float = learned(plain(real()))  # last coordinate of a query; that of a label is b / bias_scale_
    # Embeddings of training documents.
    background_: npt.NDArray[np.float16] = learned(array("float16", "n_background", "dim"))
    index_: Index = learned(part(index_class))  # of (s v, b / bias_scale_)

    def check_state(self) -> None:
        """The index holds vectors of labels, with their biases."""
        must(self.index_.dimension == len(self.encoder_.hidden_bias) + 1, "an index of the length of its embeddings")
        must(len(self.background_) > 0 and self.bias_scale_ != 0, "embeddings of training documents, and a scale")
        must(int(self.index_.ids.max(initial=-1)) < self.n_labels_, f"an index of its {self.n_labels_} labels")

    def _fit(self, X: Csr, Y: Csr, context: FitContext) -> None:
        X, Y, held_out = context.early_stopping_split(normalize_rows(X), Y, self.patience, self.random_state)
        held_out = None if held_out is None else (normalize_rows(held_out[0]), held_out[1])
        net = self._init_net(X, Y)  # step 1
        with threadpool_limits(1, user_api="blas"):
            self._train(net, X, Y, held_out, context)  # steps 2 to 7
        self._store(net, X, Y, context)  # step 8

    def _init_net(self, X: Csr, Y: Csr) -> Net:
        rng = np.random.default_rng([self.random_state, 0])
        encoder = Encoder.random(X, self.embedding_dim, self.n_layers, self.activation == "relu", self.weight_norm, rng)
        return Net.random(encoder, Y, None if self.loss == "margin" else self.scale, rng)  # not in eq. 1

    def _train(self, net: Net, X: Csr, Y: Csr, held_out: Held | None, context: FitContext) -> None:
        """All epochs, from the last checkpoint on; with early stopping the net ends as it was after its best epoch."""
        measure = self.similarity if self.regularizer == "glas" else None
        data = TrainingData.build(X, Y, measure, self.batch_size, self.epochs, self.input_dropout, self.all_labels)
        seen = seen_labels(Y)
        identity = {"params": self.get_params(), "data": data_fingerprint(X, Y, *(held_out or ()))}
        run_epochs(
            net, data.epochs, lambda epoch: self._run_epoch(net, data, epoch, context.progress),
            None if held_out is None else lambda: net.validation_score(*held_out, seen), self.patience,
            identity, context.checkpoint,
        )  # fmt: skip

    def _run_epoch(self, net: Net, data: TrainingData, epoch: int, progress: Progress) -> None:
        """One pass over the documents; its random numbers depend on the seed and the epoch's number alone."""
        rng = np.random.default_rng([self.random_state, 1, epoch])
        hard = None
        if not data.all_labels and self.n_hard_negatives and epoch:
            hard = mine_hard_negatives(net, data.X, data.labels, self.n_hard_negatives, self.random_state, progress)
        order = rng.permutation(data.X.shape[0]).astype(np.int32)
        n_batches = -(-len(order) // data.batch_size)
        total = data.epochs * n_batches
        for batch in range(n_batches):
            rows = order[batch * data.batch_size : (batch + 1) * data.batch_size]
            done = epoch * n_batches + batch
            self._step(net, data, rows, None if hard is None else hard[rows], 1.0 - done / total, rng)
            progress("batches", done + 1, total)

    def _step(
        self, net: Net, data: TrainingData, rows: Ints, hard: Ints | None, lr_decay: float, rng: np.random.Generator
    ) -> None:
        """The body of Algorithm 2 for one batch; ``hard`` are its hard negatives."""
        net.n_steps += 1
        learning_rate, Y_batch = self.learning_rate * lr_decay, data.Y[rows]
        inputs = batch_rows(data.X, rows, data.input_dropout, rng)  # step 2
        activations = net.encoder.forward(inputs, self.dropout, rng)
        phi = activations.embeddings
        positives = sample_positives(Y_batch.indptr, rng)  # step 3
        sampled = data.sample_labels(Y_batch, self.n_negatives, hard, rng)  # step 4
        scores = net.scores(phi, sampled)
        score_gradient = loss_gradient(scores, sampled, positives, self.loss, self.margin, self.n_hardest)  # step 5
        labels = np.unique(Y_batch.indices[positives[positives >= 0]])  # step 6
        V = net.label_embeddings[labels, :-1]
        regularizer = regularizer_gradient(self.regularizer, self.reg_weight, labels, V, phi, data.similarities)
        gradient = net.update_labels(score_gradient, phi, sampled, regularizer, learning_rate)  # step 7
        if self.learn_scale and self.loss != "margin":
            by_log_scale = np.array([np.vdot(gradient, phi)], np.float32)
            net.log_scale.step(by_log_scale, SCALE_LEARNING_RATE * lr_decay, net.n_steps)
        if regularizer.of_documents is not None:
            gradient += regularizer.of_documents
        net.encoder.backward(activations, gradient, learning_rate, self.feature_learning_rate * lr_decay, net.n_steps)

    def _store(self, net: Net, X: Csr, Y: Csr, context: FitContext) -> None:
        """Store what prediction needs, and build the index of the label embeddings."""
        self.encoder_ = Int8Encoder.from_trained(net.encoder)
        self.scale_, self.bias_scale_ = net.scale, net.write_bias_column(net.scale)
        order = np.random.default_rng([self.random_state, 2]).permutation(X.shape[0])
        self.background_ = self.encoder_.embed(X[np.sort(order[:BACKGROUND_SIZE])]).astype(np.float16)
        net.label_embeddings[:, :-1] *= np.float32(self.scale_)
        seen = seen_labels(Y)
        queries = append_bias(self.encoder_.embed(X[np.sort(order[:INDEX_QUERIES])]), self.bias_scale_)
        self.index_ = index.choose(
            net.compact(seen), seen, queries, recall_target=self.recall_target, kind=self.index, seed=self.random_state,
            progress=context.progress,
        )  # fmt: skip

    def _predict(self, X: Csr, k: int) -> TopK:
        top = self.index_.search(append_bias(self.encoder_.embed(normalize_rows(X)), self.bias_scale_), k)
        if self.loss == "bce":
            listed = top.labels >= 0
            top.scores[listed] = sigmoid(top.scores[listed])
        return top

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
        embeddings = self.encoder_.embed(normalize_rows(X))
        v, b = place_label(embeddings, self.background_.astype(np.float32), self.scale_, share)
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
        self.index_.remove([label])
        self.labels_ = without_label(labels, label)
