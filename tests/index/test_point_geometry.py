import numpy as np
import pytest

from labelspace.index.points import GEOMETRIES, distances, extended_points, extended_queries, point_weights


def ball(n, seed):
    rows = np.random.default_rng(seed).standard_normal((n, 7))
    norms = np.random.default_rng([seed, 1]).uniform(0, 0.99, (n, 1))
    return (rows * norms / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_products_of_extended_vectors_are_keys(geometry):
    x, y = ball(20, 0), ball(30, 1)
    weights = 1 / (1 - (y.astype(np.float64) ** 2).sum(axis=1)) if geometry == "poincare" else np.ones(30)
    keys = weights * ((x[:, None].astype(np.float64) - y) ** 2).sum(axis=2)
    products = extended_queries(x, geometry).astype(np.float64) @ extended_points(y, geometry).T
    assert np.allclose((x.astype(np.float64) ** 2).sum(axis=1)[:, None] - products, keys, rtol=1e-4, atol=1e-4)
    assert np.allclose(point_weights(y, geometry, "points"), weights)


def test_distances_are_symmetric_and_satisfy_the_triangle_inequality():
    x = ball(25, 2)
    weights = point_weights(x, "poincare", "points")
    keys = weights * ((x[:, None].astype(np.float64) - x) ** 2).sum(axis=2)
    d = distances(keys, weights[:, None], "poincare")
    assert np.allclose(d, d.T)
    assert (d[:, None] <= d[:, :, None] + d[None] + 1e-9).all()
