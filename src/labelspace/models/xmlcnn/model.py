"""XML-CNN: convolutions over the words of a text, pooled by chunks of the text, and a bottleneck before the labels.

Liu, Chang, Wu and Yang, "Deep Learning for Extreme Multi-label Text Classification" (SIGIR 2017).

1. A document is its first ``max_length`` words, each with an embedding of ``word_dim`` numbers: random, or from
   pretrained ``word_vectors``.
2. A filter of width h has a value at each word: its weights times the embeddings of that word and the h - 1 after it.
   There are ``n_filters`` filters v of each of the ``filter_widths``.
3. Dynamic max-pooling: cut the document into p chunks (``n_chunks``) and take each filter's largest value in each,
   so that a document becomes P = [max of chunk 1, ..., max of chunk p] of all filters; then add a bias and apply ReLU.
4. The bottleneck: h = relu(W_h P + c) with ``hidden_dim`` units, some dropped in training (``dropout``); z = W_o h + b.
5. Minimize the binary cross-entropy of 1 / (1 + exp(-z)), over all labels. Word embeddings are updated by row-wise
   Adagrad, all other weights by Adam. Learning rates fall linearly to 0. With ``patience``, keep the best epoch.
6. Store word embeddings, W_h and W_o in 8 bits. Rank the labels of a document by z.

With ``batch_norm``, the pooled values of each filter and the units of the bottleneck are normalized before their bias
(Ioffe and Szegedy, 2015): in training by the batch, and then by a sample of the training documents, which is folded
into the weights. The paper has none, but the largest of hundreds of windows is far above 0 in every document, so that
what documents have in common hides how they differ; with normalization, fewer epochs learn more. Without
``batch_norm``, only the filters are normalized, once, before training.

Where we differ, and why: the product of a word and a filter column is the same in every window, so it is computed once
for each distinct word of a batch, and windows add such products; max-pooling passes gradients to only one window per
chunk. So there are far fewer multiplications, and no need of torch. A window begins at each word, and is cut off at the
end of the text, so that short texts have as many windows as words. The labels' biases b start at the log-odds of their
frequencies. A label without training documents is never suggested.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from labelspace.errors import ParameterError
from labelspace.estimator import learned, param
from labelspace.estimator.parameter_constraints import boolean, integer, layer_sizes, list_of, parse_layer_sizes, real
from labelspace.estimator.state_constraints import array, must, part, plain
from labelspace.features.sequences import NUMBER, UNKNOWN, Sequences
from labelspace.features.views import TEXT
from labelspace.kernels.quantize import Int8s, quantize_int8
from labelspace.kernels.sparse_layers import Layer
from labelspace.kernels.threads import topk_in_blocks
from labelspace.models import parameters
from labelspace.models.base import Model
from labelspace.models.fit_context import FitContext
from labelspace.models.xmlcnn.kernels import Convolutions, Documents, Network, convolution_topk
from labelspace.models.xmlcnn.network import ConvolutionalNet, Sizes
from labelspace.models.xmlcnn.word_vectors import GLOVE, WORD_VECTORS, glove_folder, initial_vectors
from labelspace.training.checkpoints import data_fingerprint
from labelspace.training.epochs import VALIDATION_K, batch_schedule, epoch_batches, r_precision, run_epochs
from labelspace.training.losses import listed_probabilities, log_odds
from labelspace.types import Bools, Csr, Floats, Longs, Progress, TopK

USUAL_BATCH_SIZE = 128  # if not given; less if there are few documents
STEPS = 3_000  # batches that suffice to learn
EPOCHS = (15, 25)  # bounds of the number of epochs that is chosen
WORD_DIM = 64  # of word embeddings that are learned from the start
MAX_WIDTH = 1_000  # words of a filter
SAMPLE = 1_024  # documents by which filters and bottleneck are normalized in prediction
ROW_BLOCK = 16  # documents per task


class XMLCNN(Model):
    """A convolutional network over words: filters find phrases, wherever they are in a text.

    >>> texts = [f"{thing} number {i}" for i in range(40) for thing in ("green tea", "hand soap")]
    >>> Y = np.tile(np.array([[1, 0], [0, 1]]), (40, 1))
    >>> model = XMLCNN(n_filters=32, hidden_dim=32).fit(texts, Y)
    >>> model.predict_topk(["green tea", "hand soap"], k=1).labels.tolist()
    [[0], [1]]
    """

    name = "xmlcnn"
    title = "XML-CNN: convolutions over words, dynamic max-pooling, a bottleneck (Liu et al., 2017)"
    choose_when = "you compare with the paper, or need a neural model of word order without torch"
    view = TEXT
    resumes_training = True
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {  # the paper's widths and dimension of word_vectors; the rest as LibMultiLabel has it
            "word_dim": 300,
            "filter_widths": "2,4,8",
            "n_filters": 256,
            "n_chunks": 2,
            "hidden_dim": 512,
            "batch_norm": False,
            "max_length": 500,
            "batch_size": 64,
            "learning_rate": 0.0005,
            "dropout": 0.5,
            "input_dropout": 0.0,
            "epochs": 50,
            "patience": 5,
        }
    }

    word_vectors: str | None = param(
        None, WORD_VECTORS, "Initial word embeddings: glove, or a file FILE.txt or FILE.npz; none learns all."
    )
    word_dim: int | None = param(
        None, integer(1, at_most=4096), f"Dimension of word embeddings; none takes {WORD_DIM}, or that of word_vectors."
    )
    vocab_size: int = param(50_000, integer(1), "Words that have an embedding, the most frequent.")
    max_length: int = param(500, integer(1), "Words of a text that are read.")
    filter_widths: str = param("1,2,4", layer_sizes(), "Words that a filter spans, one or several widths.")
    n_filters: int = param(128, integer(1, at_most=2**16), "Filters of each width.")
    n_chunks: int = param(2, integer(1, at_most=2**16), "Chunks of a text that are pooled: p.")
    hidden_dim: int = param(512, integer(1, at_most=2**20), "Units of the bottleneck.")
    batch_norm: bool = param(True, boolean(), "Normalize the filters and the bottleneck by the batch in training.")
    epochs: int | None = parameters.epochs()
    batch_size: int | None = parameters.batch_size(USUAL_BATCH_SIZE)
    learning_rate: float = parameters.learning_rate(0.002)
    feature_learning_rate: float = parameters.learning_rate(0.2, "the word embeddings")
    dropout: float = parameters.dropout(0.4)
    input_dropout: float = param(0.1, parameters.FRACTION, "Share of a document's words dropped in training.")
    patience: int | None = parameters.patience()
    random_state: int = parameters.random_state()

    sequences_: Sequences = learned(part(Sequences))
    word_vectors_: Int8s = learned(array("int8", "n_tokens", "word_dim"))
    word_scales_: Floats = learned(array("float32", "n_tokens"))
    filters_: Floats = learned(array("float32", "word_dim", "n_columns"))  # by width, offset and filter
    filter_bias_: Floats = learned(array("float32", "n_all_filters"))
    bottleneck_: Int8s = learned(array("int8", "n_pooled", "hidden_dim"))  # W_h'
    bottleneck_scales_: Floats = learned(array("float32", "hidden_dim"))
    bottleneck_bias_: Floats = learned(array("float32", "hidden_dim"))  # c
    output_weights_: Int8s = learned(array("int8", "hidden_dim", "n_labels"))  # W_o'
    output_scales_: Floats = learned(array("float32", "n_labels"))
    output_bias_: Floats = learned(array("float32", "n_labels"))  # b
    seen_: npt.NDArray[np.bool_] = learned(array("bool", "n_labels"))  # whether a label has a training document
    validation_scores_: list[float] = learned(plain(list_of(real())))  # R-precision after each epoch, with ``patience``

    def sizes(self) -> dict[str, int]:
        """Return the sizes of every model, of the filters and of the bottleneck."""
        n_all = len(self._widths) * self.n_filters
        columns = int(self._widths.sum()) * self.n_filters
        network = {"n_columns": columns, "n_all_filters": n_all, "n_pooled": n_all * self.n_chunks}
        return {**super().sizes(), **network, "hidden_dim": self.hidden_dim}

    def check_state(self) -> None:
        """Check that every token has an embedding."""
        must(self.sequences_.n_tokens == len(self.word_vectors_), "as many word embeddings as tokens")

    def check_params(self) -> None:
        """Check the parameters, and that the package of word vectors is installed, before any data is read."""
        super().check_params()
        if (widest := int(self._widths.max())) > MAX_WIDTH:
            raise ParameterError(f"filter_widths must be at most {MAX_WIDTH}, but one is {widest}; set smaller ones")
        if self.word_vectors == GLOVE:
            glove_folder()

    @property
    def _widths(self) -> Longs:
        return np.array(parse_layer_sizes(self.filter_widths), np.int64)

    def _fit(self, texts: Sequence[str], Y: Csr, context: FitContext) -> None:
        texts, Y, held_out = context.early_stopping_split(texts, Y, self.patience, self.random_state)
        self.sequences_ = Sequences(vocab_size=self.vocab_size, max_length=self.max_length)
        documents = Documents.from_token_ids(self.sequences_.fit_transform(texts))  # step 1
        validation = None if held_out is None else (self._documents(held_out[0]), held_out[1])
        net = self._random_network(Y)
        sample = documents.rows(np.linspace(0, documents.n - 1, min(documents.n, SAMPLE)).astype(np.int32))
        if not self.batch_norm:
            with threadpool_limits(1, user_api="blas"):
                net.standardize_filters(sample)
        self.seen_ = np.bincount(Y.indices, minlength=Y.shape[1]) > 0
        schedule = batch_schedule(documents.n, self.batch_size, self.epochs, STEPS, EPOCHS, usual=USUAL_BATCH_SIZE)
        run_epoch = partial(self._run_epoch, net, documents, Y, schedule, context.progress)

        validate = None if validation is None else partial(self._validation_score, net, sample, *validation)
        data = [(documents, Y)] if validation is None else [(documents, Y), validation]
        tables = [table for part, labels in data for table in (part.table(), labels)]
        fingerprint = {"params": self.get_params(), "data": data_fingerprint(*tables)}
        with threadpool_limits(1, user_api="blas"):
            scores = run_epochs(net, schedule[1], run_epoch, validate, self.patience, fingerprint, context.checkpoint)
            self._store(net, sample)
        self.validation_scores_ = scores

    def _random_network(self, Y: Csr) -> ConvolutionalNet:
        rng = np.random.default_rng(self.random_state)
        vectors = initial_vectors(self.word_vectors, self.sequences_.tokens(), self.word_dim or WORD_DIM, rng)
        if self.word_dim not in (None, vectors.shape[1]):
            rule = f"word_dim must be that of the word vectors, {vectors.shape[1]}"
            raise ParameterError(f"{rule}, but is {self.word_dim}; set it to none")
        vectors[:NUMBER] = 0.0  # the padding, and unknown words
        sizes = Sizes(self._widths.tolist(), self.n_filters, self.n_chunks, self.hidden_dim)
        return ConvolutionalNet(vectors, sizes, log_odds(Y), rng, self.batch_norm)

    def _run_epoch(
        self, net: ConvolutionalNet, data: Documents, Y: Csr, schedule: tuple[int, int], progress: Progress, epoch: int
    ) -> None:
        """Make one pass over the documents (steps 2 to 5); draws depend only on the seed and the epoch's number."""
        rng = np.random.default_rng([self.random_state, 1, epoch])
        batch_size, epochs = schedule
        n_batches = len(range(0, data.n, batch_size))
        batches = epoch_batches(data.n, batch_size, epoch, epochs, rng)
        for done, (rows, decay) in enumerate(batches, epoch * n_batches + 1):
            batch = data.rows(rows).without_words(self.input_dropout, rng)
            rates = (self.learning_rate * decay, self.feature_learning_rate * decay)
            net.train_step(batch, Y, rows, self.dropout, rates, rng)
            progress("batches", done, epochs * n_batches)

    def _validation_score(self, net: ConvolutionalNet, sample: Documents, documents: Documents, Y: Csr) -> float:
        self._store(net, sample)
        return r_precision(self._rank(documents, min(VALIDATION_K, Y.shape[1]), self.seen_), Y)

    def _store(self, net: ConvolutionalNet, sample: Documents) -> None:
        """Make step 6; what batches normalized is normalized by a sample of the documents from now on."""
        if not all(np.isfinite(values).all() for values in net.arrays().values()):
            remedy = "lower learning_rate or feature_learning_rate"
            raise ParameterError(f"weights must stay finite in training, but some are not; {remedy}")
        self.word_vectors_, self.word_scales_ = quantize_int8(net.words.vectors)
        self.filters_, self.filter_bias_, bottleneck, self.bottleneck_bias_ = net.prediction_weights(sample)
        rows, self.bottleneck_scales_ = quantize_int8(bottleneck)
        self.bottleneck_ = np.ascontiguousarray(rows.T)
        self.output_weights_, self.output_scales_ = net.output.quantized_weights()
        self.output_bias_ = net.output.bias_values

    def knows_words(self, texts: Sequence[str]) -> Bools:
        """Return whether each text has a word with an embedding. Shape (n,)."""
        return np.asarray((self.sequences_.transform(texts) > UNKNOWN).any(axis=1))

    def _documents(self, texts: Sequence[str]) -> Documents:
        return Documents.from_token_ids(self.sequences_.transform(texts))

    def _predict(self, texts: Sequence[str], k: int, allowed: Bools | None = None) -> TopK:
        seen = self.seen_ if allowed is None else self.seen_ & allowed
        return listed_probabilities(self._rank(self._documents(texts), k, seen))

    def _rank(self, documents: Documents, k: int, allowed: Bools) -> TopK:
        """Return the best of the allowed labels of each document with their z."""
        filters = Convolutions(self.filters_, self.filter_bias_, self._widths, self.n_filters, self.n_chunks)
        dense = Layer(self.bottleneck_, self.bottleneck_scales_, self.bottleneck_bias_)
        output = Layer(self.output_weights_, self.output_scales_, self.output_bias_)
        network = Network(self.word_vectors_, self.word_scales_, filters, dense, output)
        return topk_in_blocks(convolution_topk, documents, network, allowed, n=documents.n, k=k, block=ROW_BLOCK)

    def report(self) -> dict[str, Any]:
        """Report the number of parameters, and with ``patience`` the score after each epoch."""
        self.check_fitted()
        tables = (self.word_vectors_, self.filters_, self.bottleneck_, self.output_weights_)
        report: dict[str, Any] = {"parameters": int(sum(table.size for table in tables))}
        return {**report, "accuracies": self.validation_scores_} if self.validation_scores_ else report
