"""Between sparse rows and codes: an encoder, and a decoder that is judged by the squared error of what it gives back.

Neither ever makes a table (batch, n_features) where there are more features than are drawn: the encoder reads the
vectors of the features that a row has; the decoder counts the error at those, and at some drawn by chance, each of
which stands for as many as were left out. On average that is the error over all features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labelspace.kernels.quantize import Int8s
from labelspace.kernels.sparse_layers import embed_rows, sampled_squared_errors
from labelspace.kernels.threads import run_blocks
from labelspace.training.dense_layers import Chain, Stack, activated, slopes, through
from labelspace.training.optimizers import AdamParameter
from labelspace.training.sparse_layers import ROW_BLOCK, Batch, SparseLayer
from labelspace.types import Csr, Floats, Ints

DECODER_SHARE = 0.1  # of the dense rate: at all of it a decoder overshoots, and its error spoils the codes


@dataclass(frozen=True)
class LearningRates:
    """How far a step goes: dense weights move by Adam, an encoder's vectors of features by row-wise Adagrad."""

    dense: float
    sparse: float
    n_steps: int  # of the step, from 1

    @property
    def decoder(self) -> float:
        """Of a decoder's vectors of features, which row-wise Adagrad moves too."""
        return DECODER_SHARE * self.dense

    def none(self) -> LearningRates:
        """The rates of weights that rest."""
        return LearningRates(0.0, 0.0, self.n_steps)


@dataclass(frozen=True)
class TrainingPhase:
    """What counts for a while: the weights of the two reconstructions, whether to classify, and what rests."""

    alpha: float
    beta: float
    classify: bool
    freeze_codes: bool = False  # the autoencoders stay as they are


def phases(training: str, alpha: float, beta: float | None = None) -> list[TrainingPhase]:
    """The phases of a training, by its name; ``beta`` is None where there is no second autoencoder.

    In a phase of the codes alone a weight of 0 counts as 1: there would be nothing to learn.

    >>> [(phase.alpha, phase.classify, phase.freeze_codes) for phase in phases("staged", alpha=0.5)]
    [(0.5, False, False), (0.0, True, True)]
    """
    everything = TrainingPhase(alpha, beta or 0.0, True)
    codes = TrainingPhase(alpha or 1.0, 0.0 if beta is None else beta or 1.0, False)
    return {
        "joint": [everything],
        "pretrained": [codes, everything],
        "staged": [codes, TrainingPhase(0.0, 0.0, True, freeze_codes=True)],
    }[training]


@dataclass
class Trace:
    """A batch on its way through an encoder, with what the way back needs."""

    given: Batch
    first: Floats  # what came out of the first layer (batch, width)
    gate: Floats  # what that was multiplied by: 0 where a unit was dropped
    values: list[Floats]  # what went into each further layer, and the code

    @property
    def code(self) -> Floats:
        """What came out. Shape (batch, code)."""
        return self.values[-1]


class SparseEncoder:
    """phi while it learns: a vector a feature, summed, and dense layers behind."""

    def __init__(self, features: SparseLayer, activation: str, stack: Stack) -> None:
        self.features, self.activation, self.stack = features, activation, stack
        self.offset = AdamParameter(np.zeros(features.vectors.shape[1], np.float32))

    @classmethod
    def random(
        cls, X: Csr, widths: Sequence[int], activation: str, last: str, rng: np.random.Generator
    ) -> SparseEncoder:
        """From the features of X through the widths, the last of which is the code's."""
        features = SparseLayer.random(X, widths[0], rng)
        return cls(features, activation if len(widths) > 1 else last, Stack.random(widths, activation, last, rng))

    def forward(self, given: Batch, dropout: float, rng: np.random.Generator) -> Trace:
        """The codes of a batch, with some units of the first layer dropped."""
        first = activated(self.features.embed(given, self.offset.value), self.activation)
        gate = np.ones_like(first)
        if dropout:
            gate[rng.random(first.shape, np.float32) < dropout] = 0.0
            gate /= np.float32(1 - dropout)
        return Trace(given, first, gate, self.stack.forward(first * gate))

    def backward(self, trace: Trace, gradient: Floats, rates: LearningRates) -> None:
        """Move all weights on the gradient by the codes."""
        by_first = self.stack.backward(trace.values, gradient, rates.dense, rates.n_steps) * trace.gate
        by_sum = by_first * slopes(trace.first, self.activation)
        self.offset.step(by_sum.sum(axis=0), rates.dense, rates.n_steps)
        self.features.descend(trace.given, by_sum, rates.sparse)


class SparseDecoder:
    """psi while it learns: dense layers, and a vector a feature whose product with the last is the feature's value."""

    def __init__(self, stack: Stack, features: SparseLayer, drawn: int) -> None:
        self.stack, self.features, self.drawn = stack, features, drawn
        self.errors: list[float] = []  # of each batch, a row
        self._place = np.full(len(features.vectors), -1, np.int32)

    @classmethod
    def random(
        cls, X: Csr, widths: Sequence[int], activation: str, drawn: int, rng: np.random.Generator
    ) -> SparseDecoder:
        """From a code through the widths, the first of which is the code's, to the features of X.

        The vectors of features begin at 0: with any others the error would begin above that of saying nothing, and
        grow with the codes.
        """
        features = SparseLayer(np.zeros((X.shape[1], widths[-1]), np.float32))
        return cls(Stack.random(widths, activation, activation, rng), features, drawn)

    def descend(
        self, code: Floats, given: Batch, weight: float, rates: LearningRates, rng: np.random.Generator
    ) -> Floats:
        """Move on ``weight`` times the squared error of the given rows; the gradient by the code is returned."""
        values = self.stack.forward(code)
        hidden, n = values[-1], len(self._place)
        ids = self._draw(n, rng)
        self._place[ids] = np.arange(len(ids))
        drawn: Floats = hidden @ self.features.vectors[ids].T  # (batch, drawn)
        own = self.features.at(given, hidden, self._place)
        stands_for = n / max(len(ids), 1)  # there may be no features at all
        self.errors.append(sampled_squared_errors(*given, self._place, stands_for, own, drawn) / len(code))
        self._place[ids] = -1
        for errors in (own, drawn):
            errors *= np.float32(2 * weight)
        gradient: Floats = drawn @ self.features.vectors[ids]
        if len(ids) < n:
            listed: Batch = (own, given[1], given[2])
            gradient += self.features.embed(listed, np.zeros(hidden.shape[1], np.float32))
            self.features.descend(listed, hidden, rates.decoder)
        self.features.descend_rows(ids, drawn.T @ hidden, rates.decoder)
        return self.stack.backward(values, gradient, rates.dense, rates.n_steps)

    def error(self) -> float | None:
        """The squared error of a row, averaged over the last tenth of all batches; None where there were none."""
        last = self.errors[-max(1, len(self.errors) // 10) :]
        return round(float(np.mean(last)), 4) if last else None

    def _draw(self, n: int, rng: np.random.Generator) -> Ints:
        """The features that are counted in every row, each once, in order."""
        ids = np.arange(n) if n <= self.drawn else np.unique(rng.integers(0, n, self.drawn))
        return ids.astype(np.int32)


@dataclass(frozen=True)
class QuantizedEncoder:
    """An encoder that has learned, as it is kept: the features' vectors in bytes, and what follows in one array."""

    vectors: Int8s  # (n_features, width)
    scales: Floats  # (n_features,)
    offset: Floats  # (width,)
    dense: Floats  # see ``flatten_layers``
    chain: Chain

    def __call__(self, X: Csr, start: int, stop: int) -> Floats:
        """The codes of the rows start..stop of X, each the same whatever rows are beside it."""
        sums = np.empty((stop - start, len(self.offset)), np.float32)
        rows = (X.data, X.indices, X.indptr[start : stop + 1])
        embed_rows(*rows, 0, stop - start, self.vectors, self.scales, self.offset, sums)
        return through(sums, self.dense, self.chain)

    def rows(self, X: Csr) -> Floats:
        """The codes of all rows of X: (n, code)."""
        out = np.empty((X.shape[0], self.chain[-1][0]), np.float32)

        def encode(start: int, stop: int) -> None:
            out[start:stop] = self(X, start, stop)

        run_blocks(encode, X.shape[0], ROW_BLOCK)
        return out
