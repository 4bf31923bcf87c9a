"""Regularizers of the label embeddings: the gradients of eq. 3 (GLaS), eq. 2 (spread-out) and gravity.

Each is computed on the m labels sampled for a batch, whose embeddings are the rows of V (m, dim).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from labelspace.types import Floats, Ints


class RegularizerGradient(NamedTuple):
    """What a regularizer adds to the gradients of a batch."""

    labels: Ints  # (m,) ascending
    of_labels: Floats  # (m, dim)
    of_documents: Floats | None = None  # (batch, dim)


def regularizer_gradient(
    name: str, weight: float, labels: Ints, V: Floats, phi: Floats, similarities: Callable[[Ints], Floats]
) -> RegularizerGradient:
    """The gradient of the regularizer of this name; ``similarities(labels)`` is U."""
    if name == "none" or weight == 0 or not len(labels):
        return RegularizerGradient(labels[:0], V[:0])
    if name == "glas":
        return glas_gradient(labels, V, similarities(labels), weight)
    if name == "spread_out":
        return spread_out_gradient(labels, V, weight)
    return gravity_gradient(labels, V, phi, weight)


def glas_gradient(labels: Ints, V: Floats, U: Floats, weight: float) -> RegularizerGradient:
    """Of eq. 3, ``weight`` / m^2 ||V V' - U||^2; U (m, m) is the labels' co-occurrence similarity."""
    return _product_gradient(labels, V, V @ V.T - U, weight)


def spread_out_gradient(labels: Ints, V: Floats, weight: float) -> RegularizerGradient:
    """Of eq. 2, ``weight`` / m^2 ||V V'||^2; the diagonal is constant on the sphere."""
    products: Floats = V @ V.T
    products[np.diag_indices(len(labels))] = 0.0
    return _product_gradient(labels, V, products, weight)


def gravity_gradient(labels: Ints, V: Floats, phi: Floats, weight: float) -> RegularizerGradient:
    """Of gravity (the paper's [16]), ``weight`` times the mean of (phi V')^2: documents and labels repel each other."""
    products: Floats = phi @ V.T
    products *= np.float32(2 * weight / (len(phi) * len(labels)))
    return RegularizerGradient(labels, products.T @ phi, products @ V)


def _product_gradient(labels: Ints, V: Floats, residual: Floats, weight: float) -> RegularizerGradient:
    residual *= np.float32(4 * weight / len(labels) ** 2)
    return RegularizerGradient(labels, residual @ V)
