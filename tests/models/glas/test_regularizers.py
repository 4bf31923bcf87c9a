import numpy as np
import pytest

from labelspace.models.glas.regularizers import glas_gradient, gravity_gradient, spread_out_gradient
from tests.models.glas.cases import quick, similarities_by_definition, trained_arrays, uninformative_data

OFF_DIAGONAL = ~np.eye(12, dtype=bool)


def numeric_gradient(function, at, step=1e-6):
    gradient = np.zeros_like(at)
    for entry in np.ndindex(at.shape):
        change = np.zeros_like(at)
        change[entry] = step
        gradient[entry] = (function(at + change) - function(at - change)) / (2 * step)
    return gradient


def test_gradients_are_those_of_equations_3_and_2_and_of_gravity():
    rng = np.random.default_rng(0)
    V, phi, U = (rng.standard_normal(shape) for shape in ((4, 3), (5, 3), (4, 4)))
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    U = U + U.T  # similarities are symmetric
    labels, weight, off_diagonal = np.arange(4, dtype=np.int32), 7.0, 1 - np.eye(4)
    glas = glas_gradient(labels, V, U, weight)
    assert np.allclose(glas.of_labels, numeric_gradient(lambda V: weight * ((V @ V.T - U) ** 2).mean(), V), rtol=1e-4)
    spread_out = spread_out_gradient(labels, V, weight)
    expected = numeric_gradient(lambda V: weight * ((V @ V.T * off_diagonal) ** 2).mean(), V)
    assert np.allclose(spread_out.of_labels, expected, rtol=1e-4)
    gravity = gravity_gradient(labels, V, phi, weight)
    assert np.allclose(gravity.of_labels, numeric_gradient(lambda V: weight * ((phi @ V.T) ** 2).mean(), V), rtol=1e-4)
    expected = numeric_gradient(lambda phi: weight * ((phi @ V.T) ** 2).mean(), phi)
    assert np.allclose(gravity.of_documents, expected, rtol=1e-4)


@pytest.mark.parametrize("all_labels", [True, False])
def test_glas_moves_inner_products_of_labels_to_their_similarity(all_labels):
    X, Y = uninformative_data()
    U, errors = similarities_by_definition(Y.toarray(), "arithmetic"), {}
    for name in ("glas", "none"):
        arrays = trained_arrays(quick(regularizer=name, all_labels=all_labels, epochs=12), X, Y)
        V = arrays["label_embeddings"][:, :-1]
        errors[name] = np.abs(V @ V.T - U)[OFF_DIAGONAL].mean()
    assert errors["glas"] < 0.5 * errors["none"]


def test_spread_out_labels_are_nearly_orthogonal():
    X, Y = uninformative_data()
    V = trained_arrays(quick(regularizer="spread_out", epochs=12), X, Y)["label_embeddings"][:, :-1]
    assert np.abs(V @ V.T)[OFF_DIAGONAL].mean() < 0.1
