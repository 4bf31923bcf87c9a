"""Step 4: linear maps from features to the embeddings, by ridge regression, and by ADMM where they are to be sparse.

The ridge problem min_W |W|^2 / 2 + C |Z - X W|^2 has the solution W = X'A with (X X' + I / 2C) A = Z. Conjugate
gradients solve it for all columns of Z at once, with sparse products only.
"""

import numpy as np

from labelspace.training.sparse_layers import product
from labelspace.types import Csr, Doubles, Floats

MAX_ITERATIONS = 200  # of conjugate gradients
TOLERANCE = 1e-2  # of the residual, relative to the right side: a smaller one gains nothing


class Ridge:
    """Ridge regression on the documents X (n, n_features), for any targets."""

    def __init__(self, X: Csr, C: float) -> None:
        self.X, self.X_transposed, self.ridge = X, X.T.tocsr(), np.float32(0.5 / C)

    def dual(self, Z: Floats, start: Floats | None = None) -> Floats:
        """A (n, dim) with (X X' + I / 2C) A = Z."""
        A = np.zeros_like(Z) if start is None else start.copy()
        residual = Z - self._apply(A)
        direction, squared = residual.copy(), _column_products(residual, residual)
        wanted = TOLERANCE**2 * np.maximum(_column_products(Z, Z), 1e-30)
        for _ in range(MAX_ITERATIONS):
            if (squared <= wanted).all():
                break
            image = self._apply(direction)
            steps = (squared / np.maximum(_column_products(direction, image), 1e-30)).astype(np.float32)
            A += steps * direction
            residual -= steps * image
            previous, squared = squared, _column_products(residual, residual)
            direction *= (squared / np.maximum(previous, 1e-30)).astype(np.float32)
            direction += residual
        return A

    def weights(self, A: Floats) -> Floats:
        """W = X'A (n_features, dim)."""
        return product(self.X_transposed, A)

    def _apply(self, A: Floats) -> Floats:
        out = product(self.X, self.weights(A))
        out += self.ridge * A
        return out


def _column_products(A: Floats, B: Floats) -> Doubles:
    products: Doubles = np.einsum("ij,ij->j", A, B, dtype=np.float64)
    return products


def fit_regressors(X: Csr, Z: Floats, C: float, l1: float, rho: float, admm_iter: int) -> Floats:
    """W (n_features, dim): minimizes |W|^2 / 2 + C |Z - X W|^2 + C l1 |X W|_1, the last term by ADMM.

    ADMM splits off B = X W, with the scaled multipliers M: W by ridge regression on both targets, Z and B - M; then B
    by soft thresholding of X W + M at l1 / 2 rho; then M by what B differs from X W.
    """
    if l1 == 0:
        ridge = Ridge(X, C)
        return ridge.weights(ridge.dual(Z))
    ridge, A = Ridge(X, C * (1 + rho)), None
    B, M = np.zeros_like(Z), np.zeros_like(Z)
    for _ in range(admm_iter):
        target: Floats = ((Z + rho * (B - M)) / (1 + rho)).astype(np.float32)
        A = ridge.dual(target, A)
        W = ridge.weights(A)
        M += product(X, W)
        B = np.sign(M) * np.maximum(np.abs(M) - np.float32(0.5 * l1 / rho), 0)
        M -= B
    return W
