"""Vectors of labels, from what is known of them: their documents, the labels beside them, their names."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from labelspace.errors import ParameterError
from labelspace.labels.clustering import instance_features
from labelspace.types import Bools, Csr, Floats, LabelSpace

KINDS = ("documents", "walks", "text", "sentences")
MORE = 10  # directions beyond those asked for: the last ones found are the least exact
POWERS = 2  # times that a table is multiplied with itself, which leaves its small directions behind


def label_vectors(kind: str, X: Csr, Y: Csr, labels: LabelSpace | None, dimension: int = 64, seed: int = 0) -> Floats:
    """A vector a label, of length one: (n_labels, dimension). The mean of the labels with a document is taken off.

    ``documents`` makes a label of the features of its documents. Labels of which nothing is known are zeros.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=200, d=100, l=20)
    >>> label_vectors("documents", data.X, data.Y, None, dimension=8).shape
    (20, 8)
    """
    if kind not in KINDS:
        raise ParameterError(f"vectors of labels must be one of {', '.join(KINDS)}, but are {kind!r}; set them so")
    if dimension < 1:
        raise ParameterError(f"dimension must be at least 1, but is {dimension}; ask for 1 or more")
    with threadpool_limits(1, user_api="blas"):  # sums in another order would be other vectors
        found = reduced(instance_features(X, Y), dimension, seed)
        return _centred(found, np.bincount(Y.indices, minlength=Y.shape[1]) > 0)


def reduced(table: Csr, dimension: int, seed: int, power: float = 1.0) -> Floats:
    """The rows of a table in its main directions, by a randomised singular value decomposition: (n, dimension).

    Each direction is scaled by its singular value, raised to ``power``. Directions that the table does not have are 0.

    >>> table = sp.csr_matrix(np.array([[3, 0, 0], [0, 2, 0], [0, 0, 1]], np.float32))
    >>> abs(reduced(table, dimension=2, seed=0)).round(3).tolist()
    [[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]]
    """
    rank = min(dimension + MORE, *table.shape)
    across = table.T
    basis: Floats = np.random.default_rng(seed).standard_normal((table.shape[1], rank), np.float32)
    for _ in range(POWERS):
        basis = across @ np.linalg.qr(table @ basis)[0]
    left = np.linalg.qr(table @ np.linalg.qr(basis)[0])[0]  # (n, rank)
    right: Floats = across @ left  # (n_features, rank)
    squares, turn = np.linalg.eigh((right.T @ right).astype(np.float64))
    kept = np.argsort(-squares, kind="stable")[:dimension]
    values = np.sqrt(np.maximum(squares[kept], 0.0))
    scale = np.where(values > 1e-5 * values.max(initial=0.0), values, 0.0) ** power
    found = np.zeros((table.shape[0], dimension), np.float32)
    found[:, : len(kept)] = left @ (turn[:, kept] * scale).astype(np.float32)
    return found


def _centred(vectors: Floats, seen: Bools) -> Floats:
    """The vectors without the mean of those ``seen``, at length one; what is zero stays so."""
    known = vectors.any(axis=1)
    if (known & seen).any():
        vectors = np.where(known[:, None], vectors - vectors[known & seen].mean(axis=0), 0.0).astype(np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 1e-6, lengths, np.inf)).astype(np.float32)
