"""SeCSeq: labels as short codes, which a sequence model writes digit by digit.

Chang et al., "SeCSeq: Semantic Coding for Sequence-to-Sequence based Extreme Multi-label Classification" (2018).

1. Make a vector of each label (``label_vectors``): of its documents, of walks among labels that stand together, of its name.
2. Turn vectors into codes of ``code_length`` digits with ``code_size`` values each, so that labels that are alike begin alike
   (``coding``, ``quantizer``). Another seed gives another tree of codes; steps 3 to 5 are done for each of ``n_estimators``.
3. Read a document: its features as a bag, or its words in a row by a convolution or a GRU with attention (``encoder``).
4. Learn to write the codes of its labels (``target``): after each prefix the ``set`` of digits that follow, each by
   itself; or the digits of one ``label`` drawn of the document's; or, as in the paper, the ``sequence`` of all its
   labels in one ``label_order``, and its end. Only digits that exist after a prefix are scored.
5. Weights move by Adam, gradients cut at ``clip_norm``; the vectors of a batch's features by row-wise Adagrad. Rates fall to
   0 in a straight line.
6. Decode: the most probable codes by a ``beam_size``, or draws (``decoding=sampling``), along codes that exist. A label that
   shares its code gets its share of what the code gets; the mean over the trees is the score.

Where we differ, and why: the paper writes sequences and counts labels in them. A ranking asks for the chance of each
label whatever the others are, and that is what ``set`` learns: it is better and quicker (docs/methods/secseq.md has the
figures), so it is the default. Prefixes are cut anew by clustering in place of one projection a digit. The number of
weights depends on neither the number of labels nor that of documents.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from labelspace.constraints import Constraint, integer, one_of, optional, real
from labelspace.errors import require
from labelspace.estimator import learned, param
from labelspace.features.normalize import normalize_rows
from labelspace.features.views import SEQUENCES, WORDS, View, Views
from labelspace.kernels.code_search import mean_of_lists
from labelspace.kernels.quantize import Bytes, quantize_int8
from labelspace.kernels.threads import run_blocks, side_by_side
from labelspace.labels.codes import QUANTIZERS, SCHEMES, Codes, CodeTree, code_summary, make_codes
from labelspace.models.base import Model
from labelspace.models.fit_context import FitContext
from labelspace.models.secseq.encoder_inputs import EncoderInputs
from labelspace.models.secseq.label_embeddings import KINDS, label_vectors
from labelspace.training.checkpoints import fingerprint
from labelspace.training.early_stopping import VALIDATION_K, r_precision
from labelspace.training.epochs import batch_schedule, run_epochs
from labelspace.training.sparse_layers import SparseLayer
from labelspace.types import Csr, Dataset, Floats, Ints, TopK

if TYPE_CHECKING:
    from labelspace.labels.tree import Nodes
    from labelspace.models.secseq.decoder import Learner, Shape
    from labelspace.models.secseq.decoding import Decoder, DecodingOptions
    from labelspace.models.secseq.objectives import Objective

STEPS = 300  # batches that suffice to learn
EPOCHS = (8, 15)  # fewest and most that are chosen
LISTED = 50  # labels of each tree that take part in the mean
ROW_BLOCK = 64  # documents a task
VOCABULARY = 50_000  # words that codes are made of, at most

Tick = Callable[[int], None]


class SequenceModel(Model):
    """What SeCSeq and mlc2seq share: an encoder, a decoder that writes codes of labels, and a search along codes."""

    resumes_training = True
    encoder: str = param("bag", one_of("bag", "convolution", "gru"), "Encoder of documents.")
    target: str = param(
        "set",
        one_of("set", "label", "sequence"),
        "What is learned of a document: the set of next digits, one label, or the sequence of its labels.",
    )
    label_order: str = param("frequent", one_of("frequent", "rare", "random"), "Order of labels in a sequence.")
    hidden_dim: int = param(
        512,
        Constraint("an even number of at least 2", lambda value: integer(2).holds(value) and value % 2 == 0),
        "Units of the encoder.",
    )
    decoder_dim: int = param(256, integer(1), "Units of the decoder.")
    word_dim: int = param(128, integer(1), "Dimension of word embeddings, for encoders that read words.")
    epochs: int | None = param(
        None, optional(integer(1)), "Number of epochs; none chooses it by the number of documents."
    )
    batch_size: int = param(256, integer(1), "Maximum batch size.")
    learning_rate: float = param(0.004, real(above=0), "Learning rate.")
    feature_learning_rate: float = param(0.1, real(above=0), "Learning rate of the feature embeddings.")
    dropout: float = param(0.3, real(at_least=0, below=1), "Share of hidden units dropped in training.")
    input_dropout: float = param(0.1, real(at_least=0, below=1), "Share of a document's features dropped in training.")
    clip_norm: float = param(10.0, real(above=0), "Gradients are clipped to this norm.")
    patience: int | None = param(
        None,
        optional(integer(1)),
        "Stop after this many epochs without improvement on validation documents; none runs all epochs.",
    )
    decoding: str = param("beam", one_of("beam", "sampling"), "Beam search, or sampling.")
    beam_size: int = param(32, integer(1), "Nodes or prefixes kept at each level of the search.")
    n_samples: int = param(100, integer(1), "Samples per document with sampling.")
    random_state: int = param(0, integer(0), "Seed of everything drawn at random.")

    vectors_: Bytes = learned()  # (trees, n_features or n_tokens, hidden or word)
    vector_scales_: Floats = learned()  # (trees, n_features or n_tokens)
    weights_: Floats = learned()  # (trees, n_weights)
    digits_: npt.NDArray[np.int32] = learned()  # (trees, n_labels, digits)
    shares_: Floats = learned()  # (trees, n_labels): of the documents with a label's code, those with the label
    course_: list[list[float]] = learned()  # the accuracy after each epoch of each tree, where documents were held out

    n_estimators: int
    code_size: int
    code_length: int

    def check_params(self) -> None:
        """Hold every parameter against its rule, and see that there is torch: data need not be read to know that."""
        super().check_params()
        require("torch", "neural")

    def views(self, documents: Dataset) -> tuple[View, ...]:
        """The bag of words, or the sequence of tokens that the encoder reads."""
        return (WORDS if self.encoder == "bag" else SEQUENCES,)

    def read(self, views: Views) -> Views:
        """All views: codes may be made of another one than the encoder reads."""
        return views

    def _fit(self, views: Views, Y: Csr, context: FitContext) -> None:
        from labelspace.training.torch_optimizer import single_thread

        codes = self._codes(views, Y, context)
        views, Y, held = context.early_stopping_split(views, Y, self.patience, self.random_state)
        read = self._read(views)
        task = _Task(read, Y, None if held is None else (self._read(held[0]), held[1]), codes, self, context)
        with single_thread(), threadpool_limits(1, user_api="blas"):
            learned = side_by_side(
                lambda tree, tick: task.learn(tree, tick),
                self.n_estimators,
                lambda done: context.progress("tokens", min(done, task.tokens), task.tokens),
            )
        self.vectors_ = np.stack([found.vectors for found in learned])
        self.vector_scales_ = np.stack([found.scales for found in learned])
        self.weights_ = np.stack([found.weights for found in learned])
        self.shares_ = np.stack([found.shares for found in learned])
        self.digits_ = np.stack([code.digits for code in codes])
        self.course_ = [found.accuracies for found in learned]

    def _read(self, views: Views) -> EncoderInputs:
        """Documents as the encoder reads them."""
        if self.encoder == "bag":
            return EncoderInputs.of_features(normalize_rows(views[WORDS.name]))
        return EncoderInputs.of_tokens(views[SEQUENCES.name], views.width(SEQUENCES.name))

    @abstractmethod
    def _codes(self, views: Views, Y: Csr, context: FitContext) -> list[Codes]:
        """The codes of the labels, one set per tree."""

    def _shape(self, width: int) -> Shape:
        """The shape of the writers."""
        from labelspace.models.secseq.decoder import Shape

        word = self.hidden_dim if self.encoder == "bag" else self.word_dim
        return Shape(
            self.encoder, word, self.hidden_dim, self.decoder_dim, width, self.code_length, self.target == "sequence"
        )

    def label_codes(self) -> list[Codes]:
        """The codes of the labels, tree by tree."""
        self.check_fitted()
        return [Codes(digits, self._code_size) for digits in self.digits_]

    @property
    def _code_size(self) -> int:
        """Values per digit."""
        return self.code_size

    def label_trees(self) -> list[Nodes]:
        """The trees of the codes."""
        return [CodeTree.of(codes).to_nodes() for codes in self.label_codes()]

    def report(self) -> dict[str, Any]:
        """The number of parameters, and the codes in figures."""
        self.check_fitted()
        told = {
            "parameters": int(self.vectors_.size + self.weights_.size),
            "network_parameters": int(self.weights_.size),
            "codes": [code_summary(codes) for codes in self.label_codes()],
        }
        return {**told, "accuracies": self.course_} if any(self.course_) else told

    def _predict(self, views: Views, k: int) -> TopK:
        require("torch", "neural")
        from labelspace.training.torch_optimizer import single_thread

        read, decoders, how = self._read(views), self._decoders, self._how()
        listed = k if self.n_estimators == 1 else max(k, LISTED)
        found = TopK.empty(self.n_estimators * read.n, listed)
        labels = found.labels.reshape(self.n_estimators, read.n, listed)
        scores = found.scores.reshape(self.n_estimators, read.n, listed)

        def answer(start: int, stop: int) -> None:
            for tree, decoder in enumerate(decoders):
                top = decoder.answer(read, start, stop, self.vectors_[tree], self.vector_scales_[tree], listed, how)
                labels[tree, start:stop], scores[tree, start:stop] = top.labels, top.scores

        with single_thread():
            run_blocks(answer, read.n, ROW_BLOCK)
        if self.n_estimators == 1:
            return found
        out = TopK.empty(read.n, k)
        mean_of_lists(labels, scores, out.labels, out.scores)
        return out

    def _how(self) -> DecodingOptions:
        from labelspace.models.secseq.decoding import DecodingOptions

        return DecodingOptions(
            self.target, self.decoding == "sampling", self.beam_size, self.n_samples, self.random_state
        )

    @cached_property
    def _decoders(self) -> list[Decoder]:
        """What is derived from the state, on first use."""
        from labelspace.models.secseq.decoder import with_weights
        from labelspace.models.secseq.decoding import Decoder
        from labelspace.training.torch_optimizer import single_thread

        with single_thread():
            return [
                Decoder.of(with_weights(self._shape(codes.width), weights), CodeTree.of(codes), share)
                for codes, weights, share in zip(self.label_codes(), self.weights_, self.shares_, strict=True)
            ]


class SeCSeq(SequenceModel):
    """Labels as codes that are written digit by digit; its weights do not grow with the number of labels.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=600, d=400, l=50, seed=1)
    >>> train, test = data.rows(range(500)), data.rows(range(500, 600))
    >>> model = SeCSeq(code_size=8, hidden_dim=64, decoder_dim=32).fit(train.X, train.Y)
    >>> first = model.predict_topk(test.X, k=1).labels[:, 0]
    >>> bool(test.Y[np.arange(100), first].mean() > 0.5)
    True
    """

    name = "secseq"
    title = "SeCSeq: labels as short codes, written by a sequence model (Chang et al., 2018)"
    choose_when = "the model must stay small whatever the number of labels"
    n_estimators: int = param(1, integer(1), "Number of code trees, averaged.")
    code_size: int = param(128, integer(2), "Values per code digit: K.")
    code_length: int = param(3, integer(1, at_most=16), "Digits per code: D.")
    label_vectors: str = param("documents", one_of(*KINDS), "What label embeddings are made of.")
    coding: str = param("clusters", one_of(*SCHEMES), "How label embeddings become codes.")
    quantizer: str = param("ordinal", one_of(*QUANTIZERS), "How projections are quantized.")
    embedding_dim: int = param(64, integer(1), "Dimension of the label embeddings.")

    def views(self, documents: Dataset) -> tuple[View, ...]:
        """What the encoder reads, and for codes that are made of the labels' documents their words."""
        own = super().views(documents)
        if self.encoder == "bag" or self.label_vectors != "documents":
            return own
        return (*own, View(WORDS.name, "tfidf", {"ngrams": 1, "min_df": 1, "max_features": VOCABULARY}, True))

    def _codes(self, views: Views, Y: Csr, context: FitContext) -> list[Codes]:
        """Steps 1 and 2."""
        features = views[WORDS.name] if self.label_vectors == "documents" else None
        context.progress("codes", 0, self.n_estimators)
        vectors = label_vectors(self.label_vectors, features, Y, context.labels, self.embedding_dim, self.random_state)
        codes = []
        for tree in range(self.n_estimators):
            seed = self.random_state * 1_000_003 + tree
            codes.append(make_codes(vectors, self.code_size, self.code_length, self.coding, self.quantizer, seed))
            context.progress("codes", tree + 1, self.n_estimators)
        return codes


@dataclass(frozen=True)
class _Learned:
    """What is kept of one tree."""

    vectors: Bytes
    scales: Floats
    weights: Floats
    shares: Floats
    accuracies: list[float]


class _Net:
    """One tree while it learns."""

    def __init__(self, layer: SparseLayer, learner: Learner) -> None:
        self.layer, self.learner, self.n_steps, self.told = layer, learner, 0, 0
        self.zeros = np.zeros(layer.vectors.shape[1], np.float32)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All that changes with a step."""
        weights = self.learner.weights
        return {
            "vectors": self.layer.vectors, "squares": self.layer.squares, "weights": weights.value,
            "means": weights.mean, "weight_squares": weights.square,
        }  # fmt: skip


class _Task:
    """What all trees learn from."""

    def __init__(
        self,
        read: EncoderInputs,
        Y: Csr,
        held: tuple[EncoderInputs, Csr] | None,
        codes: list[Codes],
        model: SequenceModel,
        context: FitContext,
    ) -> None:
        self.read, self.Y, self.held, self.codes, self.model, self.folder = (
            read,
            Y,
            held,
            codes,
            model,
            context.checkpoint,
        )
        self.batch_size, self.epochs = batch_schedule(read.n, model.batch_size, model.epochs, STEPS, EPOCHS)
        parts = [(read, Y)] if held is None else [(read, Y), held]
        tables = [table for one, labels in parts for table in (one.table, sp.csr_matrix(one.starts), labels)]
        tables += [sp.csr_matrix(code.digits) for code in codes]  # made of the labels' names, it may be
        self.what = {"params": model.get_params(), "data": fingerprint(*tables)}
        self.lessons = [self._lesson(tree) for tree in range(len(codes))]
        self.tokens = self.epochs * sum(lesson.tokens for lesson in self.lessons)

    def _lesson(self, tree: int) -> Objective:
        from labelspace.models.secseq.objectives import PrefixObjective, SequenceObjective

        codes, model = self.codes[tree], self.model
        if model.target == "sequence":
            return SequenceObjective(
                codes, self.Y, model.label_order, np.random.default_rng([model.random_state, tree, 1])
            )
        return PrefixObjective(codes, self.Y, model.target == "label")

    def learn(self, tree: int, tick: Tick) -> _Learned:
        """Train one tree; what is drawn depends on the seed and its number alone."""
        from labelspace.models.secseq.decoder import Learner
        from labelspace.models.secseq.decoding import shares

        model, lesson = self.model, self.lessons[tree]
        rng = np.random.default_rng([model.random_state, tree])
        shape = model._shape(self.codes[tree].width)
        net = _Net(SparseLayer.random(self.read.table, shape.word, rng), Learner(shape, rng))
        lesson.begin(net.learner.writer)
        share = shares(lesson.tree, self.Y, model.target != "label")
        name = "checkpoint" if model.n_estimators == 1 else f"tree-{tree}"
        course = run_epochs(
            net, self.epochs, lambda epoch: self._epoch(net, lesson, tree, epoch, tick),
            None if self.held is None else lambda: self._accuracy(net, lesson.tree, share), model.patience, self.what,
            self.folder, name,
        )  # fmt: skip
        tick(self.epochs * lesson.tokens - net.told)  # what it stopped before
        return _Learned(*quantize_int8(net.layer.vectors), net.learner.weights.value, share, course)

    def _accuracy(self, net: _Net, tree: CodeTree, share: Floats) -> float:
        """How right the answers to the documents are that were held out."""
        from labelspace.models.secseq.decoding import Decoder

        assert self.held is not None
        read, truth = self.held
        decoder, how = Decoder.of(net.learner.writer, tree, share), self.model._how()
        scales, top = np.ones(len(net.layer.vectors), np.float32), TopK.empty(read.n, VALIDATION_K)
        for start in range(0, read.n, ROW_BLOCK):  # the states of all words at once would be too many
            stop = min(start + ROW_BLOCK, read.n)
            found = decoder.answer(read, start, stop, net.layer.vectors, scales, VALIDATION_K, how)
            top.labels[start:stop], top.scores[start:stop] = found.labels, found.scores
        return r_precision(top, truth)

    def _epoch(self, net: _Net, lesson: Objective, tree: int, epoch: int, tick: Tick) -> None:
        """One pass over the documents; what is drawn depends on the seed, the tree and the epoch's number alone."""
        rng = np.random.default_rng([self.model.random_state, tree, 2, epoch])
        order = rng.permutation(self.read.n).astype(np.int32)
        steps = -(-len(order) // self.batch_size)
        tick(epoch * lesson.tokens - net.told)  # more than 0 where a training goes on that was cut off
        net.told = (epoch + 1) * lesson.tokens
        for at in range(steps):
            left = 1.0 - (epoch * steps + at) / (self.epochs * steps)
            tick(self._step(net, lesson, order[at * self.batch_size : (at + 1) * self.batch_size], left, rng))

    def _step(self, net: _Net, lesson: Objective, rows: Ints, left: float, rng: np.random.Generator) -> int:
        """Steps 3 to 5 on some documents; ``left`` is the share of the rates that is left. Digits taught come back."""
        import torch

        model, writer = self.model, net.learner.writer
        net.n_steps += 1
        given, sizes = self.read.batch(rows, model.input_dropout, rng)
        vectors = torch.from_numpy(net.layer.embed(given, net.zeros)).requires_grad_()
        memory = writer.read(vectors, sizes)
        gate = (rng.random((len(rows), 1, model.hidden_dim), np.float32) >= model.dropout) / np.float32(
            1 - model.dropout
        )
        memory = memory._replace(states=memory.states * torch.from_numpy(gate))
        loss, taught = lesson.loss(writer, memory, rows)
        if taught:
            net.learner.descend(loss, model.clip_norm, model.learning_rate * left, net.n_steps)
            assert vectors.grad is not None
            net.layer.descend(given, vectors.grad.numpy(), model.feature_learning_rate * left)
        return taught
