"""Vectors of tokens, whose mean is the vector of a text: no network runs, so a text takes microseconds.

As in model2vec (Tulkens and van Dongen, "Model2Vec: Fast State-of-the-Art Static Embeddings", 2024):

1. Each token of the vocabulary goes through the network alone, between the tokens that begin and end a text.
2. The mean of all tokens is subtracted.
3. Tokens are weighted as in Arora, Liang and Ma, "A Simple but Tough-to-Beat Baseline for Sentence Embeddings" (ICLR
   2017): by a / (a + p) for a token of probability p. By Zipf's law p is 1 / rank, scaled; the ids of RoBERTa's tokens
   are their ranks.

Where we differ: there are no principal components, as 256 of them were no better than all 384 dimensions; texts are
lowercased and begin with a space, since most tokens that the network has seen do. docs/encoders.md has the figures.

Step 1 is made once on a machine; the result is kept in the user's cache folder.
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from labelspace.features.encoders.base import Encoder
from labelspace.features.encoders.kernels import sum_rows
from labelspace.features.encoders.transformer import TransformerEncoder
from labelspace.kernels.compilation import private_folder
from labelspace.store.atomic import replacing_file
from labelspace.types import Floats

FORMAT = 1  # of the table: another number where it is made in another way
SIF = 1e-4
BLOCK = 256  # tokens that go through the network at once
CACHE = "labelspace"
Halves = npt.NDArray[np.float16]


class StaticEncoder(Encoder):
    """The mean of the vectors of a text's tokens.

    ``table`` has a row for each token id, weighted; ``tokenize`` returns the ids of a text.
    """

    def __init__(self, name: str, sha256: str, table: Floats, tokenize: Callable[[str], Sequence[int]]) -> None:
        self.name, self.sha256, self.embedding_dim = name, sha256, table.shape[1]
        self._table, self._tokenize = table, tokenize

    def _encode_batch(self, texts: list[str]) -> Floats:
        found = [self._tokenize(text) for text in texts]
        starts = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(ids) for ids in found], out=starts[1:])
        ids = np.fromiter((id for each in found for id in each), np.int64, int(starts[-1]))
        sums = np.empty((len(texts), self.embedding_dim), np.float32)
        sum_rows(self._table, ids, starts, sums)
        return sums


def distilled(encoder: TransformerEncoder) -> StaticEncoder:
    """Return the static encoder made from the network, from the cache folder if it was made before."""
    path = _cache_path(encoder.sha256)
    table = None if path is None else _read(path, len(encoder.network.tokens))
    if table is None:
        table = distill(encoder)
        if path is not None:
            with suppress(OSError):  # a full disk: it is made again the next time
                _write(path, table)
    # Of what the table is made of: its own last bits may differ on other machines.
    sha256 = hashlib.sha256(f"{encoder.sha256} {FORMAT}".encode()).hexdigest()

    def tokenize(text: str) -> Sequence[int]:
        return encoder.tokenize(f" {text.lower()}")

    return StaticEncoder("static", sha256, table.astype(np.float32), tokenize)


def distill(encoder: TransformerEncoder) -> Halves:
    """Return the weighted vectors of all tokens in float16. Shape (vocabulary, dim)."""
    n = len(encoder.network.tokens)
    blocks = [range(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]
    vectors = np.concatenate([encoder.encode_tokens([[token] for token in block]) for block in blocks])
    vectors -= vectors.mean(axis=0)
    probability = 1 / np.arange(1, n + 1)
    weights = SIF / (SIF + probability / probability.sum())
    return np.asarray(vectors * weights[:, None], np.float16)


def _cache_path(sha256: str | None) -> Path | None:
    """Return where the table is kept; None without a folder that only this user can write to."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = private_folder(os.path.join(root, CACHE)) if os.path.isabs(root) and hasattr(os, "geteuid") else None
    return None if folder is None else Path(folder) / f"granite-static-{FORMAT}-{str(sha256)[:16]}.f16"


def _read(path: Path, n: int) -> Halves | None:
    """Return the table of a file that is whole: numbers, then their checksum; else None."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    numbers, digest = content[:-32], content[-32:]
    if len(numbers) % (2 * n) or hashlib.sha256(numbers).digest() != digest:
        return None
    return np.frombuffer(numbers, np.float16).reshape(n, -1)


def _write(path: Path, table: Halves) -> None:
    with replacing_file(path) as work:
        work.write_bytes(table.tobytes() + hashlib.sha256(table.tobytes()).digest())
