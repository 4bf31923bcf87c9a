"""From sparse features to a point of length 1: a vector a feature, perhaps a ReLU and a dense layer, and back again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelspace.training.dense_layers import TINY, Dense, lengths
from labelspace.training.optimizers import AdamParameter
from labelspace.training.sparse_layers import Batch, SparseLayer
from labelspace.types import Floats


@dataclass
class Trace:
    """A batch on its way through the encoder, with what the way back needs."""

    given: Batch
    first: Floats  # the first layer's output (batch, dimension), before the ReLU
    gate: Floats  # what each unit's output was multiplied by: 0 below the ReLU or dropped
    hidden: Floats  # after the gate
    lengths: Floats  # (batch,) of the last layer's output
    points: Floats  # phi (batch, dimension)


class Encoder:
    """phi while it learns."""

    def __init__(self, features: SparseLayer, second: Dense | None, width: int, relu: bool) -> None:
        self.features, self.second, self.relu = features, second, relu
        self.offset = AdamParameter(np.zeros(width, np.float32))
        self.length = AdamParameter(np.ones(1, np.float32))  # of the first layer's units, where they are normalized

    def forward(self, given: Batch, dropout: float, rng: np.random.Generator) -> Trace:
        """The points of a batch, with some hidden units dropped."""
        first = self._first(given)
        gate = np.ones_like(first)
        if dropout:
            gate[rng.random(first.shape, np.float32) < dropout] = 0.0
            gate /= np.float32(1 - dropout)
        if self.relu:
            gate *= first > 0
        hidden: Floats = first * gate
        last = hidden if self.second is None else self.second.forward(hidden)
        size = lengths(last)
        return Trace(given, first, gate, hidden, size, last / size[:, None])

    def points(self, given: Batch) -> Floats:
        """The points of some documents, nothing dropped."""
        return self.forward(given, 0.0, np.random.default_rng(0)).points

    def _first(self, given: Batch) -> Floats:
        if not self.features.normalized:
            return self.features.embed(given, self.offset.value)
        return self.features.embed(given, np.zeros_like(self.offset.value)) * self.length.value + self.offset.value

    def backward(self, trace: Trace, gradient: Floats, rate: float, feature_rate: float, number: int) -> None:
        """Move all weights on the gradient by the points."""
        points = trace.points
        gradient = gradient - np.einsum("ij,ij->i", gradient, points)[:, None] * points
        gradient /= trace.lengths[:, None]
        gradient[trace.lengths <= TINY] = 0.0  # no direction to turn: nothing was seen, or all was dropped
        if self.second is not None:
            gradient = self.second.descend(trace.hidden, gradient, rate, number)
        gradient *= trace.gate
        if self.features.normalized:
            by_length = np.vdot(gradient, trace.first - self.offset.value) / self.length.value
            before = self.length.value.copy()
            self.length.step(by_length.astype(np.float32), rate, number)
            self.features.descend(trace.given, gradient * before, feature_rate)
        else:
            self.features.descend(trace.given, gradient, feature_rate)
        self.offset.step(gradient.sum(axis=0), rate, number)
