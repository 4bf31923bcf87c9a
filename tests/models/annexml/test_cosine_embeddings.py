import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.random_numbers import initial_state
from labelspace.models.annexml.kernels import (
    CosineLoss,
    adagrad_row,
    cosine_loss_gradient,
    document_gradients,
    draw_documents,
    train_cosine_embeddings,
)

GAMMA = 3.0


def loss_of(vectors, n_near):
    """The loss of row 0 with its neighbors, the next rows, and others."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit[1:] @ unit[0]
    gaps = cosines[None, n_near:] - cosines[:n_near, None]
    return np.log1p(np.exp(GAMMA * gaps).sum(axis=1)).mean()


@pytest.mark.parametrize(("n_near", "n_others"), [(1, 1), (3, 2), (2, 5)])
def test_gradients_are_those_of_finite_differences(n_near, n_others):
    vectors = np.random.default_rng(n_near).standard_normal((1 + n_near + n_others, 4))
    norms = np.linalg.norm(vectors, axis=1)
    units, out = (vectors / norms[:, None]).astype(np.float32), np.empty(vectors.shape, np.float32)
    loss = document_gradients(units, (1 / norms).astype(np.float32), n_near, GAMMA, len(vectors), out)
    assert loss == pytest.approx(loss_of(vectors, n_near), abs=1e-4)
    for at in np.ndindex(vectors.shape):
        step = np.zeros(vectors.shape)
        step[at] = 1e-5
        slope = (loss_of(vectors + step, n_near) - loss_of(vectors - step, n_near)) / 2e-5
        assert out[at] == pytest.approx(slope, abs=1e-4)


def test_the_loss_of_equal_cosines_is_the_log_of_their_number():
    out = np.empty(4, np.float32)
    assert cosine_loss_gradient(np.full(4, 0.3, np.float32), 1, 10.0, out) == pytest.approx(np.log(4))
    assert np.allclose(out, [-7.5, 2.5, 2.5, 2.5])


def test_a_step_is_row_wise_adagrad():
    rng = np.random.default_rng(0)
    vectors, squares = rng.standard_normal((5, 3)).astype(np.float32), rng.random(5).astype(np.float32)
    x, gradient = np.array([2.0, 0, 0.5, 0, 0], np.float32), np.array([1.0, -2.0, 0.5], np.float32)
    by_vector = np.outer(x, gradient)
    total = squares + (by_vector**2).mean(axis=1)
    expected = vectors - 0.1 * by_vector / np.sqrt(total)[:, None]
    adagrad_row(x[[0, 2]], np.array([0, 2], np.int32), gradient, 0.1, vectors, squares)
    assert np.allclose(vectors, expected, atol=1e-6)
    assert np.allclose(squares, total)


def test_others_are_drawn_without_the_document_and_its_neighbors():
    near, out, seen = np.array([1, 3], np.int32), np.empty(13, np.int32), set()
    state = initial_state(0)
    for _ in range(50):
        size, state = draw_documents(np.int32(2), near, 6, 10, np.uint64(state), out)
        assert out[:3].tolist() == [2, 1, 3]
        seen |= set(out[3:size].tolist())
    assert seen == {0, 4, 5}


def test_training_brings_neighbors_near():
    rng = np.random.default_rng(0)
    group = np.arange(40) % 2
    dense = (np.arange(20) % 2 == group[:, None]) & (rng.random((40, 20)) < 0.3)
    dense[:, 0] = True
    X = sp.csr_matrix(dense, dtype=np.float32)
    near = (group[:, None] == group) & ~np.eye(40, dtype=bool)
    graph = sp.csr_matrix(near, dtype=np.float32)
    vectors, squares = rng.standard_normal((20, 4)).astype(np.float32), np.zeros(20, np.float32)
    state, losses = initial_state(1), []
    for _ in range(5):
        order = rng.permutation(40).astype(np.int32)
        loss, state = train_cosine_embeddings(
            csr_arrays(X), csr_arrays(graph), order, CosineLoss(5, 10.0, 0.1), np.uint64(state), vectors, squares
        )
        losses.append(loss)
    assert losses[-1] < losses[0] / 4
    embedded = X @ vectors
    cosines = embedded @ embedded.T / np.outer(*[np.linalg.norm(embedded, axis=1)] * 2)
    same = group[:, None] == group
    assert cosines[same].mean() > cosines[~same].mean() + 0.5


def test_documents_without_neighbors_change_nothing():
    X, none = sp.csr_matrix(np.eye(3, dtype=np.float32)), sp.csr_matrix((3, 3), dtype=np.float32)
    vectors = np.ones((3, 2), np.float32)
    loss, _ = train_cosine_embeddings(
        csr_arrays(X),
        csr_arrays(none),
        np.arange(3, dtype=np.int32),
        CosineLoss(2, 10.0, 0.1),
        initial_state(0),
        vectors,
        np.zeros(3, np.float32),
    )
    assert loss == 0
    assert (vectors == 1).all()
