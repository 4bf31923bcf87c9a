"""Steps 2 to 4: embeddings Z of documents by their labels, and regressors from features to the embeddings.

The inner products of Z equal the products of label vectors for documents with near labels. Regressors are found by
ridge regression, and by ADMM if they are to be sparse. The ridge problem min_W |W|^2 / 2 + C |Z - X W|^2 has the
solution W = X'A with (X X' + I / 2C) A = Z. Conjugate gradients solve it for all columns of Z at once, with only
sparse products.
"""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from labelspace.labels.document_neighbors import nearest_by_labels
from labelspace.training.sparse_layers import product, products_at
from labelspace.types import Csr, Doubles, Floats, Longs

OVERSAMPLING = 10  # more dimensions of the subspace iteration than requested: with fewer, the last ones are less exact
POWER_ITERATIONS = 3  # of the subspace: more separate the largest singular values better
MAX_ITERATIONS = 200  # of conjugate gradients
TOLERANCE = 1e-2  # of the residual, relative to the right side: a smaller one gains nothing


class ObservedProducts:
    """The set Omega: for each document the nearest by labels, with the products G of their unit label vectors."""

    def __init__(self, Y: Csr, n_neighbors: int) -> None:
        n = Y.shape[0]
        nearest = nearest_by_labels(Y, min(n_neighbors, n))
        known = nearest.labels >= 0
        indptr = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
        self.G: Csr = sp.csr_matrix((nearest.scores[known], nearest.labels[known], indptr), shape=(n, n))
        numbers = np.arange(self.G.nnz)
        by_column = sp.csr_matrix((numbers, self.G.indices, self.G.indptr), shape=(n, n)).T.tocsr()
        self.columns, self.column_ptr = by_column.indices, by_column.indptr
        self.order: Longs = by_column.data  # of the transposed entries

    def with_values(self, values: Floats) -> Csr:
        """Return the matrix with these values at Omega."""
        return sp.csr_matrix((values, self.G.indices, self.G.indptr), shape=self.G.shape)

    def transposed(self, values: Floats) -> Csr:
        """Return the transpose of ``with_values``."""
        return sp.csr_matrix((values[self.order], self.columns, self.column_ptr), shape=self.G.shape)


def truncated_svd(observed: ObservedProducts, dim: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return U and V (n, dim) with U V' the best approximation of G, zero outside of Omega, by subspace iteration."""
    G, transposed = observed.G, observed.transposed(observed.G.data)
    n = G.shape[0]
    basis = rng.standard_normal((n, min(dim + OVERSAMPLING, n)), np.float32)
    for _ in range(POWER_ITERATIONS):
        basis = np.linalg.qr(product(G, basis))[0]
        basis = np.linalg.qr(product(transposed, basis))[0]
    left = np.linalg.qr(product(G, basis))[0]
    right, triangle = np.linalg.qr(product(transposed, left))  # G ~ left triangle' right'
    inner, singular, outer = np.linalg.svd(triangle.T)
    dim = min(dim, n)
    roots = np.sqrt(singular[:dim])
    return (left @ inner[:, :dim]) * roots, (right @ outer[:dim].T) * roots


def label_embeddings(
    Y: Csr,
    dim: int,
    n_neighbors: int,
    max_iter: int,
    tol: float,
    rng: np.random.Generator,
    tick: Callable[[int], None] = lambda steps: None,
) -> Floats:
    """Return Z (n, dim), which minimizes |G - Z V'|^2 over Omega by alternating gradient steps on Z and V.

    Each step has the best length. The steps stop when a pass lowers the error by less than the share ``tol``.
    """
    observed = ObservedProducts(Y, n_neighbors)
    U, V = truncated_svd(observed, dim, rng)
    error = observed.G.data - products_at(observed.G, U, V)
    squared = float(error @ error)
    for done in range(1, max_iter + 1):
        tick(1)
        direction = product(observed.with_values(error), V)
        error = _step(U, direction, error, products_at(observed.G, direction, V))
        direction = product(observed.transposed(error), U)
        error = _step(V, direction, error, products_at(observed.G, U, direction))
        previous, squared = squared, float(error @ error)
        if previous - squared <= tol * previous:
            tick(max_iter - done)
            break
    return U


def _step(factor: Floats, direction: Floats, error: Floats, change: Floats) -> Floats:
    """Move a factor along a direction that changes the products by ``change``; return the error that remains."""
    length = np.float32(float(error @ change) / max(float(change @ change), 1e-30))
    factor += length * direction
    remaining: Floats = error - length * change
    return remaining


class Ridge:
    """Ridge regression on the documents X (n, n_features), for any targets."""

    def __init__(self, X: Csr, C: float) -> None:
        self.X = X
        self.X_transposed = X.T.tocsr()
        self.ridge = np.float32(0.5 / C)

    def dual(self, Z: Floats, start: Floats | None = None) -> Floats:
        """Return A (n, dim) with (X X' + I / 2C) A = Z."""
        A = np.zeros_like(Z) if start is None else start.copy()
        residual = Z - self._apply(A)
        direction = residual.copy()
        squared = _column_products(residual, residual)
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
        """Return W = X'A (n_features, dim)."""
        return product(self.X_transposed, A)

    def _apply(self, A: Floats) -> Floats:
        out = product(self.X, self.weights(A))
        out += self.ridge * A
        return out


def _column_products(A: Floats, B: Floats) -> Doubles:
    products: Doubles = np.einsum("ij,ij->j", A, B, dtype=np.float64)
    return products


def fit_regressors(X: Csr, Z: Floats, C: float, l1: float, rho: float, admm_iter: int) -> Floats:
    """Return W (n_features, dim), which minimizes |W|^2 / 2 + C |Z - X W|^2 + C l1 |X W|_1, the last term by ADMM.

    ADMM splits off B = X W, with the scaled multipliers M: W by ridge regression on both targets, Z and B - M; then B
    by soft thresholding of X W + M at l1 / 2 rho; then M by the difference of B and X W.
    """
    if l1 == 0:
        ridge = Ridge(X, C)
        return ridge.weights(ridge.dual(Z))
    ridge = Ridge(X, C * (1 + rho))
    A = None
    B, M = np.zeros_like(Z), np.zeros_like(Z)
    for _ in range(admm_iter):
        target: Floats = ((Z + rho * (B - M)) / (1 + rho)).astype(np.float32)
        A = ridge.dual(target, A)
        W = ridge.weights(A)
        M += product(X, W)
        B = np.sign(M) * np.maximum(np.abs(M) - np.float32(0.5 * l1 / rho), 0)
        M -= B
    return W
