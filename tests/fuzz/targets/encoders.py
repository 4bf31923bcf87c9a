"""Read an encoder, and encode texts with it."""

from pathlib import Path

import numpy as np

from labelspace.features.encoders.base import Encoder
from labelspace.features.encoders.folder import read_folder
from labelspace.features.encoders.granite import FILE, read_granite
from tests.fuzz.targets.outcome import Attempts, BadAnswerError

TEXTS = ["the cat's hat", "", "a dog on the mat " * 20, "日本 \x00"]


def run(base: str, folder: Path, out: Path) -> tuple[str, str]:
    """The outcome of one case."""
    attempts = Attempts()
    encoder = attempts(read_granite, folder / FILE) if base == "granite-" else attempts(read_folder, folder, "fuzzed")
    attempts.answers = 0
    if encoder is not None:
        attempts(encode, encoder)
    return attempts.outcome


def encode(encoder: Encoder) -> None:
    """Vectors are finite, and of length 1 or 0."""
    vectors = encoder.encode(TEXTS)
    norms = np.linalg.norm(vectors, axis=1)
    if vectors.shape != (len(TEXTS), encoder.embedding_dim) or not ((abs(norms - 1) < 1e-3) | (norms == 0)).all():
        raise BadAnswerError(f"vectors of shape {vectors.shape} with norms {norms}")
