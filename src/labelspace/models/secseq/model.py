"""SeCSeq: labels as short codes that a sequence model generates digit by digit.

Chang et al., "SeCSeq: Semantic Coding for Sequence-to-Sequence based Extreme Multi-label Classification" (2018).

1. Embed the labels (``label_vectors``): by their documents, by random walks among labels that occur together, by
   their names, or by a file; ``instances`` are the paper's indicators of the documents that have the label.
2. Turn the embeddings into codes of D digits (``code_length``) with K values each (``code_size``), so that similar
   labels share prefixes (``coding``, ``quantizer``). There are ``n_estimators`` such code trees, with one network each.
3. Encode a document: a bag of features, or its words in order by a convolution or a GRU with attention (``encoder``).
4. Learn to generate the codes of its labels (``target``): after each prefix the ``set`` of next digits, each a binary
   target; or the digits of one ``label`` drawn at random; or, as in the paper (eq. 3), the ``sequence`` of all its
   labels in one ``label_order``, with an end token. Only digits that exist after a prefix are scored, unless
   ``masked_softmax`` is false. The ``decoder`` is gated, or, for sequences, a GRU or LSTM that steps once per digit.
5. Weights are trained by Adam with gradients clipped at ``clip_norm``, feature embeddings by row-wise Adagrad. Learning
   rates fall linearly to 0.
6. Decode: codes by beam search or sampling (``decoding``), along the code tree, or any digits (``constrained``). The
   probability of a code is divided among the labels that share it; a label's score is its mean over the trees. With
   ``scores=count`` it is the sum of the label-count histograms at the leaves.

Where we differ, and why: the paper generates sequences and counts the labels in them. A ranking needs the probability
of each label whatever the others are, and that is what ``set`` learns: it is better and faster (figures in
docs/methods/secseq.md), so it is the default. By default each prefix is split by clustering, not all labels by one
projection per digit. The number of weights depends neither on the number of labels nor on that of documents. The
preset ``paper`` is the paper's algorithm: a plain Seq2Seq, decoded freely, with counts.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from labelspace.errors import DataError, ParameterError, require
from labelspace.estimator import learned, param
from labelspace.estimator.parameter_constraints import boolean, either, integer, list_of, one_of, optional, real
from labelspace.estimator.state_constraints import array, must, plain
from labelspace.features.normalize import normalize_rows
from labelspace.features.views import GIVEN, SEQUENCES, WORDS, View, Views
from labelspace.kernels.quantize import Int8s
from labelspace.labels.codes import QUANTIZERS, SCHEMES, Codes, CodeTree, code_summary, make_codes
from labelspace.models import parameters
from labelspace.models.base import Model
from labelspace.models.batched_prediction import overfetch
from labelspace.models.fit_context import FitContext
from labelspace.models.secseq.config import EVEN, MAX_SEQUENCE, DecoderConfig, EncoderInputs
from labelspace.models.secseq.label_embeddings import SOURCES, SPARSE_SOURCES, VECTOR_FILE, embed_labels
from labelspace.types import Bools, Csr, Dataset, Floats, TopK

if TYPE_CHECKING:  # modules that need torch
    from labelspace.labels.tree import TreeNodes
    from labelspace.models.secseq.decoding import LabelDecoder

MAX_VOCABULARY = 50_000  # words that label embeddings are made of, where the encoder reads sequences
MAX_CODE_LENGTH = 256  # digits: a code tree has a node for each digit of each label
# The paper's plain Seq2Seq, of both methods.
SEQ2SEQ: Mapping[str, Any] = {
    "encoder": "gru",  # words in order: appendix A
    "decoder": "gru",  # a step per digit (figure 1), or per label (eq. 2)
    "max_sequence": 100,  # more than the labels of any document of the paper
    "masked_softmax": False,
    "init_biases": False,
    "constrained": False,  # "Semantic Code Decompression", steps 1 and 2
    "scores": "count",  # step 4, and the sum over trees
}


def for_sequences(*declaration: Any) -> Any:  # noqa: ANN401 - the arguments of ``param``
    """Declare a parameter that has an effect with ``target="sequence"``."""
    return param(*declaration).only_with(target="sequence")


class SequenceModel(Model):
    """The common base of SeCSeq and mlc2seq: an encoder, a decoder of label codes, and a search along the code tree."""

    resumes_training = True
    trains_from_cache = True
    trains_in_tasks = True

    encoder: str = param("bag", one_of("bag", "convolution", "gru"), "Encoder of documents.")
    target: str = param(
        "set", one_of("set", "label", "sequence"), "Learn the set of next digits, one label, or the sequence of labels."
    )
    decoder: str = for_sequences(
        "gated", one_of("gated", "gru", "lstm"), "Gated by the prefix, or recurrent, one step per digit."
    )
    label_order: str = for_sequences("frequent", one_of("frequent", "rare", "random"), "Order of labels in a sequence.")
    max_sequence: int = for_sequences(
        MAX_SEQUENCE, integer(1, at_most=10_000), "Labels of a document in its sequence; what is longer is cut."
    )
    masked_softmax: bool = for_sequences(
        True, boolean(), "Train sequences on digits that exist after a prefix, not on all."
    )
    normalize: bool = parameters.normalize().only_with(encoder="bag")
    init_biases: bool = param(True, boolean(), "Start the biases of digits at their frequency, not at 0.")
    hidden_dim: int = param(512, EVEN, "Units of the encoder.")
    decoder_dim: int = param(256, integer(1), "Units of the decoder.")
    word_dim: int = param(128, integer(1), "Dimension of word embeddings.").only_with(encoder=("convolution", "gru"))
    epochs: int | None = parameters.epochs()
    batch_size: int | None = parameters.batch_size()
    learning_rate: float = parameters.learning_rate(0.004)
    feature_learning_rate: float = parameters.feature_learning_rate(0.1)
    dropout: float = parameters.dropout(0.3)
    input_dropout: float = parameters.input_dropout(0.1)
    clip_norm: float = parameters.clip_norm(10.0)
    patience: int | None = parameters.patience()
    decoding: str = param("beam", one_of("beam", "sampling"), "Beam search, or sampling.")
    constrained: bool = for_sequences(True, boolean(), "Sequences of codes that exist, none twice; else of any digits.")
    scores: str = for_sequences(
        "probability", one_of("probability", "count"), "Score of a label: probability, or count in the sequences."
    )
    beam_size: int = parameters.beam_size(32).only_with(decoding="beam")
    n_samples: int = param(100, integer(1, at_most=10_000), "Samples per document.").only_with(decoding="sampling")
    random_state: int = parameters.random_state()

    # Of features or tokens; the dimension is hidden_dim or word_dim.
    embeddings_: Int8s = learned(array("int8", "n_trees", "n_features", "word_dim"))
    embedding_scales_: Floats = learned(array("float32", "n_trees", "n_features"))
    weights_: Floats = learned(array("float32", "n_trees", "n_weights"))
    digits_: npt.NDArray[np.int32] = learned(
        array("int32", "n_trees", "n_labels", "code_length", at_least=0, below="code_size")
    )
    # Of the documents with a label's code.
    label_shares_: Floats = learned(array("float32", "n_trees", "n_labels", at_least=0))
    # R-precision after each epoch of each tree, with patience.
    validation_scores_: list[list[float]] = learned(plain(list_of(list_of(real()))))

    n_estimators: int
    code_size: int
    code_length: int
    shared_outputs: bool
    shared_embeddings: bool
    repeated_codes: bool
    leaf_histogram: str

    def sizes(self) -> dict[str, int]:
        """Return the shape of a code, and the sizes of the network of a code tree."""
        config = self.decoder_config(self._code_size)
        code = {"code_size": config.code_size, "code_length": config.code_length}
        n_features = self.width(WORDS if self.encoder == "bag" else SEQUENCES)
        network = {"n_features": n_features, "word_dim": config.word_dim, "n_weights": config.n_weights}
        return {"n_labels": self.n_labels_, **code, **network}

    def check_state(self) -> None:
        """Check that there is a tree, and that the parameters fit together."""
        must(len(self.weights_) > 0, "code trees")
        must(not any(self._conflicts()), "parameters that go together")

    def check_params(self) -> None:
        """Check every parameter, and that torch is installed, before data are read."""
        super().check_params()
        for conflict in self._conflicts():
            raise ParameterError(conflict)
        require("torch", "neural")

    def _conflicts(self) -> Iterator[str]:
        """Yield an error message for each combination of settings that exclude each other."""
        return iter(())

    def views(self, documents: Dataset) -> tuple[View, ...]:
        """Return the view that the encoder reads: the bag of words, or token sequences."""
        return (WORDS if self.encoder == "bag" else SEQUENCES,)

    def read(self, views: Views) -> Views:
        """Return all views: label embeddings may be made from a view that the encoder does not read."""
        if self.encoder != "bag" and GIVEN in views.tables:
            raise DataError(
                f"encoder={self.encoder} reads words in order, but X holds features; give texts, or set encoder=bag"
            )
        return views

    def _fit(self, views: Views, Y: Csr, context: FitContext) -> None:
        from labelspace.models.secseq.training import TreeTrainer

        codes = self._codes(views, Y, context)  # steps 1 and 2
        views, Y, held_out = context.early_stopping_split(views, Y, self.patience, self.random_state)
        validation = None if held_out is None else (self._encoder_inputs(held_out[0]), held_out[1])
        trees = TreeTrainer((self._encoder_inputs(views), Y), validation, codes, self, context).train(context)  # 3-5
        *arrays, scores = zip(*trees, strict=True)
        self.embeddings_, self.embedding_scales_, self.weights_, self.label_shares_ = map(np.stack, arrays)
        self.digits_, self.validation_scores_ = np.stack([code.digits for code in codes]), list(scores)

    @abstractmethod
    def _codes(self, views: Views, Y: Csr, context: FitContext) -> list[Codes]:
        """Return the codes of the labels, one set per tree."""

    def _predict(self, views: Views, k: int, allowed: Bools | None = None) -> TopK:
        if allowed is not None:
            return overfetch(self._predict, views, k, allowed)
        require("torch", "neural")
        from labelspace.models.secseq.decoding import predict_topk
        from labelspace.training.torch_optimizer import single_thread

        with single_thread():
            return predict_topk(self._decoders, self._encoder_inputs(views), k, self)

    def _encoder_inputs(self, views: Views) -> EncoderInputs:
        if self.encoder == "bag":
            X = views[WORDS.name]
            return EncoderInputs.from_features(normalize_rows(X) if self.normalize else X)
        return EncoderInputs.from_token_ids(views[SEQUENCES.name], views.width(SEQUENCES.name))

    @cached_property
    def _decoders(self) -> list[LabelDecoder]:
        from labelspace.models.secseq.decoding import LabelDecoder
        from labelspace.models.secseq.network import decoder_from_weights

        config = self.decoder_config(self._code_size)
        trees = map(CodeTree.from_codes, self.label_codes())
        decoders = [decoder_from_weights(config, weights) for weights in self.weights_]
        arrays = (self.label_shares_, self.embeddings_, self.embedding_scales_)
        return [LabelDecoder(*parts) for parts in zip(decoders, trees, *arrays, strict=True)]

    def decoder_config(self, code_size: int) -> DecoderConfig:
        """Return the sizes of the network of a code tree."""
        word_dim, sequences = self.hidden_dim if self.encoder == "bag" else self.word_dim, self.target == "sequence"
        sizes = (word_dim, self.hidden_dim, self.decoder_dim, code_size, self.code_length)
        decoder = self.decoder if sequences else "gated"
        # A gated decoder adds the embeddings of a code's digits: shared, they would not tell their order.
        shared = (self.shared_outputs, self.shared_embeddings and decoder != "gated")
        return DecoderConfig(self.encoder, *sizes, sequences, decoder, *shared)

    def label_codes(self) -> list[Codes]:
        """Return the codes of the labels, tree by tree."""
        self.check_fitted()
        return [Codes(digits, self._code_size) for digits in self.digits_]

    @property
    def _code_size(self) -> int:
        return self.code_size

    def label_trees(self) -> list[TreeNodes]:
        """Return the code trees."""
        return [CodeTree.from_codes(codes).to_nodes() for codes in self.label_codes()]

    def report(self) -> dict[str, Any]:
        """Return the number of parameters, and statistics of the codes."""
        self.check_fitted()
        report = {
            "parameters": int(self.embeddings_.size + self.weights_.size),
            "network_parameters": int(self.weights_.size),
            "codes": [code_summary(codes) for codes in self.label_codes()],
        }
        return {**report, "accuracies": self.validation_scores_} if any(self.validation_scores_) else report


class SeCSeq(SequenceModel):
    """Labels as codes that are generated digit by digit; the number of weights does not grow with that of labels.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=600, d=400, l=50, seed=1)
    >>> train, test = data.rows(range(500)), data.rows(range(500, 600))
    >>> model = SeCSeq(code_size=8, hidden_dim=64, decoder_dim=32).fit(train.X, train.Y)
    >>> first = model.predict_topk(test.X, k=1).labels[:, 0]
    >>> bool(test.Y[np.arange(100), first].mean() > 0.5)
    True
    """

    name = "secseq"
    title = "SeCSeq: labels as short codes, generated by a sequence model (Chang et al., 2018)"
    choose_when = "the model must stay small whatever the number of labels"

    n_estimators: int = param(1, integer(1), "Number of code trees, averaged.")
    code_size: int = param(128, integer(2), "Values per code digit: K.")
    code_length: int = param(3, integer(1, at_most=MAX_CODE_LENGTH), "Digits per code: D.")
    label_vectors: str = param("documents", either(one_of(*SOURCES), VECTOR_FILE), "What label embeddings are made of.")
    coding: str = param("clusters", one_of(*SCHEMES), "How label embeddings become codes.")
    quantizer: str = param("ordinal", one_of(*QUANTIZERS), "How projections are quantized.").only_with(
        coding=("projection", "tree")
    )
    embedding_dim: int | None = param(
        64, optional(integer(1)), "Dimension of the label embeddings; none does not reduce them."
    )
    center_labels: bool = param(True, boolean(), "Center label embeddings and scale them to length one.")
    shared_outputs: bool = param(False, boolean(), "One output layer for all digit positions, not one for each.")
    shared_embeddings: bool = param(
        False, boolean(), "One embedding per digit value, not one for each position."
    ).only_with(target="sequence", decoder=("gru", "lstm"))
    repeated_codes: bool = for_sequences(False, boolean(), "Labels that share a code each give it to a sequence.")
    leaf_histogram: str = for_sequences(
        "shares",
        one_of("shares", "labels", "documents"),
        "What a label counts where it shares a code: its share of the documents, one, or its documents.",
    )

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {
            **SEQ2SEQ,
            "label_vectors": "instances",  # v_l: figure 2
            "embedding_dim": None,  # z = v_l R, of v_l as it is: eq. 4
            "center_labels": False,
            "coding": "projection",  # eq. 4
            "shared_outputs": True,  # a softmax of O(K): figure 1
            "shared_embeddings": True,
            "target": "sequence",  # eq. 3
            "repeated_codes": True,  # the codes of all labels, one after the other: figure 1
            "leaf_histogram": "labels",  # "Semantic Code Decompression", step 3
        }
    }

    def _conflicts(self) -> Iterator[str]:
        sparse = self.embedding_dim is None and self.label_vectors in SPARSE_SOURCES
        if sparse and (self.coding != "projection" or self.center_labels):
            yield (
                f"embedding_dim=none with label_vectors={self.label_vectors} needs coding=projection and "
                f"center_labels=false, but has {self.coding} and {self.center_labels}; set all of them"
            )

    def views(self, documents: Dataset) -> tuple[View, ...]:
        """Return the view that the encoder reads, and the words of documents if label embeddings are made from them."""
        read = super().views(documents)
        if self.encoder == "bag" or self.label_vectors != "documents":
            return read
        return (*read, View(WORDS.name, "tfidf", {"ngrams": 1, "min_df": 1, "max_features": MAX_VOCABULARY}, True))

    def _codes(self, views: Views, Y: Csr, context: FitContext) -> list[Codes]:
        """Embed the labels and make their codes (steps 1 and 2)."""
        features = views[WORDS.name] if self.label_vectors == "documents" else None
        context.progress("codes", 0, self.n_estimators)
        options = (self.embedding_dim, self.random_state, self.center_labels)
        vectors = embed_labels(self.label_vectors, features, Y, context.labels, *options)
        codes = []
        for tree in range(self.n_estimators):
            seed = self.random_state * 1_000_003 + tree
            codes.append(make_codes(vectors, self.code_size, self.code_length, self.coding, self.quantizer, seed))
            context.progress("codes", tree + 1, self.n_estimators)
        return codes


class Mlc2Seq(SequenceModel):
    """The labels of a document as a sequence, one label per step.

    Nam et al., "Maximizing Subset Accuracy with Recurrent Neural Networks in Multi-label Classification" (2017), the
    baseline of SeCSeq: ``secseq`` with codes of one digit that has a value per label, so that the output layer grows
    with the number of labels.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=600, d=400, l=50, seed=1)
    >>> train, test = data.rows(range(500)), data.rows(range(500, 600))
    >>> model = Mlc2Seq(hidden_dim=64, decoder_dim=32, beam_size=4).fit(train.X, train.Y)
    >>> first = model.predict_topk(test.X, k=1).labels[:, 0]
    >>> bool(test.Y[np.arange(100), first].mean() > 0.3)
    True
    """

    name = "mlc2seq"
    title = "mlc2seq: the labels of a document as a sequence (Nam et al., 2017)"
    choose_when = "the label sets of documents must be exactly right, and labels are at most some thousands"

    target = SequenceModel.params["target"].with_default("sequence")
    beam_size = SequenceModel.params["beam_size"].with_default(8)

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"paper": SEQ2SEQ}

    n_estimators = 1
    code_length = 1
    shared_outputs = False
    shared_embeddings = False
    repeated_codes = False
    leaf_histogram = "shares"

    @property
    def _code_size(self) -> int:
        return self.n_labels_

    def _codes(self, views: Views, Y: Csr, context: FitContext) -> list[Codes]:
        """Return codes of one digit: each label is a digit."""
        return [Codes(np.arange(Y.shape[1], dtype=np.int32)[:, None], Y.shape[1])]
