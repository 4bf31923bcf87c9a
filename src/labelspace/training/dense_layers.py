"""Dense layers, one or several, and output layers with a row of weights per label: forward, backward, and the update.

Dense layers are updated by Adam. An output layer computes each block of labels from scores to its Adam step while it is
in the cache, or updates only sampled labels by row-wise Adagrad.
"""

from collections.abc import Callable, Sequence
from typing import Self

import numpy as np

from labelspace.estimator.parameter_constraints import Constraint, integer
from labelspace.kernels.normalize import row_norms
from labelspace.kernels.quantize import Int8s, quantize_int8
from labelspace.kernels.sparse_layers import dense_forward
from labelspace.kernels.threads import run_blocks
from labelspace.training.losses import sigmoid
from labelspace.training.optimizers import AdamParameter
from labelspace.training.sparse_layers import SparseLayer
from labelspace.types import Floats, Ints, Rng

LABEL_BLOCK = 512  # labels per task: their scores of a batch stay in the cache

_ACTIVATIONS: dict[str, tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]] = {
    "relu": (lambda sums: np.maximum(sums, np.float32(0), out=sums), lambda out: (out > 0).astype(np.float32)),
    "tanh": (lambda sums: np.tanh(sums, out=sums), lambda out: np.float32(1) - out * out),
    "sigmoid": (sigmoid, lambda out: out * (np.float32(1) - out)),
    "elu": (
        lambda sums: np.where(sums > 0, sums, np.expm1(np.minimum(sums, np.float32(0)))),
        lambda out: np.where(out > 0, np.float32(1), out + np.float32(1)),
    ),
    "linear": (lambda sums: sums, np.ones_like),
}
"""Each activation, in place where possible, and its derivative, computed from its output."""
ACTIVATIONS = tuple(_ACTIVATIONS)

LossGradient = Callable[[Floats, int], None]
"""Turns the scores (batch, n) of n labels from a first one on into the gradient of the loss by them, in place."""


class DenseLayer:
    """A dense layer trained by Adam, one row of weights per unit; normalized, all rows share one learned norm."""

    def __init__(self, rows: Floats, normalized: bool = False) -> None:
        self.rows, self.normalized = AdamParameter(rows), normalized
        self.bias = AdamParameter(np.zeros(len(rows), np.float32))
        self.norm = AdamParameter(np.ones(1, np.float32))

    @classmethod
    def random(cls, inputs: int, units: int, rng: Rng, normalized: bool = False) -> Self:
        """Draw rows with norms of about 1."""
        return cls(rng.standard_normal((units, inputs), np.float32) * np.float32(inputs**-0.5), normalized)

    @property
    def weights(self) -> Floats:
        """The effective weights, after normalization. Shape (units, inputs)."""
        rows = self.rows.value
        return np.asarray(rows * (self.norm.value / row_norms(rows))[:, None]) if self.normalized else rows

    def forward(self, inputs: Floats) -> Floats:
        """Return the output (batch, units) for inputs (batch, inputs)."""
        out: Floats = inputs @ self.weights.T
        out += self.bias.value
        return out

    def backward(self, inputs: Floats, gradient: Floats, rate: float, n_steps: int) -> Floats:
        """Update on the gradient by the output (batch, units); return the gradient by the inputs."""
        by_weights = gradient.T @ inputs
        by_inputs: Floats = gradient @ self.weights
        if self.normalized:
            rows = self.rows.value
            norms = row_norms(rows)[:, None]
            along = (by_weights * rows).sum(axis=1, keepdims=True) / norms
            by_weights = (by_weights - along * rows / norms) * (self.norm.value / norms)
            self.norm.step(along.sum(axis=0), rate, n_steps)
        self.rows.step(by_weights, rate, n_steps)
        self.bias.step(gradient.sum(axis=0), rate, n_steps)
        return by_inputs


class MLP:
    """Dense layers one after another, each with its activation."""

    def __init__(self, layers: Sequence[DenseLayer], activations: Sequence[str]) -> None:
        self.layers, self.activations = list(layers), list(activations)

    @classmethod
    def random(cls, widths: Sequence[int], activation: str, last: str, rng: Rng) -> Self:
        """Draw layers from the first width to the last; one width gives no layer, and the identity.

        >>> mlp = MLP.random([4, 3, 2], "relu", "tanh", np.random.default_rng(0))
        >>> [values.shape for values in mlp.forward(np.ones((5, 4), np.float32))]
        [(5, 4), (5, 3), (5, 2)]
        """
        layers = [DenseLayer.random(inputs, units, rng) for inputs, units in zip(widths, widths[1:], strict=False)]
        return cls(layers, [activation] * (len(layers) - 1) + [last] * bool(layers))

    def forward(self, inputs: Floats) -> list[Floats]:
        """Return the input of each layer, and last the output."""
        values = [inputs]
        for layer, activation in zip(self.layers, self.activations, strict=True):
            values.append(activate(layer.forward(values[-1]), activation))
        return values

    def backward(self, values: Sequence[Floats], gradient: Floats, rate: float, n_steps: int) -> Floats:
        """Update on the gradient by the output; ``values`` are from ``forward``. Return the gradient by the inputs."""
        for i in reversed(range(len(self.layers))):
            by_sum = gradient * activation_derivative(values[i + 1], self.activations[i])
            gradient = self.layers[i].backward(values[i], by_sum, rate, n_steps)
        return gradient


LayerSpecs = list[tuple[int, str]]  # width and activation of each layer


def _are_layer_specs(value: object) -> bool:
    if not isinstance(value, list) or not value:
        return False
    if not all(isinstance(spec, list | tuple) and len(spec) == 2 for spec in value):
        return False
    return all(integer(1).holds(width) and activation in ACTIVATIONS for width, activation in value)


LAYER_SPECS = Constraint("a list of the width and activation of each layer", _are_layer_specs)


def layer_specs(widths: Sequence[int], activation: str, last: str) -> LayerSpecs:
    """Return the specs of layers of these widths, the last with the activation ``last``.

    >>> layer_specs([512, 64], "relu", "linear")
    [(512, 'relu'), (64, 'linear')]
    """
    return [*((width, activation) for width in widths[:-1]), (widths[-1], last)]


def flatten_layers(layers: Sequence[DenseLayer]) -> Floats:
    """Return the layers as one array to save: the weights (inputs, units) of each, then its bias."""
    parts = [part for layer in layers for part in (layer.weights.T.ravel(), layer.bias.value)]
    return np.concatenate([np.zeros(0, np.float32), *parts])


def forward_flat(values: Floats, flat: Floats, specs: LayerSpecs) -> Floats:
    """Return the output of layers from ``flatten_layers``; a row's result does not depend on the other rows.

    The first of ``specs`` is the width and activation of ``values`` (n, width), which may be overwritten.
    """
    values, start = activate(values, specs[0][1]), 0
    for (inputs, _), (units, activation) in zip(specs, specs[1:], strict=False):
        middle, stop = start + inputs * units, start + (inputs + 1) * units
        out = np.empty((len(values), units), np.float32)
        dense_forward(values, flat[start:middle].reshape(inputs, units), flat[middle:stop], out)
        values, start = activate(out, activation), stop
    return values


def activate(values: Floats, activation: str) -> Floats:
    """Return the activation of each value, in place where possible.

    >>> activate(np.array([-1.0, 2.0], np.float32), "relu").tolist()
    [0.0, 2.0]
    """
    return _ACTIVATIONS[activation][0](values)


def activation_derivative(out: Floats, activation: str) -> Floats:
    """Return the derivative of an activation, computed from its output."""
    return _ACTIVATIONS[activation][1](out)


class OutputLayer:
    """z = W h + b for all labels."""

    def __init__(self, weights: Floats, bias: Floats) -> None:
        self.weights, self.bias = AdamParameter(weights), AdamParameter(bias)  # (n_labels, width) and (n_labels,)

    @classmethod
    def random(cls, bias: Floats, width: int, rng: Rng) -> Self:
        """Draw the weights; the initial bias (n_labels,) is given."""
        return cls(_random_rows(len(bias), width, rng), bias)

    def backward(self, hidden: Floats, loss_gradient: LossGradient, rate: float, n_steps: int) -> Floats:
        """Score all labels for ``hidden`` (batch, width), and update on the loss; return the gradient by ``hidden``.

        Scores exist only block by block, so the forward pass is part of this.
        """
        n_labels = len(self.bias.value)
        gradients = np.empty((-(-n_labels // LABEL_BLOCK), *hidden.shape), np.float32)

        def update(start: int, stop: int) -> None:
            part = slice(start, stop)
            weights = self.weights.value[part]
            errors: Floats = hidden @ weights.T  # (batch, stop - start)
            errors += self.bias.value[part]
            loss_gradient(errors, start)
            np.matmul(errors, weights, out=gradients[start // LABEL_BLOCK])
            self.weights.step(errors.T @ hidden, rate, n_steps, part)
            self.bias.step(errors.sum(axis=0), rate, n_steps, part)

        run_blocks(update, n_labels, LABEL_BLOCK)
        gradient: Floats = gradients.sum(axis=0)  # in one order, whatever the threads did
        return gradient

    @property
    def bias_values(self) -> Floats:
        """The bias of each label. Shape (n_labels,)."""
        return self.bias.value

    def quantized_weights(self) -> tuple[Int8s, Floats]:
        """Return the weights for prediction: (width, n_labels) in int8, with a scale per label."""
        return _quantized_weights(self.weights.value)


class SampledOutputLayer:
    """z = W h + b where a step updates only some labels: row-wise Adagrad stores one number per label."""

    def __init__(self, weights: Floats, bias: Floats) -> None:
        self.rows = SparseLayer(np.concatenate([weights, bias[:, None]], axis=1))  # (n_labels, width + 1)

    @classmethod
    def random(cls, bias: Floats, width: int, rng: Rng) -> Self:
        """Draw the weights; the initial bias (n_labels,) is given."""
        return cls(_random_rows(len(bias), width, rng), bias)

    def backward(self, hidden: Floats, ids: Ints, loss_gradient: LossGradient, rate: float) -> Floats:
        """Score the labels ``ids``, each named once, and update them on the loss; return the gradient by hidden."""
        padded, rows = append_ones(hidden), self.rows.vectors[ids]
        errors: Floats = padded @ rows.T  # (batch, len(ids))
        loss_gradient(errors, 0)
        gradient: Floats = errors @ rows[:, :-1]
        self.rows.update_rows(ids, errors.T @ padded, rate)
        return gradient

    @property
    def bias_values(self) -> Floats:
        """The bias of each label. Shape (n_labels,)."""
        return self.rows.vectors[:, -1].copy()

    def quantized_weights(self) -> tuple[Int8s, Floats]:
        """Return the weights for prediction: (width, n_labels) in int8, with a scale per label."""
        return _quantized_weights(self.rows.vectors[:, :-1])


def append_ones(hidden: Floats) -> Floats:
    """Append a column of ones, which multiplies biases, to activations (batch, width)."""
    return np.concatenate([hidden, np.ones((len(hidden), 1), np.float32)], axis=1)


def _random_rows(n_labels: int, width: int, rng: Rng) -> Floats:
    return np.asarray(rng.standard_normal((n_labels, width), np.float32) * np.float32(width**-0.5))


def _quantized_weights(rows: Floats) -> tuple[Int8s, Floats]:
    weights, scales = quantize_int8(rows)
    return np.ascontiguousarray(weights.T), scales
