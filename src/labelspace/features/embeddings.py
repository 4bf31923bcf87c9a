"""Text embeddings of a pretrained encoder; see docs/encoders.md for the encoders and the extras that bring them."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from labelspace.errors import ModelError
from labelspace.estimator import learned, param
from labelspace.estimator.parameter_constraints import Constraint, integer, optional, text
from labelspace.estimator.state_constraints import plain
from labelspace.features.base import Features
from labelspace.features.encoders.base import BATCH_SIZE
from labelspace.features.encoders.registry import FUNCTION, AnyEncoder, check_encoder, is_function, load_encoder
from labelspace.features.sparse_matrix import CsrRows, stack_rows
from labelspace.kernels import large_arrays
from labelspace.types import Csr, Floats, Progress, no_progress

ENCODER = Constraint("a text, an encoder or a function", lambda value: isinstance(value, str) or is_function(value))
DEFAULT = "granite"
EARLIER = "minilm"  # the encoder of models that were saved before there were others


class Embeddings(Features):
    """The vectors of an encoder as rows of X: all columns are filled, and about half of the values are negative.

    The encoder is not saved with a model, only the checksum of its weights: it must be the same when texts are tagged.
    """

    name: ClassVar[str] = "embeddings"

    encoder: AnyEncoder = param(
        DEFAULT, ENCODER, "Encoder of the texts: static, granite, minilm, a folder, or hub:owner/name."
    ).for_earlier(EARLIER)
    batch_size: int = param(BATCH_SIZE, integer(1), "Texts encoded at once.")

    embedding_dim_: int = learned(plain(integer(1)), default=384)
    sha256_: str | None = learned(plain(optional(text())), default=None)

    @property
    def n_features(self) -> int:
        """Dimensions of the vectors."""
        return self.embedding_dim_

    def check_params(self) -> None:
        """Check every parameter, and that the extra is installed, before any data are read."""
        super().check_params()
        check_encoder(self.encoder)

    def saved_params(self) -> dict[str, Any]:
        """Return the parameters as they are saved: a function of the user stays outside."""
        return self.get_params() | ({} if isinstance(self.encoder, str) else {"encoder": FUNCTION})

    def _learn(self, texts: Sequence[str]) -> None:
        """Note which weights the encoder has."""
        self.check_params()
        encoder = load_encoder(self.encoder)
        self.embedding_dim_, self.sha256_ = encoder.embedding_dim, encoder.sha256

    def transform(self, texts: Iterable[str]) -> Csr:
        """Return the rows of these texts. Shape (n, embedding_dim)."""
        self.check_fitted()
        self.check_params()
        encoder = load_encoder(self.encoder, download=False)
        found, trained = (encoder.sha256, encoder.embedding_dim), (self.sha256_, self.embedding_dim_)
        if trained not in (found, (None, found[1])):
            rule = f"the encoder {encoder.name} must be that of the training, {_described(*trained)}"
            raise ModelError(f"{rule}, but is {_described(*found)}; give that one, or train again")
        vectors = encoder.encode(texts, self.batch_size)
        columns = large_arrays.empty(vectors.size, np.int32)
        columns.reshape(vectors.shape)[:] = np.arange(encoder.embedding_dim)
        ends = np.arange(1, len(vectors) + 1, dtype=np.int64) * encoder.embedding_dim
        return stack_rows([CsrRows(columns, vectors.ravel(), ends)], encoder.embedding_dim)


def embed_texts(
    texts: Iterable[str],
    batch_size: int = BATCH_SIZE,
    progress: Progress = no_progress,
    *,
    encoder: AnyEncoder = DEFAULT,
) -> Floats:
    """Return a unit vector for the meaning of each text: the cosine similarity of two texts is their inner product.

    ``encoder`` is as for ``Embeddings``. Nothing is downloaded unless it is of the hub. ``progress("embed", done,
    total)`` is called after each batch. Shape (n, embedding_dim).
    """
    return load_encoder(encoder).encode(texts, batch_size, progress)


def _described(sha256: str | None, embedding_dim: int) -> str:
    return f"of {embedding_dim} dimensions" + (f" with SHA-256 {sha256[:12]}..." if sha256 else "")
