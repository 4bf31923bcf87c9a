"""Dense layers, alone and in a stack: forward, and back again with a step of Adam on the way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labelspace.kernels.sparse_layers import dense_forward
from labelspace.training.losses import sigmoid
from labelspace.training.optimizers import AdamParameter
from labelspace.types import Floats

ACTIVATIONS = ("relu", "tanh", "sigmoid", "elu", "linear")
TINY = np.float32(1e-12)  # the length of a vector of zeros, so that one may divide by it


class Dense:
    """A dense layer that Adam moves, a row of weights a unit; normalized, all rows have one learned length."""

    def __init__(self, rows: Floats, normalized: bool = False) -> None:
        self.rows, self.normalized = AdamParameter(rows), normalized
        self.offset = AdamParameter(np.zeros(len(rows), np.float32))
        self.length = AdamParameter(np.ones(1, np.float32))

    @classmethod
    def random(cls, inputs: int, units: int, rng: np.random.Generator, normalized: bool = False) -> Dense:
        """Random rows of about length 1."""
        return cls(rng.standard_normal((units, inputs), np.float32) * np.float32(inputs**-0.5), normalized)

    @property
    def weights(self) -> Floats:
        """The rows as they are used. Shape (units, inputs)."""
        rows = self.rows.value
        if not self.normalized:
            return rows
        scaled: Floats = rows * (self.length.value / lengths(rows))[:, None]
        return scaled

    def forward(self, inputs: Floats) -> Floats:
        """The output (batch, units) of inputs (batch, inputs)."""
        out: Floats = inputs @ self.weights.T
        out += self.offset.value
        return out

    def descend(self, inputs: Floats, gradient: Floats, rate: float, number: int) -> Floats:
        """Move on the gradient by the output (batch, units); that by the inputs is returned."""
        weights, own = self.weights, gradient.T @ inputs
        back: Floats = gradient @ weights
        if self.normalized:
            rows = self.rows.value
            size = lengths(rows)[:, None]
            along = (own * rows).sum(axis=1, keepdims=True) / size
            own = (own - along * rows / size) * (self.length.value / size)
            self.length.step(along.sum(axis=0), rate, number)
        self.rows.step(own, rate, number)
        self.offset.step(gradient.sum(axis=0), rate, number)
        return back


class Stack:
    """Dense layers one after another, each with its activation."""

    def __init__(self, layers: Sequence[Dense], activations: Sequence[str]) -> None:
        self.layers, self.activations = list(layers), list(activations)

    @classmethod
    def random(cls, widths: Sequence[int], activation: str, last: str, rng: np.random.Generator) -> Stack:
        """Random layers from the first width to the last; with one width there are none, and nothing is done.

        >>> stack = Stack.random([4, 3, 2], "relu", "tanh", np.random.default_rng(0))
        >>> [values.shape for values in stack.forward(np.ones((5, 4), np.float32))]
        [(5, 4), (5, 3), (5, 2)]
        """
        layers = [Dense.random(inputs, units, rng) for inputs, units in zip(widths, widths[1:], strict=False)]
        return cls(layers, [activation] * (len(layers) - 1) + [last] * bool(layers))

    def forward(self, inputs: Floats) -> list[Floats]:
        """What goes into each layer, and last what comes out."""
        values = [inputs]
        for layer, activation in zip(self.layers, self.activations, strict=True):
            values.append(activated(layer.forward(values[-1]), activation))
        return values

    def backward(self, values: Sequence[Floats], gradient: Floats, rate: float, number: int) -> Floats:
        """Move on the gradient by what came out of ``forward``; that by what went in is returned."""
        for at in reversed(range(len(self.layers))):
            by_sum = gradient * slopes(values[at + 1], self.activations[at])
            gradient = self.layers[at].descend(values[at], by_sum, rate, number)
        return gradient


Chain = list[tuple[int, str]]
"""Width and activation of each of some layers."""


def layer_chain(widths: Sequence[int], activation: str, last: str) -> Chain:
    """Layers of these widths, the last of them with an activation of its own.

    >>> layer_chain([512, 64], "relu", "linear")
    [(512, 'relu'), (64, 'linear')]
    """
    return [*((width, activation) for width in widths[:-1]), (widths[-1], last)]


def flatten_layers(layers: Sequence[Dense]) -> Floats:
    """The layers as one array, to be kept: for each its weights (inputs, units), then its offset."""
    parts = [part for layer in layers for part in (layer.weights.T.ravel(), layer.offset.value)]
    return np.concatenate([np.zeros(0, np.float32), *parts])


def through(values: Floats, flat: Floats, chain: Chain) -> Floats:
    """Rows (n, width) through layers that ``flatten_layers`` made one, each row by itself and in one order of sums.

    ``chain`` has the width and the activation of each layer, the first being that of the rows as they come; the rows
    may be overwritten.
    """
    values, at = activated(values, chain[0][1]), 0
    for (inputs, _), (units, activation) in zip(chain, chain[1:], strict=False):
        weights, offset = flat[at : at + inputs * units], flat[at + inputs * units : at + (inputs + 1) * units]
        out = np.empty((len(values), units), np.float32)
        dense_forward(values, weights.reshape(inputs, units), offset, out)
        values, at = activated(out, activation), at + (inputs + 1) * units
    return values


def activated(values: Floats, activation: str) -> Floats:
    """The activation of each value, in place where that can be.

    >>> activated(np.array([-1.0, 2.0], np.float32), "relu").tolist()
    [0.0, 2.0]
    """
    if activation == "relu":
        return np.maximum(values, np.float32(0), out=values)
    if activation == "tanh":
        return np.tanh(values, out=values)
    if activation == "sigmoid":
        return sigmoid(values)
    if activation == "elu":
        return np.where(values > 0, values, np.expm1(np.minimum(values, np.float32(0))))
    return values


def slopes(out: Floats, activation: str) -> Floats:
    """The derivative of an activation, told by what came out of it."""
    if activation == "relu":
        return (out > 0).astype(np.float32)
    if activation == "tanh":
        return np.float32(1) - out * out
    if activation == "sigmoid":
        return out * (np.float32(1) - out)
    if activation == "elu":
        return np.where(out > 0, np.float32(1), out + np.float32(1))
    return np.ones_like(out)


def lengths(rows: Floats) -> Floats:
    """Euclidean lengths of rows, never quite 0."""
    found: Floats = np.maximum(np.sqrt(np.einsum("ij,ij->i", rows, rows)), TINY)
    return found
