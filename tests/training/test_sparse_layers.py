import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.training import sparse_layers as layers
from labelspace.training.sparse_layers import INIT_STD, SparseLayer, batch_rows, product, products_at


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.fixture(name="X")
def documents(rng):
    dense = np.where(rng.random((20, 30)) < 0.2, rng.standard_normal((20, 30)), 0)
    dense[4], dense[:, 7] = 0, 0  # an empty document, a feature without documents
    return sp.csr_matrix(dense, dtype=np.float32)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(layers, "ROW_BLOCK", 6)
    monkeypatch.setattr(layers, "FEATURE_BLOCK", 4)


def parts(X):
    return X.data, X.indices, X.indptr


def scales(layer):
    """The expected initial norm of each unit's vector over its norm."""
    return INIT_STD * np.sqrt(len(layer.vectors)) / np.linalg.norm(layer.vectors.astype(np.float64), axis=0)


def test_dropout_keeps_the_mean_of_rows(X):
    rows = np.array([3, 11, 4], np.int32)
    draws = [sp.csr_matrix(batch_rows(X, rows, 0.4, np.random.default_rng(i)), shape=(3, 30)) for i in range(600)]
    assert np.allclose(sum(draws).toarray() / 600, X[rows].toarray(), atol=0.25)
    full = sp.csr_matrix(batch_rows(X, rows, 0.0, np.random.default_rng(0)), shape=(3, 30))
    assert np.array_equal(full.toarray(), X[rows].toarray())


def test_embeddings_start_at_random_and_at_0_where_no_document_has_the_feature(X, rng):
    layer = SparseLayer.random(X, 400, rng)
    assert not layer.vectors[7].any()
    others = np.delete(layer.vectors, np.flatnonzero(np.diff(X.tocsc().indptr) == 0), axis=0)
    assert np.allclose(others.std(axis=1), INIT_STD, rtol=0.2)


@pytest.mark.parametrize("normalized", [False, True])
def test_embedding_is_a_product_plus_the_bias(X, rng, normalized):
    layer, bias = SparseLayer.random(X, 5, rng, normalized), rng.standard_normal(5).astype(np.float32)
    expected = X.toarray() @ layer.vectors * (scales(layer) if normalized else 1) + bias
    assert np.allclose(layer.embed(parts(X), bias), expected, atol=1e-5)


def test_a_normalized_unit_counts_only_by_its_direction(X, rng):
    vectors = SparseLayer.random(X, 5, rng).vectors
    bias, factors = np.ones(5, np.float32), np.array([1, 2, 0.1, 30, 5], np.float32)
    one, other = (SparseLayer(table, normalized=True).embed(parts(X), bias) for table in (vectors, vectors * factors))
    assert np.allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("normalized", [False, True])
def test_the_backward_pass_is_row_wise_adagrad_and_norms_stay_up_to_date(X, rng, normalized):
    layer = SparseLayer.random(X, 5, rng, normalized)
    vectors, squares = layer.vectors.astype(np.float64), np.zeros(30)
    for step in range(1, 9):
        batch = X[rng.permutation(20)[:7]]
        gradient = rng.standard_normal((7, 5)).astype(np.float32)
        gradients = batch.toarray().T @ gradient
        if normalized:
            gradients = gradients * INIT_STD * np.sqrt(30) / np.linalg.norm(vectors, axis=0)
        squares += np.square(gradients).mean(axis=1)
        vectors -= 0.3 / step * gradients / np.maximum(np.sqrt(squares), 1e-10)[:, None]
        layer.backward(parts(batch), gradient, 0.3 / step)
        assert np.allclose(layer.vectors, vectors, atol=1e-4)
        assert np.allclose(layer.squares, squares, rtol=1e-4)
        if normalized:
            assert np.allclose(layer.squared_norms, np.square(layer.vectors, dtype=float).sum(axis=0), rtol=1e-5)
            assert np.allclose(layer.unit_scales, scales(layer), rtol=1e-5)
        else:
            assert len(layer.squared_norms) == 0


def test_features_that_are_not_in_a_batch_keep_their_bytes(X, rng):
    layer = SparseLayer.random(X, 5, rng, normalized=True)
    before = layer.vectors.copy()
    batch = X[:2]
    layer.backward(parts(batch), np.ones((2, 5), np.float32), 0.5)
    others = np.setdiff1d(np.arange(30), batch.indices)
    assert np.array_equal(layer.vectors[others], before[others])
    assert (layer.vectors[batch.indices] != before[batch.indices]).all()


def test_a_layer_without_data_gives_no_warning():
    empty = sp.csr_matrix((2, 3), dtype=np.float32)
    layer = SparseLayer.random(empty, 4, np.random.default_rng(0), normalized=True)
    assert layer.embed(parts(empty), np.ones(4, np.float32)).tolist() == [[1.0] * 4] * 2
    layer.backward(parts(empty), np.ones((2, 4), np.float32), 0.5)
    assert not layer.vectors.any()


def test_gradients_are_those_of_a_dense_product(X, rng):
    layer = SparseLayer.random(X, 5, rng)
    for rows in (np.arange(20), np.array([4]), np.array([4, 0, 11])):
        batch = X[rows]
        gradient = rng.standard_normal((len(rows), 5)).astype(np.float32)
        features, by_features = layer.gradients(parts(batch), gradient)
        assert sorted(features) == sorted(set(batch.indices))
        full = np.zeros((30, 5))
        full[features] = by_features
        assert np.allclose(full, batch.toarray().T @ gradient, atol=1e-5)


def test_the_initial_standard_deviation_can_be_given(X):
    wide, narrow = (SparseLayer.random(X, 50, np.random.default_rng(1), init_std=std) for std in (0.1, 0.001))
    assert np.allclose(wide.vectors * 0.01, narrow.vectors, rtol=1e-5)
    assert narrow.vectors.any()


def test_products_equal_dense_ones():
    rng = np.random.default_rng(0)
    A = sp.random(600, 30, 0.1, "csr", np.float32, rng)
    U, V = rng.standard_normal((600, 7), np.float32), rng.standard_normal((30, 7), np.float32)
    assert np.allclose(product(A, V), A.toarray() @ V, atol=1e-5)
    rows, columns = A.nonzero()
    assert np.allclose(products_at(csr_arrays(A), U, V), (U @ V.T)[rows, columns], atol=1e-5)
