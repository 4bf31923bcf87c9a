import numpy as np
import scipy.sparse as sp

from labelspace.models.sleec import Sleec
from labelspace.models.sleec.learner import label_embeddings, observed_products, truncated_svd


def label_sets(n: int = 60, n_labels: int = 9) -> sp.csr_matrix:
    Y = sp.random(n, n_labels, 0.3, "csr", np.float32, np.random.default_rng(0))
    Y.data[:] = 1
    return Y


def embed(Y, dim, n_neighbors, max_iter, tol, tick=lambda steps: None):
    params = Sleec(embedding_dim=dim, n_label_neighbors=n_neighbors, max_iter=max_iter, tol=tol)
    return label_embeddings(Y, params, np.random.default_rng(0), tick)


def unit_products(Y: sp.csr_matrix) -> np.ndarray:
    dense = Y.toarray().astype(np.float64)
    unit = dense / np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-12)
    return unit @ unit.T


def test_omega_has_the_largest_products_of_unit_label_vectors():
    Y = label_sets()
    G, products = observed_products(Y, 10).toarray(), unit_products(Y)
    for row, expected in zip(G, products, strict=True):
        assert np.allclose(np.sort(row)[-10:], np.sort(expected)[-10:], atol=1e-6)
        assert np.allclose(row[row > 0], expected[row > 0], atol=1e-6)
        assert (row > 0).sum() <= 10


def test_the_svd_is_the_best_of_its_rank():
    observed = observed_products(label_sets(), 60)  # all pairs that share a label: rank 9
    U, V = truncated_svd(observed, 5, np.random.default_rng(0))
    dense = observed.toarray()
    error, singular = np.linalg.norm(dense - U @ V.T), np.linalg.svd(dense)[1]
    assert np.isclose(error, np.linalg.norm(singular[5:]), rtol=1e-3)


def test_the_gradient_lowers_the_error_on_omega():
    Y, observed = label_sets(), observed_products(label_sets(), 15)
    rows, columns = observed.nonzero()

    def error(Z):  # with the V that is best for Z on Omega
        total = 0.0
        for column in range(60):
            at = rows[columns == column]
            target = observed[at, column].toarray().ravel()
            total += np.square(Z[at] @ np.linalg.lstsq(Z[at], target)[0] - target).sum()
        return total

    start, end = (embed(Y, 4, 15, n, 0.0) for n in (0, 100))
    assert error(end) < 0.7 * error(start)


def test_it_counts_all_passes_though_it_stops_early():
    ticks = []
    embed(label_sets(), 60, 60, 50, 0.5, ticks.append)
    assert sum(ticks) == 50 > len(ticks)
