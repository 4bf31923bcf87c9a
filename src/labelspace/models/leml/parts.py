"""The two parts of the model: X W H' of low rank, by ridge regression and conjugate gradients, and X S, by lasso.

X W H' is never formed.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.dual_cd import squared_norms
from labelspace.kernels.threads import run_blocks
from labelspace.models.leml.kernels import descend_lasso
from labelspace.training.linear_weights import NO_WEIGHTS, feature_major_weights
from labelspace.training.sparse_layers import product
from labelspace.types import Csr, Doubles, Floats, Ints

INIT_STD = 0.1  # of W
CG_STEPS = 10  # most conjugate gradient steps for W; the next iteration goes on from there
CG_TOL = 0.1  # the steps end when the gradient has fallen to this share
LABEL_BLOCK = 32  # labels per task, which share a read of X W
LASSO_PASSES = 20  # most passes per label; the next iteration goes on from there
LASSO_TOL = 0.01  # of the score of a document


class Targets:
    """The targets of X W H': Y - X S, where X S is what the sparse part already explains."""

    def __init__(self, X: Csr, Y: Csr) -> None:
        self.X, self.Y = X, Y
        self.X_by_feature, self.Y_by_label = X.T.tocsr(), Y.T.tocsr()
        self.S: Csr | None = None  # (n_features, n_labels)

    def times(self, H: Floats) -> Floats:
        """Return (Y - X S) H."""
        out = product(self.Y, H)
        return out if self.S is None else out - product(self.X, product(self.S, H))

    def transposed_times(self, A: Floats) -> Floats:
        """Return (Y - X S)' A."""
        out = product(self.Y_by_label, A)
        return out if self.S is None else out - product(self.S.T.tocsr(), product(self.X_by_feature, A))


@dataclass
class LowRank:
    """W (n_features, dim), H (n_labels, dim), and A = X W."""

    W: Floats
    H: Floats
    A: Floats

    @classmethod
    def random(cls, X: Csr, n_labels: int, dim: int, rng: np.random.Generator) -> Self:
        """Draw W at random, 0 for features without documents; H is 0."""
        W = rng.standard_normal((X.shape[1], dim), np.float32) * np.float32(INIT_STD)
        W[np.bincount(X.indices, minlength=X.shape[1]) == 0] = 0.0
        return cls(W, np.zeros((n_labels, dim), np.float32), product(X, W))

    def update_labels(self, targets: Targets, reg_weight: float) -> None:
        """Set H = (Y - X S)' A (A'A + lambda I)^-1."""
        gram = (self.A.T @ self.A).astype(np.float64) + reg_weight * np.eye(self.A.shape[1])
        right = targets.transposed_times(self.A)
        self.H = np.ascontiguousarray(np.linalg.solve(gram, right.T).T, np.float32)

    def rotate(self) -> Floats:
        """Rotate W and H so that H'H is diagonal, and return the diagonal; neither W H' nor the objective changes."""
        values, Q = np.linalg.eigh((self.H.T @ self.H).astype(np.float64))
        turn = Q.astype(np.float32)
        self.W, self.H, self.A = self.W @ turn, self.H @ turn, self.A @ turn
        diagonal: Floats = np.maximum(values, 0.0).astype(np.float32)
        return diagonal

    def update_features(self, targets: Targets, reg_weight: float) -> None:
        """Make conjugate gradient steps on X'X W H'H + lambda W = X'(Y - X S) H, for each column of W by itself."""
        diagonal, weight = self.rotate(), np.float32(reg_weight)
        X, X_by_feature = targets.X, targets.X_by_feature
        residual = product(X_by_feature, targets.times(self.H) - self.A * diagonal) - weight * self.W
        direction, squares = residual.copy(), _column_products(residual, residual)
        goal = CG_TOL**2 * squares.sum()
        for _ in range(CG_STEPS):
            XP = product(X, direction)
            curved = product(X_by_feature, XP * diagonal)
            curved += weight * direction
            step = _ratio(squares, _column_products(direction, curved))
            self.W += step * direction
            self.A += step * XP
            residual -= step * curved
            before, squares = squares, _column_products(residual, residual)
            if squares.sum() <= goal:
                break
            direction = residual + _ratio(squares, before) * direction

    def squared_error(self, targets: Targets) -> float:
        """Return |Y - A H'|^2, the error without a sparse part."""
        cross = float(np.vdot(targets.transposed_times(self.A), self.H))
        square = float(np.vdot(self.A.T @ self.A, self.H.T @ self.H))
        return float(targets.Y.nnz) - 2 * cross + square

    def penalty(self) -> float:
        """Return (|W|^2 + |H|^2) / 2."""
        return (float(np.vdot(self.W, self.W)) + float(np.vdot(self.H, self.H))) / 2


class SparsePart:
    """S (n_features, n_labels): for each label the weights of a few features, by lasso on what the low rank leaves.

    Its penalty is sum_jl l1_j |S_jl| + l2 |S|^2 / 2, where l1_j = l1_weight sum_i |X_ij|. The first term is at
    least l1_weight |X S|_1, the sum of what S adds to all scores.
    """

    def __init__(self, targets: Targets, n_features: int, l1_weight: float, l2: float) -> None:
        """Start with S = 0, which has no weights of the features from ``n_features`` on (the bias)."""
        by_feature = targets.X_by_feature
        self.squares = squared_norms(by_feature.data, by_feature.indptr, 0.0)
        self.squares[n_features:] = 0.0
        self.l1 = np.asarray(abs(by_feature).sum(axis=1), np.float32).ravel() * np.float32(l1_weight)
        self.l2 = l2
        self.weights: list[tuple[Ints, Floats]] = [NO_WEIGHTS] * targets.Y.shape[1]  # features and weights by label

    def update(self, targets: Targets, low_rank: LowRank) -> float:
        """Descend for each label on Y - X W H' from its present weights, and return |Y - X W H' - X S|^2."""
        by_feature, Y = targets.X_by_feature, targets.Y_by_label
        columns = csr_arrays(by_feature)
        errors = np.zeros(len(self.weights))

        def descend(start: int, stop: int) -> None:
            residuals = -(low_rank.H[start:stop] @ low_rank.A.T)
            weights = np.zeros(by_feature.shape[0], np.float32)
            for label, residual in enumerate(residuals, start):
                residual[Y.indices[Y.indptr[label] : Y.indptr[label + 1]]] += 1
                features, values = self.weights[label]
                weights[:] = 0.0
                weights[features] = values
                descend_lasso(columns, self.squares, self.l1, self.l2, LASSO_PASSES, LASSO_TOL, weights, residual)
                kept = np.flatnonzero(weights).astype(np.int32)
                self.weights[label] = (kept, weights[kept])
                errors[label] = np.vdot(residual, residual)

        run_blocks(descend, len(errors), LABEL_BLOCK)
        targets.S = self.matrix()
        return float(errors.sum())

    def matrix(self) -> Csr:
        """Return S by features."""
        return feature_major_weights(self.weights, len(self.l1))

    def penalty(self) -> float:
        """Return the penalty of S."""
        return float(sum(self.l1[features] @ np.abs(w) + self.l2 * np.vdot(w, w) / 2 for features, w in self.weights))


def _column_products(a: Floats, b: Floats) -> Doubles:
    products: Doubles = np.einsum("ij,ij->j", a, b).astype(np.float64)
    return products


def _ratio(a: Doubles, b: Doubles) -> Floats:
    """Return a / b, and 0 where b is 0: that column is solved."""
    quotient: Floats = np.divide(a, b, out=np.zeros_like(a), where=b > 0).astype(np.float32)
    return quotient
