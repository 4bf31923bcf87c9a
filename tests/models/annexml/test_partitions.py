import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.random_numbers import initial_state, next_state
from labelspace.models.annexml.kernels import FTRL_BETA, Ftrl, assign_partitions, ftrl_step, train_partitions


@pytest.fixture(name="X")
def documents():
    rng = np.random.default_rng(0)
    return sp.csr_matrix(np.where(rng.random((12, 9)) < 0.5, rng.random((12, 9)), 0), dtype=np.float32)


class Twin:
    """FTRL-Proximal on dense arrays (McMahan et al., 2013, algorithm 1)."""

    def __init__(self, weights, rate, l1):
        self.z = -weights * FTRL_BETA / rate - np.sign(weights) * l1
        self.n, self.rate, self.l1 = np.zeros(weights.shape), rate, l1

    @property
    def weights(self):
        shrunk = self.z - np.sign(self.z) * self.l1
        return np.where(np.abs(self.z) <= self.l1, 0, -shrunk * self.rate / (FTRL_BETA + np.sqrt(self.n)))

    def step(self, x, target, c):
        w = self.weights[:, c]
        g = (1 / (1 + np.exp(-x @ w)) - target) * x
        sigma = (np.sqrt(self.n[:, c] + g**2) - np.sqrt(self.n[:, c])) / self.rate
        self.z[:, c] += g - sigma * w
        self.n[:, c] += g**2


def arrays(weights, rate, l1):
    sums = (-weights / rate - np.sign(weights) * l1).astype(np.float32)
    return weights.copy(), sums, np.zeros_like(weights)


@pytest.mark.parametrize("l1", [0.0, 0.4])
def test_steps_are_those_of_ftrl(X, l1):
    start = np.ascontiguousarray(X[:3].toarray().T)
    twin, (weights, sums, roots) = Twin(start.astype(float), 0.1, l1), arrays(start, 0.1, l1)
    assert np.allclose(twin.weights, weights, atol=1e-6)
    for step in range(60):
        row = X[step % 12]
        ftrl_step(row.data, row.indices, float(step % 2), step % 3, Ftrl(weights, sums, roots, 0.1, l1))
        twin.step(row.toarray()[0], step % 2, step % 3)
    assert np.allclose(weights, twin.weights, atol=1e-4)
    assert (weights == 0).any() == bool(l1 or (start == 0).any())


def test_neighbors_are_drawn_to_the_partition_of_a_document_and_others_away(X):
    graph = sp.csr_matrix(
        (np.ones(24, np.float32), np.array([(i + 1) % 12 for i in range(12) for _ in range(2)]), np.arange(0, 25, 2))
    )
    start, order = np.ascontiguousarray(X[:3].toarray().T), np.random.default_rng(1).permutation(12).astype(np.int32)
    twin, (weights, sums, roots) = Twin(start.astype(float), 0.1, 0.2), arrays(start, 0.1, 0.2)
    state = initial_state(5)
    train_partitions(csr_arrays(X), csr_arrays(graph), order, state, Ftrl(weights, sums, roots, 0.1, 0.2))
    dense, state = X.toarray().astype(float), np.uint64(state)
    for row in order:
        c = int(np.argmax(dense[row] @ twin.weights))
        for near in graph[row].indices:
            twin.step(dense[near], 1, c)
            state = np.uint64(next_state(state))
            twin.step(dense[int(state % np.uint64(12))], 0, c)
    assert np.allclose(weights, twin.weights, atol=1e-4)


def test_a_document_is_in_the_partition_of_the_largest_product(X):
    weights, out = np.random.default_rng(2).standard_normal((9, 4)).astype(np.float32), np.empty(12, np.int32)
    assign_partitions(csr_arrays(X), weights, out)
    assert out.tolist() == np.argmax(X.toarray() @ weights, axis=1).tolist()
