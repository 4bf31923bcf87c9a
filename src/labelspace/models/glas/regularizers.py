"""Regularizers of the label embeddings: the gradients of eq. 3 (GLaS), 2 (spread-out), 4 (Laplacian) and gravity.

Each is computed on the labels drawn for a batch: m of them, each once, or counted as often as it was drawn. The m
embeddings are the rows of V (m, dim).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from labelspace.types import Floats, Ints, Longs

USE_SIMILARITIES = ("glas", "laplacian")


class RegularizerGradient(NamedTuple):
    """What a regularizer adds to the gradients of a batch."""

    labels: Ints  # (m,) ascending
    of_labels: Floats  # (m, dim)
    of_documents: Floats | None = None  # (batch, dim)


def regularizer_gradient(
    name: str, weight: float, labels: Ints, V: Floats, phi: Floats, similarities: Callable[[Ints], Floats],
    counts: Longs | None = None,
) -> RegularizerGradient:  # fmt: skip
    """The gradient of the regularizer of this name; ``similarities(labels)`` is U.

    ``counts`` (m,) says how often each label was drawn; None counts each once.
    """
    if name == "none" or weight == 0 or not len(labels):
        return RegularizerGradient(labels[:0], V[:0])
    if name == "glas":
        return glas_gradient(labels, V, similarities(labels), weight, counts)
    if name == "spread_out":
        return spread_out_gradient(labels, V, weight, counts)
    if name == "laplacian":
        return laplacian_gradient(labels, V, similarities(labels), weight, counts)
    return gravity_gradient(labels, V, phi, weight, counts)


def glas_gradient(
    labels: Ints, V: Floats, U: Floats, weight: float, counts: Longs | None = None
) -> RegularizerGradient:
    """Of eq. 3, ``weight`` / m^2 ||V V' - U||^2; U (m, m) is the labels' co-occurrence similarity."""
    return _product_gradient(labels, V, V @ V.T - U, weight, counts)


def spread_out_gradient(labels: Ints, V: Floats, weight: float, counts: Longs | None = None) -> RegularizerGradient:
    """Of eq. 2, ``weight`` / m^2 ||V V'||^2 without its diagonal, which is constant on the sphere."""
    products: Floats = V @ V.T
    products[np.diag_indices(len(labels))] = 0.0
    return _product_gradient(labels, V, products, weight, counts)


def laplacian_gradient(
    labels: Ints, V: Floats, U: Floats, weight: float, counts: Longs | None = None
) -> RegularizerGradient:
    """Of eq. 4, ``weight`` / m^2 times the sum over pairs of ||v - v'||^2 u: similar labels attract each other."""
    degrees = U.sum(axis=1) if counts is None else U @ counts.astype(np.float32) / counts
    residual = -U
    residual[np.diag_indices(len(labels))] += degrees
    return _product_gradient(labels, V, residual, weight, counts)


def gravity_gradient(
    labels: Ints, V: Floats, phi: Floats, weight: float, counts: Longs | None = None
) -> RegularizerGradient:
    """Of gravity (the paper's [16]), ``weight`` times the mean of (phi V')^2: documents and labels repel each other."""
    products: Floats = phi @ V.T
    if counts is not None:
        products *= counts.astype(np.float32)
    n_labels = len(labels) if counts is None else int(counts.sum())
    products *= np.float32(2 * weight / (len(phi) * n_labels))
    return RegularizerGradient(labels, products.T @ phi, products @ V)


def _product_gradient(
    labels: Ints, V: Floats, residual: Floats, weight: float, counts: Longs | None
) -> RegularizerGradient:
    if counts is not None:
        residual *= np.outer(counts, counts).astype(np.float32)
    residual *= np.float32(4 * weight / (len(labels) if counts is None else int(counts.sum())) ** 2)
    return RegularizerGradient(labels, residual @ V)
