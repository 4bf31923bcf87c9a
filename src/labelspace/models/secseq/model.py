"""SeCSeq: labels as short codes, which a sequence model writes digit by digit.

Chang et al., "SeCSeq: Semantic Coding for Sequence-to-Sequence based Extreme Multi-label Classification" (2018).

1. Make a vector of each label (``vectors``): of its documents, of walks among labels that stand together, of its name.
2. Turn vectors into codes of ``digits`` digits with ``width`` values each, so that labels that are alike begin alike
   (``scheme``, ``quantizer``). Another seed gives another tree of codes; steps 3 to 5 are done for each of ``trees``.
3. Read a document: its features as a bag, or its words in a row by a convolution or a GRU with attention (``encoder``).
4. Learn to write the codes of its labels (``target``): after each prefix the ``set`` of digits that follow, each by
   itself; or the digits of one ``label`` drawn of the document's; or, as in the paper, the ``sequence`` of all its
   labels in one ``order``, and its end. Only digits that exist after a prefix are scored.
5. Weights move by Adam, gradients cut at ``clip``; the vectors of a batch's features by row-wise Adagrad. Rates fall to
   0 in a straight line.
6. Decode: the most probable codes by a ``beam``, or draws (``decoding=sampling``), along codes that exist. A label that
   shares its code gets its share of what the code gets; the mean over the trees is the score.

Where we differ, and why: the paper writes sequences and counts labels in them. A ranking asks for the chance of each
label whatever the others are, and that is what ``set`` learns: it is better and quicker (docs/methods/secseq.md has the
figures), so it is the default. Prefixes are cut anew by clustering in place of one projection a digit. The number of
weights depends on neither the number of labels nor that of documents.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from labelspace.errors import DataError, require
from labelspace.estimator import Rule, above, one_of, optional, share, whole
from labelspace.features.normalize import unit_rows
from labelspace.features.sequences import Sequences
from labelspace.features.tfidf import Tfidf
from labelspace.kernels.code_search import mean_of_lists
from labelspace.kernels.quantize import Bytes, in_bytes
from labelspace.kernels.threads import run_blocks, side_by_side
from labelspace.labels.codes import QUANTIZERS, SCHEMES, Codes, CodeTree, code_summary, make_codes
from labelspace.models.base import Aids, Inputs, Model
from labelspace.models.secseq.encoder_inputs import Reading
from labelspace.models.secseq.label_embeddings import KINDS, label_vectors
from labelspace.training.checkpoints import fingerprint
from labelspace.training.early_stopping import PLACES, portions, share_right
from labelspace.training.epochs import follow, rows_to_stop_by
from labelspace.training.sparse_layers import SparseLayer
from labelspace.types import Csr, Floats, Ints, Longs, TopK

if TYPE_CHECKING:
    from labelspace.labels.tree import Nodes
    from labelspace.models.secseq.decoder import Learner, Shape
    from labelspace.models.secseq.decoding import Decoder, How
    from labelspace.models.secseq.objectives import Lesson

STEPS = 300  # batches that suffice to learn
EPOCHS = (8, 15)  # fewest and most that are chosen
LISTED = 50  # labels of each tree that take part in the mean
ROW_BLOCK = 64  # documents a task
WORDS = 300  # of a document that are read in a row
VOCABULARY = 50_000  # words that are known

Tick = Callable[[int], None]


class _ReadsText:
    """Whether a model reads words in a row: by its encoder; the method as such takes features."""

    def __get__(self, model: SeCSeq | None, cls: type) -> bool:
        return model is not None and model.encoder != "bag"


class SeCSeq(Model):
    """Labels as codes that are written digit by digit; its weights do not grow with the number of labels.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=600, d=400, l=50, seed=1)
    >>> train, test = data.rows(range(500)), data.rows(range(500, 600))
    >>> model = SeCSeq(width=8, hidden=64, memory=32).fit(train.X, train.Y)
    >>> first = model.predict_topk(test.X, k=1).labels[:, 0]
    >>> bool(test.Y[np.arange(100), first].mean() > 0.5)
    True
    """

    name = "secseq"
    title = "SeCSeq: labels as short codes, written by a sequence model (Chang et al., 2018)"
    choose_when = "the model must stay small whatever the number of labels"
    reads_text = _ReadsText()
    uses_validation = True
    holds_out = True
    takes_checkpoints = True
    text_features = {"ngrams": 1}
    rules = {
        "trees": whole(1),
        "width": whole(2),
        "digits": Rule("a whole number from 1 to 16", lambda value: whole(1).holds(value) and value <= 16),
        "vectors": one_of(*KINDS),
        "scheme": one_of(*SCHEMES),
        "quantizer": one_of(*QUANTIZERS),
        "dimension": whole(1),
        "encoder": one_of("bag", "convolution", "gru"),
        "target": one_of("set", "label", "sequence"),
        "order": one_of("frequent", "rare", "random"),
        "hidden": Rule("an even number of at least 2", lambda value: whole(2).holds(value) and value % 2 == 0),
        "memory": whole(1),
        "word": whole(1),
        "epochs": optional(whole(1)),
        "batch": whole(1),
        "rate": above(0),
        "feature_rate": above(0),
        "dropout": share,
        "input_dropout": share,
        "clip": above(0),
        "patience": optional(whole(1)),
        "decoding": one_of("beam", "sampling"),
        "beam": whole(1),
        "samples": whole(1),
        "seed": whole(0),
    }
    state = ("vectors_", "vector_scales_", "weights_", "digits_", "shares_", "word_bytes_", "word_offsets_", "course_")

    vectors_: Bytes  # (trees, n_features or n_tokens, hidden or word)
    vector_scales_: Floats  # (trees, n_features or n_tokens)
    weights_: Floats  # (trees, n_weights)
    digits_: npt.NDArray[np.int32]  # (trees, n_labels, digits)
    shares_: Floats  # (trees, n_labels): of the documents with a label's code, those with the label
    word_bytes_: npt.NDArray[np.uint8]  # of the words that are known, where they are read in a row
    word_offsets_: Longs
    course_: list[list[float]]  # the accuracy after each epoch of each tree, where documents were held out

    _ready: tuple[Floats, list[Decoder]] | None = None

    def __init__(
        self,
        trees: int = 1,
        width: int = 128,
        digits: int = 3,
        vectors: str = "documents",
        scheme: str = "clusters",
        quantizer: str = "ordinal",
        dimension: int = 64,
        encoder: str = "bag",
        target: str = "set",
        order: str = "frequent",
        hidden: int = 512,
        memory: int = 256,
        word: int = 128,
        epochs: int | None = None,
        batch: int = 256,
        rate: float = 0.004,
        feature_rate: float = 0.1,
        dropout: float = 0.3,
        input_dropout: float = 0.1,
        clip: float = 10.0,
        patience: int | None = None,
        decoding: str = "beam",
        beam: int = 32,
        samples: int = 100,
        seed: int = 0,
    ) -> None:
        self.trees = trees
        self.width = width
        self.digits = digits
        self.vectors = vectors
        self.scheme = scheme
        self.quantizer = quantizer
        self.dimension = dimension
        self.encoder = encoder
        self.target = target
        self.order = order
        self.hidden = hidden
        self.memory = memory
        self.word = word
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.feature_rate = feature_rate
        self.dropout = dropout
        self.input_dropout = input_dropout
        self.clip = clip
        self.patience = patience
        self.decoding = decoding
        self.beam = beam
        self.samples = samples
        self.seed = seed

    def check_params(self) -> None:
        """Hold every parameter against its rule, and see that there is torch: data need not be read to know that."""
        super().check_params()
        require("torch", "neural")

    def _fit(self, X: Any, Y: Csr, aids: Aids) -> None:  # noqa: ANN401 - csr or texts
        from labelspace.training.torch_optimizer import one_thread

        read = self._learn_to_read(X)
        held = self._held(Y, aids)
        codes = self._codes(X, Y, aids)
        if self.patience is not None and held is None:
            rows, apart = rows_to_stop_by(Y, self.seed)
            held = (read.part(apart), Y[apart])
            read, Y = read.part(rows), Y[rows]
        task = _Task(read, Y, held, codes, self, aids)
        with one_thread(), threadpool_limits(1, user_api="blas"):
            learned = side_by_side(
                lambda tree, tick: task.learn(tree, tick),
                self.trees,
                lambda done: aids.progress("tokens", min(done, task.tokens), task.tokens),
            )
        self.vectors_ = np.stack([found.vectors for found in learned])
        self.vector_scales_ = np.stack([found.scales for found in learned])
        self.weights_ = np.stack([found.weights for found in learned])
        self.shares_ = np.stack([found.shares for found in learned])
        self.digits_ = np.stack([code.digits for code in codes])
        self.course_ = [found.accuracies for found in learned]
        self._ready = None

    def _learn_to_read(self, X: Any) -> Reading:  # noqa: ANN401 - csr or texts
        """The training documents as the encoder reads them; words in a row are learned."""
        self.word_bytes_, self.word_offsets_ = np.zeros(0, np.uint8), np.zeros(0, np.int64)
        if self.encoder == "bag":
            return self._read(X)
        words = Sequences(VOCABULARY, WORDS)
        ids = words.fit_transform(X)
        self.word_bytes_, self.word_offsets_ = words.word_bytes_, words.word_offsets_
        return Reading.of_tokens(ids, words.n_tokens)

    def _read(self, X: Any) -> Reading:  # noqa: ANN401 - csr or texts
        """Documents as the encoder reads them."""
        if self.encoder == "bag":
            return Reading.of_features(unit_rows(X))
        words = Sequences(VOCABULARY, WORDS)
        words.word_bytes_, words.word_offsets_ = self.word_bytes_, self.word_offsets_
        return Reading.of_tokens(words.transform(X), words.n_tokens)

    def _held(self, Y: Csr, aids: Aids) -> tuple[Reading, Csr] | None:
        """The documents to stop by that were given, where they are wanted and have labels that can be learned."""
        if self.patience is None or aids.validation is None:
            return None
        truth = aids.validation[1][:, : Y.shape[1]]
        return (self._read(aids.validation[0]), truth) if truth.nnz else None

    def _codes(self, X: Any, Y: Csr, aids: Aids) -> list[Codes]:  # noqa: ANN401 - csr or texts
        """Steps 1 and 2."""
        features = X
        if self.encoder != "bag" and self.vectors == "documents":
            features = Tfidf(ngrams=1, min_df=1, max_features=VOCABULARY).fit_transform(X)
        aids.progress("codes", 0, self.trees)
        vectors = label_vectors(self.vectors, features, Y, aids.labels, self.dimension, self.seed)
        codes = []
        for tree in range(self.trees):
            seed = self.seed * 1_000_003 + tree
            codes.append(make_codes(vectors, self.width, self.digits, self.scheme, self.quantizer, seed))
            aids.progress("codes", tree + 1, self.trees)
        return codes

    def _shape(self, width: int) -> Shape:
        """The shape of the writers."""
        from labelspace.models.secseq.decoder import Shape

        word = self.hidden if self.encoder == "bag" else self.word
        return Shape(self.encoder, word, self.hidden, self.memory, width, self.digits, self.target == "sequence")

    def label_codes(self) -> list[Codes]:
        """The codes of the labels, tree by tree."""
        self.check_fitted()
        return [Codes(digits, self._width) for digits in self.digits_]

    @property
    def _width(self) -> int:
        return self.width

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

    def _predict(self, X: Any, k: int) -> TopK:  # noqa: ANN401 - csr or texts
        require("torch", "neural")
        from labelspace.training.torch_optimizer import one_thread

        read, decoders, how = self._read(X), self._decoders(), self._how()
        listed = k if self.trees == 1 else max(k, LISTED)
        found = TopK.empty(self.trees * read.n, listed)
        labels = found.labels.reshape(self.trees, read.n, listed)
        scores = found.scores.reshape(self.trees, read.n, listed)

        def answer(start: int, stop: int) -> None:
            for tree, decoder in enumerate(decoders):
                top = decoder.answer(read, start, stop, self.vectors_[tree], self.vector_scales_[tree], listed, how)
                labels[tree, start:stop], scores[tree, start:stop] = top.labels, top.scores

        with one_thread():
            run_blocks(answer, read.n, ROW_BLOCK)
        if self.trees == 1:
            return found
        out = TopK.empty(read.n, k)
        mean_of_lists(labels, scores, out.labels, out.scores)
        return out

    def _how(self) -> How:
        from labelspace.models.secseq.decoding import How

        return How(self.target, self.decoding == "sampling", self.beam, self.samples, self.seed)

    def _decoders(self) -> list[Decoder]:
        """What is derived from the state, on first use and again after a new ``fit``."""
        if self._ready is None or self._ready[0] is not self.weights_:
            from labelspace.models.secseq.decoder import with_weights
            from labelspace.models.secseq.decoding import Decoder
            from labelspace.training.torch_optimizer import one_thread

            with one_thread():
                decoders = [
                    Decoder.of(with_weights(self._shape(codes.width), weights), CodeTree.of(codes), share)
                    for codes, weights, share in zip(self.label_codes(), self.weights_, self.shares_, strict=True)
                ]
            self._ready = (self.weights_, decoders)
        return self._ready[1]

    def _checked_inputs(self, X: Inputs) -> Any:  # noqa: ANN401 - csr or texts
        if self.reads_text and getattr(X, "ndim", 1) != 1:
            raise DataError(
                f"encoder={self.encoder} reads words in a row, but X holds features; give texts, or set encoder=bag"
            )
        return super()._checked_inputs(X)


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
        self.layer, self.learner, self.number, self.told = layer, learner, 0, 0
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
        self, read: Reading, Y: Csr, held: tuple[Reading, Csr] | None, codes: list[Codes], model: SeCSeq, aids: Aids
    ) -> None:
        self.read, self.Y, self.held, self.codes, self.model, self.folder = read, Y, held, codes, model, aids.checkpoint
        self.batch, self.epochs = portions(read.n, model.batch, model.epochs, STEPS, EPOCHS)
        parts = [(read, Y)] if held is None else [(read, Y), held]
        tables = [table for one, labels in parts for table in (one.table, sp.csr_matrix(one.starts), labels)]
        tables += [sp.csr_matrix(code.digits) for code in codes]  # made of the labels' names, it may be
        self.what = {"params": model.get_params(), "data": fingerprint(*tables)}
        self.lessons = [self._lesson(tree) for tree in range(len(codes))]
        self.tokens = self.epochs * sum(lesson.tokens for lesson in self.lessons)

    def _lesson(self, tree: int) -> Lesson:
        from labelspace.models.secseq.objectives import PrefixLesson, SequenceLesson

        codes, model = self.codes[tree], self.model
        if model.target == "sequence":
            return SequenceLesson(codes, self.Y, model.order, np.random.default_rng([model.seed, tree, 1]))
        return PrefixLesson(codes, self.Y, model.target == "label")

    def learn(self, tree: int, tick: Tick) -> _Learned:
        """Train one tree; what is drawn depends on the seed and its number alone."""
        from labelspace.models.secseq.decoder import Learner
        from labelspace.models.secseq.decoding import shares

        model, lesson = self.model, self.lessons[tree]
        rng = np.random.default_rng([model.seed, tree])
        shape = model._shape(self.codes[tree].width)
        net = _Net(SparseLayer.random(self.read.table, shape.word, rng), Learner(shape, rng))
        lesson.begin(net.learner.writer)
        share = shares(lesson.tree, self.Y, model.target != "label")
        name = "checkpoint" if model.trees == 1 else f"tree-{tree}"
        course = follow(
            net, self.epochs, lambda epoch: self._epoch(net, lesson, tree, epoch, tick),
            None if self.held is None else lambda: self._accuracy(net, lesson.tree, share), model.patience, self.what,
            self.folder, name,
        )  # fmt: skip
        tick(self.epochs * lesson.tokens - net.told)  # what it stopped before
        return _Learned(*in_bytes(net.layer.vectors), net.learner.weights.value, share, course)

    def _accuracy(self, net: _Net, tree: CodeTree, share: Floats) -> float:
        """How right the answers to the documents are that were held out."""
        from labelspace.models.secseq.decoding import Decoder

        assert self.held is not None
        read, truth = self.held
        decoder, how = Decoder.of(net.learner.writer, tree, share), self.model._how()
        scales, top = np.ones(len(net.layer.vectors), np.float32), TopK.empty(read.n, PLACES)
        for start in range(0, read.n, ROW_BLOCK):  # the states of all words at once would be too many
            stop = min(start + ROW_BLOCK, read.n)
            found = decoder.answer(read, start, stop, net.layer.vectors, scales, PLACES, how)
            top.labels[start:stop], top.scores[start:stop] = found.labels, found.scores
        return share_right(top, truth)

    def _epoch(self, net: _Net, lesson: Lesson, tree: int, epoch: int, tick: Tick) -> None:
        """One pass over the documents; what is drawn depends on the seed, the tree and the epoch's number alone."""
        rng = np.random.default_rng([self.model.seed, tree, 2, epoch])
        order = rng.permutation(self.read.n).astype(np.int32)
        steps = -(-len(order) // self.batch)
        tick(epoch * lesson.tokens - net.told)  # more than 0 where a training goes on that was cut off
        net.told = (epoch + 1) * lesson.tokens
        for at in range(steps):
            left = 1.0 - (epoch * steps + at) / (self.epochs * steps)
            tick(self._step(net, lesson, order[at * self.batch : (at + 1) * self.batch], left, rng))

    def _step(self, net: _Net, lesson: Lesson, rows: Ints, left: float, rng: np.random.Generator) -> int:
        """Steps 3 to 5 on some documents; ``left`` is the share of the rates that is left. Digits taught come back."""
        import torch

        model, writer = self.model, net.learner.writer
        net.number += 1
        given, sizes = self.read.batch(rows, model.input_dropout, rng)
        vectors = torch.from_numpy(net.layer.embed(given, net.zeros)).requires_grad_()
        memory = writer.read(vectors, sizes)
        gate = (rng.random((len(rows), 1, model.hidden), np.float32) >= model.dropout) / np.float32(1 - model.dropout)
        memory = memory._replace(states=memory.states * torch.from_numpy(gate))
        loss, taught = lesson.loss(writer, memory, rows)
        if taught:
            net.learner.descend(loss, model.clip, model.rate * left, net.number)
            assert vectors.grad is not None
            net.layer.descend(given, vectors.grad.numpy(), model.feature_rate * left)
        return taught
