import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.sparse_layers import (
    Layer,
    adagrad_features,
    adagrad_unit_rows,
    adam_step,
    add_active_units,
    dense_forward,
    dense_submatrix,
    dropout_rows,
    embed_rows,
    feature_gradients,
    group_by_feature,
    network_topk,
    output_topk,
    sampled_products,
    sampled_squared_errors,
    subtract_label_block,
)
from labelspace.types import TopK


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@pytest.fixture(name="X")
def batch_rows(rng):
    dense = np.where(rng.random((30, 50)) < 0.2, rng.standard_normal((30, 50)), 0)
    dense[1] = 0  # an empty row
    return sp.csr_matrix(dense, dtype=np.float32)


def parts(X):
    return X.data, X.indices, X.indptr


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def test_dropout_removes_values_at_random_and_scales_the_others(X, rng):
    rows = rng.permutation(30)[:11].astype(np.int32)
    expected = X[rows]
    draws = rng.random(expected.nnz).astype(np.float32)
    data, indices, indptr = dropout_rows(*parts(X), rows, draws, 0.25)
    expected.data *= (draws >= 0.25) / np.float32(0.75)
    result = sp.csr_matrix((data, indices, indptr), shape=expected.shape)
    assert np.allclose(result.toarray(), expected.toarray())
    assert len(data) == (draws >= 0.25).sum()


def test_group_by_feature_is_the_batch_by_columns(X):
    offsets = np.zeros(50, np.int32)
    features, ends, rows, values = group_by_feature(*parts(X), offsets)
    assert sorted(features) == sorted(set(X.indices))
    dense = np.zeros(X.shape, np.float32)
    dense[rows, np.repeat(features, np.diff(ends))] = values
    assert np.array_equal(dense, X.toarray())
    assert not offsets.any(), "scratch is reset"


def test_a_batch_without_features_has_none():
    features, ends, rows, _ = group_by_feature(*parts(sp.csr_matrix((3, 5), dtype=np.float32)), np.zeros(5, np.int32))
    assert len(features) == len(rows) == 0
    assert ends.tolist() == [0]


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_embedding_equals_a_dense_product(X, rng, dtype):
    vectors = (normal(rng, 50, 8) * 20).astype(dtype)
    scales, bias = normal(rng, 50), normal(rng, 8)
    out = np.full((30, 8), 7, np.float32)
    embed_rows(*parts(X), 5, 20, vectors, scales, bias, out)
    expected = X.toarray() @ (vectors * scales[:, None]) + bias
    assert np.allclose(out[5:20], expected[5:20], atol=1e-4)
    assert (out[:5] == 7).all()
    assert (out[20:] == 7).all()


def test_labels_are_subtracted_in_their_columns(rng):
    Y = sp.random(20, 12, 0.3, "csr", np.float32, rng=rng)
    rows = np.array([3, 0, 19], np.int32)
    out = np.zeros((3, 5), np.float32)
    subtract_label_block(Y.indices, Y.indptr, rows, 4, out)
    assert np.array_equal(out, -(Y[rows].toarray()[:, 4:9] != 0).astype(np.float32))


def test_features_are_updated_by_row_wise_adagrad(X, rng):
    gradient, vectors = normal(rng, 30, 8), normal(rng, 50, 8)
    squares = rng.random(50).astype(np.float32)
    gradients = X.T.toarray() @ gradient
    summed = squares + np.square(gradients).mean(axis=1)
    expected = vectors - 0.1 * gradients / np.sqrt(summed)[:, None]
    entries = group_by_feature(*parts(X), np.zeros(50, np.int32))
    features = entries.features
    change, before = np.zeros(8), np.square(vectors, dtype=float).sum(axis=0)
    for start in range(0, len(features), 7):
        stop = min(start + 7, len(features))
        adagrad_features(entries, start, stop, gradient, 0.1, vectors, squares, change)
    assert np.allclose(change, np.square(vectors, dtype=float).sum(axis=0) - before, atol=1e-5)
    assert np.allclose(vectors, expected, atol=1e-5)
    assert np.allclose(squares, summed, atol=1e-5)


def test_features_without_a_gradient_do_not_change(X, rng):
    vectors, squares = normal(rng, 50, 8), np.zeros(50, np.float32)
    before = vectors.copy()
    entries = group_by_feature(*parts(X), np.zeros(50, np.int32))
    zeros = np.zeros((30, 8), np.float32)
    adagrad_features(entries, 0, len(entries.features), zeros, 0.1, vectors, squares, np.zeros(0))
    assert np.array_equal(vectors, before)


def test_adam_follows_the_paper(rng):
    weights, mean, square = normal(rng, 9), np.zeros(9, np.float32), np.zeros(9, np.float32)
    w, m, v = (array.astype(np.float64) for array in (weights, mean, square))
    for step in range(1, 6):
        g = normal(rng, 9)
        adam_step(weights, g, mean, square, 0.01, step)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g.astype(np.float64) ** 2
        w -= 0.01 * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
    assert np.allclose(weights, w, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_adding_active_units_equals_a_dense_product(rng, dtype):
    activity, weights = normal(rng, 6), (normal(rng, 6, 9) * 20).astype(dtype)
    activity[2] = 0
    out = normal(rng, 9)
    expected = out + activity @ weights.astype(np.float32)
    add_active_units(activity, weights, out)
    assert np.allclose(out, expected, atol=1e-4)


def test_the_best_labels_are_those_of_dense_layers(X, rng):
    vectors, weights = (normal(rng, 50, 8) * 30).astype(np.int8), (normal(rng, 8, 20) * 30).astype(np.int8)
    vector_scales, weight_scales = rng.random(50).astype(np.float32), rng.random(20).astype(np.float32)
    hidden_bias, bias, allowed = normal(rng, 8), normal(rng, 20), rng.random(20) > 0.2
    out = TopK.empty(30, 6)
    network_topk(
        csr_arrays(X),
        0,
        25,
        Layer(vectors, vector_scales, hidden_bias),
        Layer(weights, weight_scales, bias),
        allowed,
        out.labels,
        out.scores,
    )
    activity = np.maximum(X.toarray() @ (vectors * vector_scales[:, None]) + hidden_bias, 0)
    scores = np.where(allowed, activity @ (weights * weight_scales) + bias, -np.inf)
    expected = TopK.from_scores(scores, 6)
    assert np.array_equal(out.labels[:25], expected.labels[:25])
    assert np.allclose(out.scores[:25], expected.scores[:25], rtol=1e-4, atol=1e-3)
    assert (out.labels[25:] == -1).all(), "only rows start to stop are written"


def test_equal_scores_go_to_the_smaller_label():
    X = sp.csr_matrix(np.ones((1, 1), np.float32))
    ones, out = np.ones(9, np.float32), TopK.empty(1, 3)
    network_topk(
        csr_arrays(X),
        0,
        1,
        Layer(np.ones((1, 1), np.int8), ones[:1], ones[:1]),
        Layer(np.ones((1, 9), np.int8), ones, ones),
        np.ones(9, bool),
        out.labels,
        out.scores,
    )
    assert out.labels.tolist() == [[0, 1, 2]]


def test_unit_rows_are_updated_on_the_sphere_by_row_wise_adagrad(rng):
    vectors, squares = normal(rng, 12, 9), rng.random(12).astype(np.float32)
    vectors[:, :-1] /= np.linalg.norm(vectors[:, :-1], axis=1, keepdims=True)
    ids, gradient = np.array([7, 2, 11, 0, 5], np.int32), normal(rng, 3, 8)
    gradient[2] = 2 * vectors[0, :-1]  # along its vector alone: its tangent is almost 0
    expected, summed = vectors.astype(np.float64), squares.astype(np.float64)
    for i, gradients in zip(ids[1:4], gradient.astype(np.float64), strict=True):
        unit = expected[i, :-1]
        across = gradients - (gradients @ unit) * unit
        summed[i] += np.square(across).mean()
        moved = unit - 0.3 * across / np.sqrt(summed[i])
        expected[i, :-1] = moved / np.linalg.norm(moved)
    adagrad_unit_rows(gradient, ids, 1, 4, 0.3, vectors, squares)
    assert np.allclose(vectors, expected, atol=1e-5)
    assert np.allclose(squares, summed, atol=1e-5)
    assert not np.allclose(vectors[2], expected[7]), "each row is updated by its gradient"


def test_unit_rows_without_a_gradient_do_not_change(rng):
    vectors, squares = normal(rng, 4, 9), np.zeros(4, np.float32)
    before = vectors.copy()
    adagrad_unit_rows(np.zeros((4, 8), np.float32), np.arange(4, dtype=np.int32), 0, 4, 0.3, vectors, squares)
    assert np.array_equal(vectors, before)
    assert not squares.any()


def test_a_dense_layer_equals_a_dense_product(rng):
    activity, weights, bias = normal(rng, 7, 6), normal(rng, 6, 9), normal(rng, 9)
    activity[2], activity[:, 3] = 0, 0
    out = np.full((7, 9), 5, np.float32)
    dense_forward(activity, weights, bias, out)
    assert np.allclose(out, activity @ weights + bias, atol=1e-5)
    single = np.empty((1, 9), np.float32)
    dense_forward(activity[4:5], weights, bias, single)
    assert np.array_equal(single[0], out[4]), "a row does not depend on the others"


def test_a_dense_submatrix_is_its_rows_and_columns(rng):
    U = sp.random(20, 20, 0.3, "csr", np.float32, rng=rng)
    positions = np.full(20, -1, np.int32)
    for ids in ([4, 17, 0, 9], [], list(range(20))):
        rows = np.array(ids, np.int32)
        out = np.full((len(rows), len(rows)), 7, np.float32)
        dense_submatrix(*parts(U), rows, positions, out)
        assert np.array_equal(out, U.toarray()[np.ix_(ids, ids)])
        assert (positions == -1).all(), "scratch is reset"


def test_gradients_by_features_equal_a_dense_product(X, rng):
    gradient = normal(rng, 30, 8)
    entries = group_by_feature(*parts(X), np.zeros(50, np.int32))
    features = entries.features
    out = np.full((len(features), 8), np.nan, np.float32)
    feature_gradients(entries, gradient, out)
    assert np.allclose(out, (X.toarray().T @ gradient)[features], atol=1e-5)
    assert len(features) > 20


@pytest.mark.parametrize("share", [None, 0.0, 0.4, 1.0])
def test_sampled_products_are_those_of_row_and_column(X, rng, share):
    hidden, vectors = normal(rng, 30, 8), normal(rng, 50, 8)
    skipped = np.zeros(0, np.int32)
    if share is not None:
        skipped = np.where(rng.random(50) < share, np.arange(50), -1).astype(np.int32)
    out = np.full(X.nnz, 7, np.float32)
    sampled_products(X.indices, X.indptr, 4, 21, hidden, vectors, skipped, out)
    rows = np.repeat(np.arange(30), np.diff(X.indptr))
    computed = (rows >= 4) & (rows < 21)
    if share is not None:
        computed &= skipped[X.indices] < 0
    assert computed.any() == (share != 1.0)
    assert np.allclose(out[computed], (hidden @ vectors.T)[rows, X.indices][computed], atol=1e-5)
    assert (out[~computed] == 7).all(), "the others are left as they were"


@pytest.mark.parametrize("n_drawn", [0, 12, 50])
def test_squared_errors_at_sampled_columns_and_at_positives(X, rng, n_drawn):
    ids, weight = np.sort(rng.permutation(50)[:n_drawn]), 2.5
    positions = np.full(50, -1, np.int32)
    positions[ids] = np.arange(n_drawn)
    predictions, dense = normal(rng, 30, 50), X.toarray()
    rows = np.repeat(np.arange(30), np.diff(X.indptr))
    gradients, out = predictions[rows, X.indices], predictions[:, ids].copy()
    error = sampled_squared_errors(*parts(X), positions, weight, gradients, out)
    has, drawn = dense != 0, np.isin(np.arange(50), ids)
    weights = np.where(has, 1, np.where(drawn, weight, 0))
    errors = weights * (predictions - dense)
    assert np.isclose(error, (errors * (predictions - dense)).sum(), rtol=1e-4)
    assert np.allclose(out, errors[:, ids], atol=1e-5)
    assert np.allclose(gradients, np.where(drawn, 0, errors)[rows, X.indices], atol=1e-6)
    combined = np.zeros((30, 50))
    combined[rows, X.indices] = gradients
    combined[:, ids] += out
    assert np.allclose(combined, errors, atol=1e-5), "each entry is in one of the two"


@pytest.mark.parametrize("k", [6, 20])
def test_the_best_outputs_are_those_of_a_dense_layer(rng, k):
    activity, weights = normal(rng, 30, 8), (normal(rng, 8, 20) * 30).astype(np.int8)
    activity[:, 3], activity[2] = 0, 0
    scales, bias, allowed = rng.random(20).astype(np.float32), normal(rng, 20), rng.random(20) > 0.2
    out = TopK.empty(30, k)
    output_topk(activity, 2, 25, Layer(weights, scales, bias), allowed, out.labels, out.scores)
    expected = TopK.from_scores(np.where(allowed, activity @ (weights * scales) + bias, -np.inf), k)
    listed = np.isfinite(expected.scores[2:25])
    assert np.array_equal(out.labels[2:25][listed], expected.labels[2:25][listed])
    assert np.allclose(out.scores[2:25][listed], expected.scores[2:25][listed], rtol=1e-4, atol=1e-3)
    assert (out.labels[2:25][~listed] == -1).all()
    assert (np.delete(out.labels, np.s_[2:25], axis=0) == -1).all(), "only rows start to stop are written"
