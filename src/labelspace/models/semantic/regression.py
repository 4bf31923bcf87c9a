"""Ridge regression of all labels on document vectors, towards the vectors of the labels' texts, in closed form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from labelspace.estimator.state_constraints import array
from labelspace.features.normalize import normalize_rows
from labelspace.kernels import large_arrays
from labelspace.kernels.normalize import normalized_values
from labelspace.types import Csr, Doubles, Floats, Longs

ROW_BLOCK = 4096  # rows that are dense in memory at a time
PRIOR_ROWS = 10.0  # documents that the mean of the labels' texts counts as in the mean of few documents


@dataclass(frozen=True)
class DocumentSums:
    """What the regression must know of documents Z (n, d) and their labels Y (n, L), whatever their number."""

    gram: Annotated[Doubles, array("float64", "n_features", "n_features")]  # Z'Z
    by_label: Annotated[Floats, array("float32", "n_labels", "n_features")]  # Y'Z
    counts: Annotated[Longs, array("int64", "n_labels", at_least=0)]  # documents of each label

    @staticmethod
    def nothing(n_labels: int, n_features: int) -> DocumentSums:
        """Return the sums of no documents."""
        gram, by_label = np.zeros((n_features, n_features)), np.zeros((n_labels, n_features), np.float32)
        return DocumentSums(gram, by_label, np.zeros(n_labels, np.int64))

    def plus(self, X: Csr, Y: Csr, center: Floats) -> DocumentSums:
        """Return these sums with those of further documents; Y may have further labels too."""
        gram, counts = self.gram.copy(), np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.int64)
        by_label = np.zeros((Y.shape[1], len(gram)), np.float32)
        n_known = len(self.counts)
        by_label[:n_known] = self.by_label
        counts[:n_known] += self.counts
        for rows in large_arrays.blocks(X.shape[0], ROW_BLOCK):
            Z = unit_vectors(X[rows], center)
            gram += Z.T.astype(np.float64) @ Z
            by_label += Y[rows].T @ Z
        return DocumentSums(gram, by_label, counts)

    def corrected(self, Z: Floats, known: Csr, right: Csr, targets: Floats, inverse: Doubles) -> DocumentSums:
        """Return these sums after documents of which only the ``known`` labels are known to be right or wrong.

        Each pair of document and label corrects the label's solution as one more document would: by what its score
        lacks to 1 or 0. ``targets`` is lambda T (L, d).
        """
        by_label = self.by_label.copy()
        along = Z @ inverse  # (n, d)
        leverage = np.einsum("ij,ij->i", along, Z)
        for row, label in zip(*known.nonzero(), strict=True):
            score = along[row] @ (by_label[label] + targets[label])
            by_label[label] += Z[row] * np.float32((right[row, label] - score) / (1 + leverage[row]))
        counts = self.counts + np.bincount(right.indices, minlength=len(self.counts))
        return replace(self, by_label=by_label, counts=counts)

    def inverse(self, reg_weight: float) -> Doubles:
        """Return (Z'Z + lambda I)^-1."""
        inverse = np.linalg.inv(self.gram + reg_weight * np.eye(len(self.gram)))
        return np.asarray((inverse + inverse.T) / 2, np.float64)

    def label_vectors(self, targets: Floats, inverse: Doubles) -> Floats:
        """Return the solution (L, d): (Y'Z + lambda T) (Z'Z + lambda I)^-1; ``targets`` is lambda T (L, d)."""
        out = np.empty_like(self.by_label)
        for rows in large_arrays.blocks(len(out), ROW_BLOCK):
            out[rows] = (self.by_label[rows] + targets[rows].astype(np.float64)) @ inverse
        return out


def leave_one_out(Z: Floats, Y: Csr, vectors: Floats, inverse: Doubles) -> Floats:
    """Return the scores of documents by vectors that were each fitted without the document. Shape (n, L).

    A document z has the leverage h = z' (Z'Z + lambda I)^-1 z. Without it, its score f becomes (f - h y) / (1 - h).
    """
    leverage = np.einsum("ij,ij->i", Z @ inverse, Z).astype(np.float32)[:, None]
    scores: Floats = Z @ vectors.T
    scores -= leverage * Y.toarray()
    scores /= 1 - leverage
    return scores


def unit_vectors(X: Csr, center: Floats) -> Floats:
    """Return rows of norm 1, moved by the center; a row without features, or at the center, is zero. Shape (n, d)."""
    dense = normalize_rows(X).toarray()
    dense -= np.where((np.diff(X.indptr) > 0)[:, None], center, np.float32(0))
    ends = np.arange(len(dense) + 1) * dense.shape[1]
    unit: Floats = normalized_values(dense.ravel(), ends).reshape(dense.shape)
    return unit


def center_of(X: Csr, prior: Floats) -> Floats:
    """Return the mean of rows of norm 1, and of ``PRIOR_ROWS`` times the ``prior``. Shape (d,)."""
    total = np.asarray(normalize_rows(X).sum(axis=0, dtype=np.float64)).ravel() + PRIOR_ROWS * prior
    center: Floats = (total / (np.count_nonzero(np.diff(X.indptr)) + PRIOR_ROWS)).astype(np.float32)
    return center
