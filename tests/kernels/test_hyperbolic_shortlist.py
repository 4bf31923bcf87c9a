import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelspace.kernels.bit_planes import to_blocks as to_code_blocks
from labelspace.kernels.bit_planes import to_planes
from labelspace.kernels.hyperbolic_search import (
    CODE_BITS,
    PointCodes,
    Points,
    empty_results,
    nearest_in_rows,
    nearest_points,
    one_minus_squared_norms,
    shortlist_points,
    shortlist_points_in_lists,
    squared_row_norms,
    to_blocks,
)


def drawn(n, m, width, seed):
    """Queries (m, d), as they are mapped, codes (n, width) and the table of them; weights differ by far."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2**CODE_BITS, (n, width)).astype(np.uint8)
    numbers = [rng.uniform(low, high, n).astype(np.float32) for low, high in ((0.01, 0.1), (1, 50), (0, 49))]
    center, query_map = rng.standard_normal(5).astype(np.float32), np.zeros((5, width), np.float32)
    table = PointCodes(to_code_blocks(to_planes(codes, CODE_BITS)), *numbers, center, query_map)
    return (
        rng.standard_normal((m, 5)).astype(np.float32),
        rng.standard_normal((m, width)).astype(np.float32),
        codes,
        table,
    )


def twin(queries, mapped, codes, table):
    """Minus the estimated keys of all points, in float64."""
    levels, x = 2 * codes.astype(np.int64) - 15, queries.astype(np.float64)
    largest = np.abs(mapped).max(axis=1, keepdims=True)
    numbers = np.rint(mapped * (np.float32(15) / largest)).astype(np.int64)
    shifts = (x**2).sum(axis=1, keepdims=True) - 2 * (x @ table.center.astype(np.float64))[:, None]
    return (largest / 15) * table.slopes * (numbers @ levels.T) - shifts * table.weights - table.offsets


def shortlist(queries, mapped, table, size):
    rows, scores = np.empty((len(queries), size), np.int32), np.empty((len(queries), size), np.float32)
    shortlist_points(queries, mapped, table, rows, scores)
    return rows, scores


@pytest.mark.parametrize(
    ("n", "width", "size"), [(1, 64, 1), (5, 64, 9), (64, 128, 20), (5000, 64, 40), (2100, 192, 7)]
)
def test_a_shortlist_has_the_smallest_keys_by_the_products_of_the_codes(n, width, size):
    queries, mapped, codes, table = drawn(n, 4, width, seed=n)
    rows, scores = shortlist(queries, mapped, table, size)
    expected = twin(queries, mapped, codes, table)
    for i in range(4):
        best, found = np.sort(expected[i])[::-1][:size], rows[i][rows[i] >= 0]
        assert len(set(found.tolist())) == len(best)
        assert np.allclose(np.sort(expected[i, found])[::-1], best, rtol=1e-4)
        assert np.allclose(scores[i, : len(found)], expected[i, found], rtol=1e-4, atol=1e-3)
        assert (rows[i, len(found) :] == -1).all()


def test_equal_keys_go_to_the_smaller_row():
    queries, mapped, codes, table = drawn(900, 1, 64, seed=0)
    same = to_code_blocks(to_planes(np.repeat(codes[:1], 900, axis=0), CODE_BITS))
    equal = table._replace(planes=same, **{key: np.ones(900, np.float32) for key in ("slopes", "weights", "offsets")})
    assert sorted(shortlist(queries, mapped, equal, 7)[0][0]) == list(range(7))


def test_a_query_alone_has_the_shortlist_that_it_has_in_a_batch():
    queries, mapped, _, table = drawn(4000, 9, 64, seed=1)
    together = shortlist(queries, mapped, table, 20)
    alone = shortlist(queries[3:4], mapped[3:4], table, 20)
    assert np.array_equal(alone[0][0], together[0][3])
    assert np.array_equal(alone[1][0], together[1][3])


def test_a_query_of_zeros_is_ranked_by_the_weights_and_norms():
    _, mapped, _, table = drawn(300, 1, 64, seed=2)
    rows, _ = shortlist(np.zeros((1, 5), np.float32), np.zeros_like(mapped), table, 10)
    assert sorted(rows[0]) == sorted(np.argsort(table.offsets)[:10])


def shortlist_in_lists(queries, mapped, table, starts, lists, size):
    rows, scores = np.empty((len(queries), size), np.int32), np.empty((len(queries), size), np.float32)
    shortlist_points_in_lists(queries, mapped, table, starts, lists, rows, scores)
    return rows, scores


@pytest.mark.parametrize(("n", "width", "size"), [(1, 64, 3), (150, 64, 9), (3000, 64, 40), (900, 128, 2000)])
def test_a_shortlist_of_lists_has_the_smallest_keys_of_the_blocks_they_lie_in(n, width, size):
    queries, mapped, codes, table = drawn(n, 4, width, seed=n)
    rng = np.random.default_rng(n)
    starts = np.concatenate([[0], np.sort(rng.integers(0, n + 1, 24)), [n]])  # some are empty, some share a block
    lists = np.full((4, 25), -1, np.int32)
    for i, n_lists in enumerate((0, 1, 6, 25)):
        lists[i, :n_lists] = np.sort(rng.permutation(25)[:n_lists])
    rows, scores = shortlist_in_lists(queries, mapped, table, starts, lists, size)
    expected = twin(queries, mapped, codes, table)
    for i in range(4):
        spans = [(starts[c], starts[c + 1]) for c in lists[i] if c >= 0 and starts[c] < starts[c + 1]]
        blocks = {b for start, stop in spans for b in range(start // 64, -(-stop // 64))}
        readable = np.flatnonzero(np.isin(np.arange(n) // 64, sorted(blocks)))
        best, found = np.sort(expected[i, readable])[::-1][:size], rows[i][rows[i] >= 0]
        assert len(set(found.tolist())) == len(found) == len(best)
        assert np.isin(found, readable).all()
        assert np.allclose(np.sort(expected[i, found])[::-1], best, rtol=1e-4)
        assert np.allclose(scores[i, : len(found)], expected[i, found], rtol=1e-4, atol=1e-3)
        assert (rows[i, len(found) :] == -1).all()


def test_a_shortlist_of_all_lists_is_that_of_all_points():
    queries, mapped, _, table = drawn(2000, 3, 64, seed=5)
    lists, starts = np.tile(np.arange(20, dtype=np.int32), (3, 1)), np.arange(0, 2001, 100)
    listed, full = shortlist_in_lists(queries, mapped, table, starts, lists, 30), shortlist(queries, mapped, table, 30)
    assert all(np.array_equal(*pair) for pair in zip(listed, full, strict=True))


@given(st.integers(1, 300), st.integers(1, 9), st.integers(0, 999))
def test_nearest_in_rows_equals_a_search_in_these_points_only(n, k, seed):
    rng = np.random.default_rng(seed)
    rows, queries = (rng.integers(-2, 3, (m, 6)).astype(np.float32) / 8 for m in (n, 2))  # few values: many ties
    ids = rng.permutation(2 * n)[:n].astype(np.int32)

    def points(of):
        return Points(to_blocks(rows[of]), squared_row_norms(rows[of]), 1 / one_minus_squared_norms(rows[of]), ids[of])

    chosen = rng.permutation(n)[: max(1, n // 2)].astype(np.int32)
    padded = np.tile(np.append(chosen, np.int32(-1)), (2, 1))
    found, expected = empty_results(2, k), empty_results(2, k)
    nearest_in_rows(queries, points(np.arange(n)), padded, *found)
    nearest_points(queries, points(chosen), *expected)
    assert all(np.array_equal(*pair) for pair in zip(found, expected, strict=True))
