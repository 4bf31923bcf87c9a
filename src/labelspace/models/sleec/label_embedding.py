"""Steps 2 and 3: embeddings Z of documents whose inner products are those of their labels, where these are near."""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from labelspace.labels.document_neighbors import nearest_by_labels
from labelspace.training.sparse_layers import product, products_at
from labelspace.types import Csr, Floats, Longs

OVERSAMPLING = 10  # dimensions of the subspace iteration beyond those asked for
POWER_ITERATIONS = 3


class ObservedProducts:
    """The set Omega: for each document its nearest ones by labels, with the products G of their unit label vectors."""

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
        """The matrix of these values at Omega."""
        return sp.csr_matrix((values, self.G.indices, self.G.indptr), shape=self.G.shape)

    def transposed(self, values: Floats) -> Csr:
        """The transpose of ``with_values``."""
        return sp.csr_matrix((values[self.order], self.columns, self.column_ptr), shape=self.G.shape)


def truncated_svd(observed: ObservedProducts, dim: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """U and V (n, dim) with U V' the best approximation of G, zero outside of Omega, by subspace iteration."""
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
    Y: Csr, dim: int, n_neighbors: int, max_iter: int, tol: float, rng: np.random.Generator,
    tick: Callable[[int], None] = lambda steps: None,
) -> Floats:  # fmt: skip
    """Z (n, dim): minimizes |G - Z V'|^2 over Omega by alternating gradient steps on Z and V, of the best length each.

    It stops when a pass lowers the error by less than ``tol`` of itself.
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
    """Move a factor along a direction that changes the products by ``change``; returns the error that remains."""
    length = np.float32(float(error @ change) / max(float(change @ change), 1e-30))
    factor += length * direction
    remaining: Floats = error - length * change
    return remaining
