"""The part of low rank, X W H': ridge regression for H, conjugate gradients for W. X W H' is never formed."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from labelspace.training.sparse_layers import product
from labelspace.types import Csr, Doubles, Floats

INIT_STD = 0.1  # of W
CG_STEPS = 10  # at most so many conjugate gradient steps for W
CG_TOL = 0.1  # or until the gradient is down to this share


class Targets:
    """What X W H' is to be: Y - X S, where S is what the sparse part explains already."""

    def __init__(self, X: Csr, Y: Csr) -> None:
        self.X, self.Y = X, Y
        self.X_by_feature, self.Y_by_label = X.T.tocsr(), Y.T.tocsr()
        self.S: Csr | None = None  # (n_features, n_labels)

    def times(self, H: Floats) -> Floats:
        """(Y - X S) H."""
        out = product(self.Y, H)
        return out if self.S is None else out - product(self.X, product(self.S, H))

    def transposed_times(self, A: Floats) -> Floats:
        """(Y - X S)' A."""
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
        """W at random, 0 for features without documents; H = 0."""
        W = rng.standard_normal((X.shape[1], dim), np.float32) * np.float32(INIT_STD)
        W[np.bincount(X.indices, minlength=X.shape[1]) == 0] = 0.0
        return cls(W, np.zeros((n_labels, dim), np.float32), product(X, W))

    def update_labels(self, targets: Targets, reg_weight: float) -> None:
        """H = (Y - X S)' A (A'A + lambda I)^-1."""
        gram = (self.A.T @ self.A).astype(np.float64) + reg_weight * np.eye(self.A.shape[1])
        right = targets.transposed_times(self.A)
        self.H = np.ascontiguousarray(np.linalg.solve(gram, right.T).T, np.float32)

    def rotate(self) -> Floats:
        """Turn both so that H'H is diagonal, which changes neither W H' nor the objective; returns the diagonal."""
        values, Q = np.linalg.eigh((self.H.T @ self.H).astype(np.float64))
        turn = Q.astype(np.float32)
        self.W, self.H, self.A = self.W @ turn, self.H @ turn, self.A @ turn
        diagonal: Floats = np.maximum(values, 0.0).astype(np.float32)
        return diagonal

    def update_features(self, targets: Targets, reg_weight: float) -> None:
        """Conjugate gradient steps on X'X W H'H + lambda W = X'(Y - X S) H, for each column of W by itself."""
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
        """|Y - A H'|^2: without a sparse part."""
        cross = float(np.vdot(targets.transposed_times(self.A), self.H))
        square = float(np.vdot(self.A.T @ self.A, self.H.T @ self.H))
        return float(targets.Y.nnz) - 2 * cross + square

    def penalty(self) -> float:
        """(|W|^2 + |H|^2) / 2."""
        return (float(np.vdot(self.W, self.W)) + float(np.vdot(self.H, self.H))) / 2


def _column_products(a: Floats, b: Floats) -> Doubles:
    products: Doubles = np.einsum("ij,ij->j", a, b).astype(np.float64)
    return products


def _ratio(a: Doubles, b: Doubles) -> Floats:
    """A / b, and 0 where b is: that column is solved."""
    quotient: Floats = np.divide(a, b, out=np.zeros_like(a), where=b > 0).astype(np.float32)
    return quotient
