"""An encoder that is a transformer: token ids, between those that begin and end a text, through the network."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext

import numpy as np
from threadpoolctl import threadpool_limits

from labelspace.features.encoders.base import Encoder
from labelspace.features.encoders.network import Network
from labelspace.kernels.threads import run_blocks
from labelspace.types import Floats

BLOCK_TOKENS = 512  # that go through the network at once: what a layer writes stays in the processor's cache


class TransformerEncoder(Encoder):
    """A network with its tokenizer; of a text, the first ``max_length`` tokens count, with ``begin`` and ``end``."""

    def __init__(
        self,
        name: str,
        sha256: str,
        network: Network,
        tokenize: Callable[[str], Sequence[int]],
        *,
        ends: tuple[int, int],
        max_length: int,
    ) -> None:
        self.name, self.sha256, self.network, self.tokenize = name, sha256, network, tokenize
        self.embedding_dim = network.tokens.shape[1]
        self._begin, self._end, self._most = *ends, min(max_length, len(network.positions)) - 2

    def _encode_batch(self, texts: list[str]) -> Floats:
        return self.encode_tokens([self.tokenize(text) for text in texts])

    def encode_tokens(self, texts: Sequence[Sequence[int]]) -> Floats:
        """Return the vectors of texts of token ids, without those that begin and end a text. Shape (n, dim)."""
        whole = [[self._begin, *text[: self._most], self._end] for text in texts]
        ends = np.cumsum([len(text) for text in whole])
        blocks = np.split(np.arange(len(whole)), np.flatnonzero(np.diff(ends // BLOCK_TOKENS)) + 1)
        vectors = np.empty((len(whole), self.embedding_dim), np.float32)

        def run(start: int, stop: int) -> None:
            for rows in blocks[start:stop]:
                vectors[rows] = self.network([whole[row] for row in rows])

        with threadpool_limits(1, user_api="blas") if self.network.uses_blas else nullcontext():
            run_blocks(run, len(blocks), 1)
        return vectors
