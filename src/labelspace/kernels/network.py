"""The input layer of a small network on sparse rows, and Adam for its dense layers: only touched rows are read."""

from __future__ import annotations

import numpy as np
from numba import njit

from labelspace.types import Floats, Ints


@njit(cache=True, nogil=True, fastmath=True)
def embed_rows(data: Floats, indices: Ints, indptr: Ints, start: int, stop: int, E: Floats, bias: Floats, out: Floats) -> None:
    """Rows start..stop of X (CSR) times E (n_features, d), plus the bias."""
    for row in range(start, stop):
        out[row] = bias
        for j in range(indptr[row], indptr[row + 1]):
            value, feature = data[j], indices[j]
            for m in range(E.shape[1]):
                out[row, m] += value * E[feature, m]


@njit(cache=True, nogil=True, fastmath=True)
def descend_features(
    data: Floats, rows: Ints, ends: Ints, features: Ints, start: int, stop: int, error: Floats, rate: float, E: Floats,
    squares: Floats,
) -> None:  # fmt: skip
    """One step of row-wise Adagrad on the rows of E that a batch touches.

    The batch comes by columns: feature ``features[i]`` has the values ``data[ends[i]:ends[i + 1]]`` in the documents
    ``rows[...]``. ``error`` (batch, d) is the gradient at the layer's output. ``squares`` (n_features,) sums the mean
    square of each row's gradients so far, and is all that the step remembers of a row.
    """
    d = E.shape[1]
    gradient = np.empty(d, np.float32)
    for i in range(start, stop):
        gradient[:] = 0.0
        for j in range(ends[i], ends[i + 1]):
            value, row = data[j], rows[j]
            for m in range(d):
                gradient[m] += value * error[row, m]
        total = np.float32(0.0)
        for m in range(d):
            total += gradient[m] * gradient[m]
        feature = features[i]
        squares[feature] += total / np.float32(d)
        step = np.float32(rate) / (np.sqrt(squares[feature]) + np.float32(1e-10))
        for m in range(d):
            E[feature, m] -= step * gradient[m]


@njit(cache=True, nogil=True, fastmath=True)
def adam(
    weights: Floats, gradient: Floats, mean: Floats, square: Floats, start: int, stop: int, rate: float, step: int
) -> None:
    """One step of Adam on rows start..stop of a dense layer."""
    a, b = np.float32(0.9), np.float32(0.999)
    one = np.float32(1.0)
    scale = np.float32(rate * np.sqrt(1.0 - 0.999**step) / (1.0 - 0.9**step))
    for row in range(start, stop):
        for m in range(weights.shape[1]):
            g = gradient[row, m]
            mean[row, m] = a * mean[row, m] + (one - a) * g
            square[row, m] = b * square[row, m] + (one - b) * g * g
            weights[row, m] -= scale * mean[row, m] / (np.sqrt(square[row, m]) + np.float32(1e-8))
