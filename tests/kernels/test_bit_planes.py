import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelspace.kernels import bit_planes
from labelspace.kernels.bit_planes import (
    CodedRows,
    Shortlist,
    from_blocks,
    query_planes,
    rerank_int16,
    shortlists,
    shortlists_in_lists,
    to_blocks,
    to_planes,
)
from labelspace.kernels.quantize import quantize_int16
from labelspace.types import TopK


def twin_query(y):
    """A query in 5 bits."""
    return np.rint(y * (np.float32(15) / max(np.abs(y).max(), np.float32(1e-30)))).astype(np.int64)


def twin_scores(y, codes, scales, bits):
    """scale * sum q (2 c - m) for every query and label."""
    levels = 2 * codes.astype(np.int64) - (2**bits - 1)
    products = np.stack([levels @ twin_query(row) for row in y])
    return scales * products.astype(np.float32)


def drawn(n, m, width, bits, seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2**bits, (n, width)).astype(np.uint8)
    scales = rng.choice(np.array([0.5, 1, 2], np.float32), n)
    return rng.standard_normal((m, width)).astype(np.float32), codes, scales


def search(y, codes, scales, bits, size):
    shape = len(y), 2 * size + 64
    rows, scores = np.empty(shape, np.int32), np.empty(shape, np.float32)
    shortlists(y, CodedRows(to_blocks(to_planes(codes, bits)), scales), size, Shortlist(rows, scores))
    return rows, scores


@pytest.mark.parametrize("bits", [1, 2, 4])
@pytest.mark.parametrize(
    ("n", "width", "size"), [(1, 64, 1), (63, 64, 5), (64, 128, 64), (5000, 128, 3), (5000, 64, 40)]
)
def test_shortlists_equal_numpy_ties_to_the_smaller_row(bits, n, width, size):
    y, codes, scales = drawn(n, 5, width, bits, seed=n)
    rows, scores = search(y, codes, scales, bits, size)
    expected = twin_scores(y, codes, scales, bits)
    for i in range(5):
        best = np.lexsort([np.arange(n), -expected[i]])[:size]
        assert sorted(rows[i, : len(best)]) == sorted(best)
        assert np.array_equal(scores[i, : len(best)], expected[i, rows[i, : len(best)]])
        assert (rows[i, len(best) :] == -1).all()


@pytest.mark.parametrize("size", [3, 40])
def test_shortlists_in_lists_are_those_of_the_blocks_of_the_lists(size):
    y, codes, scales = drawn(1000, 3, 64, 2, seed=5)
    starts = np.array([0, 10, 70, 70, 300, 520, 1000])
    lists = np.array([[0, 1, 2, -1], [3, 4, -1, 5], [2, -1, -1, -1]], np.int32)
    shape = 3, 2 * size + 64
    rows, scores = np.empty(shape, np.int32), np.empty(shape, np.float32)
    table = CodedRows(to_blocks(to_planes(codes, 2)), scales)
    shortlists_in_lists(y, table, starts, lists, size, Shortlist(rows, scores))
    expected = twin_scores(y, codes, scales, 2)
    for i, read in enumerate([np.arange(128), np.arange(64, 576), np.arange(0)]):  # whole blocks of 64
        best = read[np.lexsort([read, -expected[i, read]])][:size]
        assert sorted(rows[i, : len(best)]) == sorted(best)
        assert np.array_equal(scores[i, : len(best)], expected[i, rows[i, : len(best)]])
        assert (rows[i, len(best) :] == -1).all()


def test_equal_scores_go_to_the_smaller_row():
    rows, _ = search(np.ones((1, 64), np.float32), np.ones((900, 64), np.uint8), np.ones(900, np.float32), 1, 7)
    assert sorted(rows[0, :7]) == list(range(7))


def test_a_query_alone_gets_what_it_gets_in_a_batch():
    y, codes, scales = drawn(3000, 9, 64, 2, seed=1)
    together = search(y, codes, scales, 2, 20)[0]
    for i in range(9):
        assert np.array_equal(search(y[i : i + 1], codes, scales, 2, 20)[0][0, :20], together[i, :20])


@given(st.integers(0, 200), st.integers(1, 3), st.integers(0, 99))
def test_blocks_and_planes_are_undone(n, n_words, seed):
    codes = np.random.default_rng(seed).integers(0, 16, (n, 64 * n_words)).astype(np.uint8)
    words = to_planes(codes, 4)
    blocks = to_blocks(words)
    assert blocks.shape == (-(-n // 64), 4 * n_words, 64)
    assert np.array_equal(from_blocks(blocks, n), words)
    bits = np.unpackbits(words.view(np.uint8).reshape(n, 4, 8 * n_words), axis=2, bitorder="little")
    assert np.array_equal((bits << np.arange(4, dtype=np.uint8)[:, None]).sum(axis=1), codes)


def test_query_planes_are_two_s_complement_and_what_is_not_finite_is_0():
    y = np.random.default_rng(0).standard_normal(128).astype(np.float32)
    out = np.empty((5, 2), np.uint64)
    assert query_planes(y, out) == twin_query(y).sum()
    bits = np.unpackbits(out.view(np.uint8), axis=1, bitorder="little").astype(np.int64)
    assert np.array_equal(np.array([1, 2, 4, 8, -16]) @ bits, twin_query(y))
    for value in (np.nan, np.inf, 0.0):
        assert query_planes(np.full(128, value, np.float32), out) == 0
        assert not out.any()


def test_reranking_equals_numpy_in_the_candidates_only():
    rng = np.random.default_rng(1)
    queries, vectors = (rng.standard_normal((m, 37)).astype(np.float32) for m in (4, 50))
    ids = rng.permutation(90)[:50].astype(np.int32)
    candidates, out = np.stack([rng.permutation(50)[:9] for _ in range(4)]).astype(np.int32), TopK.empty(4, 6)
    candidates[0, 3:] = -1
    rerank_int16(queries, *quantize_int16(vectors), ids, candidates, out.labels, out.scores)
    for i in range(4):
        rows = candidates[i][candidates[i] >= 0]
        products = vectors[rows] @ queries[i]
        order = np.argsort(-products)[:6]
        assert out.labels[i, : len(order)].tolist() == ids[rows[order]].tolist()
        assert np.allclose(out.scores[i, : len(order)], products[order], atol=2e-3)
        assert (out.labels[i, len(order) :] == -1).all()


def test_integer_products_are_summed_in_float32():
    a, b = np.array([0.5, 2, -1], np.float32), np.array([2, 32767, -32768], np.int16)
    assert bit_planes.float_int_dot(a, b) == 1 + 65534 + 32768
