import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelspace.kernels.hyperbolic_search import (
    LANES,
    Points,
    gaps_of,
    in_blocks,
    in_rows,
    least_keys,
    nearest,
    nearest_in_parts,
    products_of,
    room,
    square_between,
    squares_of,
)


def table(n, d, seed=0, norm=0.9):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, d))
    rows *= norm / np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(np.float32)


def points_of(rows, ids):
    return Points(in_blocks(rows), squares_of(rows), 1 / gaps_of(rows), ids)


def keys_twin(queries, points, n):
    """Every key in float64, coordinate by coordinate."""
    rows, between = in_rows(points.blocks, n).astype(np.float64), np.zeros((len(queries), n))
    for j in range(rows.shape[1]):
        between += (queries[:, j, None].astype(np.float64) - rows[:, j]) ** 2
    return points.weights * between


def twin(queries, points, k):
    """The keys sorted: the smallest first, equal ones by the smaller id."""
    labels, scores = np.full((len(queries), k), -1), np.full((len(queries), k), -np.inf)
    for i, keys in enumerate(keys_twin(queries, points, len(points.ids))):
        order = np.lexsort([points.ids, keys])[:k]
        labels[i, : len(order)], scores[i, : len(order)] = points.ids[order], -keys[order]
    return labels, scores


@given(st.integers(0, 200), st.integers(0, 5))
def test_blocks_give_the_rows_back(n, d):
    rows = np.random.default_rng(n).standard_normal((n, d)).astype(np.float32)
    blocks = in_blocks(rows)
    assert blocks.shape == (-(-n // LANES), d, LANES)
    assert np.array_equal(in_rows(blocks, n), rows)


@pytest.mark.parametrize("norm", [1e-20, 0.3, 1 - 1e-3, 1 - 6e-8])
def test_gaps_and_squares_are_right_to_the_last_bits(norm):
    rows = table(200, 50, norm=norm)
    exact = [sum(Fraction(float(number)) ** 2 for number in row) for row in rows]
    gaps, squares = gaps_of(rows), squares_of(rows)
    assert all(
        abs(Fraction(gap) - (1 - e)) <= abs(1 - e) * Fraction(2) ** -51 for gap, e in zip(gaps, exact, strict=True)
    )
    assert np.allclose(squares, [float(e) for e in exact], rtol=1e-14)
    assert gaps[0] == pytest.approx(math.fsum([1.0, *(-(rows[0].astype(np.float64) ** 2))]), rel=1e-15)


def test_products_and_squares_between_are_those_of_numpy():
    rows, query = table(LANES, 37), table(1, 37, seed=1)[0]
    block, out = in_blocks(rows)[0], np.empty(LANES, np.float32)
    products_of(query, block, out)
    assert np.allclose(out, rows @ query, atol=1e-6)
    between = np.zeros(LANES)
    for j in range(37):
        between += (query[j].astype(np.float64) - rows[:, j]) ** 2
    assert [square_between(query, block, i) for i in range(LANES)] == between.tolist()


@given(st.integers(1, 80), st.sampled_from([1e-25, 1e-20, 1e-3, 0.5, 1 - 1e-3, 1 - 6e-8]), st.integers(0, 99))
def test_the_least_key_is_below_the_key_and_close_to_it(d, norm, seed):
    rows, query = table(LANES, d, seed, norm), table(1, d, seed + 1, norm)[0]
    rows[:20] = query * (1 - 1e-6 * np.arange(20)[:, None])  # where the screen cancels
    points, least = points_of(rows, np.arange(LANES, dtype=np.int32)), np.empty(LANES)
    square = squares_of(query[None])[0]
    room_to_work = np.empty(LANES, np.float32)
    least_keys(query, square, points.blocks[0], points.squares, points.weights, room_to_work, least)
    keys = keys_twin(query[None], points, LANES)[0]
    assert (least <= keys).all()
    assert (
        keys - least <= points.weights * ((d + 3) * 2.0**-23 * (square + points.squares) + (d + 3) * 2.0**-122)
    ).all()


@given(st.integers(0, 700), st.integers(1, 9), st.integers(1, 12), st.integers(0, 999))
def test_the_nearest_are_those_of_numpy_ties_to_the_smaller_id(n, d, k, seed):
    rng = np.random.default_rng(seed)
    rows, queries = (rng.integers(-2, 3, (m, d)).astype(np.float32) / 8 for m in (n, 3))  # few values: many ties
    points = points_of(rows, rng.permutation(2 * n)[:n].astype(np.int32))
    labels, scores = room(3, k)
    nearest(queries, points, labels, scores)
    expected = twin(queries, points, k)
    assert np.array_equal(labels, expected[0])
    assert np.array_equal(scores, expected[1])


@given(st.integers(1, 300), st.integers(1, 9), st.integers(0, 999))
def test_the_nearest_in_parts_are_as_if_nothing_else_was_there(n, k, seed):
    rng = np.random.default_rng(seed)
    rows, queries = table(n, 5, seed), table(4, 5, seed + 1)
    points = points_of(rows, rng.permutation(n).astype(np.int32))
    starts = np.array([0, *np.sort(rng.integers(0, n + 1, 4)), n])
    parts = np.stack([rng.permutation(5)[:3] for _ in range(4)]).astype(np.int32)
    parts[0, 1] = -1
    labels, scores = room(4, k)
    nearest_in_parts(queries, points, starts, parts, labels, scores)
    for i in range(4):
        listed = np.concatenate([np.arange(starts[c], starts[c + 1]) for c in parts[i] if c >= 0])
        expected = twin(queries[i : i + 1], points_of(rows[listed], points.ids[listed]), k)
        assert np.array_equal(labels[i], expected[0][0])
        assert np.array_equal(scores[i], expected[1][0])
