import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelspace.kernels.hyperbolic_search import (
    BLOCK_SIZE,
    Points,
    block_products,
    empty_results,
    from_blocks,
    key_lower_bounds,
    nearest_in_clusters,
    nearest_points,
    one_minus_squared_norms,
    squared_distance,
    squared_row_norms,
    to_blocks,
)


def table(n, d, seed=0, norm=0.9):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, d))
    rows *= norm / np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(np.float32)


def make_points(rows, ids):
    return Points(to_blocks(rows), squared_row_norms(rows), 1 / one_minus_squared_norms(rows), ids)


def keys_twin(queries, points, n):
    """Every key in float64, coordinate by coordinate."""
    rows, distances = from_blocks(points.blocks, n).astype(np.float64), np.zeros((len(queries), n))
    for j in range(rows.shape[1]):
        distances += (queries[:, j, None].astype(np.float64) - rows[:, j]) ** 2
    return points.weights * distances


def twin(queries, points, k):
    """The keys sorted: the smallest first, equal ones by the smaller id."""
    labels, scores = np.full((len(queries), k), -1), np.full((len(queries), k), -np.inf)
    for i, keys in enumerate(keys_twin(queries, points, len(points.ids))):
        order = np.lexsort([points.ids, keys])[:k]
        labels[i, : len(order)], scores[i, : len(order)] = points.ids[order], -keys[order]
    return labels, scores


@given(st.integers(0, 200), st.integers(0, 5))
def test_blocks_round_trip(n, d):
    rows = np.random.default_rng(n).standard_normal((n, d)).astype(np.float32)
    blocks = to_blocks(rows)
    assert blocks.shape == (-(-n // BLOCK_SIZE), d, BLOCK_SIZE)
    assert np.array_equal(from_blocks(blocks, n), rows)


@pytest.mark.parametrize("norm", [1e-20, 0.3, 1 - 1e-3, 1 - 6e-8])
def test_squared_norms_are_accurate_to_the_last_bits(norm):
    rows = table(200, 50, norm=norm)
    exact = [sum(Fraction(float(number)) ** 2 for number in row) for row in rows]
    complements, squares = one_minus_squared_norms(rows), squared_row_norms(rows)
    assert all(
        abs(Fraction(gap) - (1 - e)) <= abs(1 - e) * Fraction(2) ** -51
        for gap, e in zip(complements, exact, strict=True)
    )
    assert np.allclose(squares, [float(e) for e in exact], rtol=1e-14)
    assert complements[0] == pytest.approx(math.fsum([1.0, *(-(rows[0].astype(np.float64) ** 2))]), rel=1e-15)


def test_products_and_squared_distances_equal_numpy():
    rows, query = table(BLOCK_SIZE, 37), table(1, 37, seed=1)[0]
    block, out = to_blocks(rows)[0], np.empty(BLOCK_SIZE, np.float32)
    block_products(query, block, out)
    assert np.allclose(out, rows @ query, atol=1e-6)
    distances = np.zeros(BLOCK_SIZE)
    for j in range(37):
        distances += (query[j].astype(np.float64) - rows[:, j]) ** 2
    assert [squared_distance(query, block, i) for i in range(BLOCK_SIZE)] == distances.tolist()


@given(st.integers(1, 80), st.sampled_from([1e-25, 1e-20, 1e-3, 0.5, 1 - 1e-3, 1 - 6e-8]), st.integers(0, 99))
def test_the_lower_bound_is_below_the_key_and_tight(d, norm, seed):
    rows, query = table(BLOCK_SIZE, d, seed, norm), table(1, d, seed + 1, norm)[0]
    rows[:20] = query * (1 - 1e-6 * np.arange(20)[:, None])  # where the filter cancels
    points, lower_bounds = make_points(rows, np.arange(BLOCK_SIZE, dtype=np.int32)), np.empty(BLOCK_SIZE)
    square = squared_row_norms(query[None])[0]
    scratch = np.empty(BLOCK_SIZE, np.float32)
    key_lower_bounds(query, square, points.blocks[0], points.squares, points.weights, scratch, lower_bounds)
    keys = keys_twin(query[None], points, BLOCK_SIZE)[0]
    assert (lower_bounds <= keys).all()
    assert (
        keys - lower_bounds <= points.weights * ((d + 3) * 2.0**-23 * (square + points.squares) + (d + 3) * 2.0**-122)
    ).all()


@given(st.integers(0, 700), st.integers(1, 9), st.integers(1, 12), st.integers(0, 999))
def test_nearest_points_equal_numpy_ties_to_the_smaller_id(n, d, k, seed):
    rng = np.random.default_rng(seed)
    rows, queries = (rng.integers(-2, 3, (m, d)).astype(np.float32) / 8 for m in (n, 3))  # few values: many ties
    points = make_points(rows, rng.permutation(2 * n)[:n].astype(np.int32))
    labels, scores = empty_results(3, k)
    nearest_points(queries, points, labels, scores)
    expected = twin(queries, points, k)
    assert np.array_equal(labels, expected[0])
    assert np.array_equal(scores, expected[1])


@given(st.integers(1, 300), st.integers(1, 9), st.integers(0, 999))
def test_nearest_in_clusters_equals_a_search_in_their_points_only(n, k, seed):
    rng = np.random.default_rng(seed)
    rows, queries = table(n, 5, seed), table(4, 5, seed + 1)
    points = make_points(rows, rng.permutation(n).astype(np.int32))
    starts = np.array([0, *np.sort(rng.integers(0, n + 1, 4)), n])
    clusters = np.stack([rng.permutation(5)[:3] for _ in range(4)]).astype(np.int32)
    clusters[0, 1] = -1
    labels, scores = empty_results(4, k)
    nearest_in_clusters(queries, points, starts, clusters, labels, scores)
    for i in range(4):
        members = np.concatenate([np.arange(starts[c], starts[c + 1]) for c in clusters[i] if c >= 0])
        expected = twin(queries[i : i + 1], make_points(rows[members], points.ids[members]), k)
        assert np.array_equal(labels[i], expected[0][0])
        assert np.array_equal(scores[i], expected[1][0])
