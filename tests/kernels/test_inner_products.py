import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelspace.kernels.inner_products import int_product, rerank, topk_int_products, topk_products
from labelspace.kernels.quantize import quantize_int8, quantize_int16
from labelspace.types import TopK


def twin(queries, vectors, ids, k):
    """Every product, sorted: by score, then by the smaller id."""
    products = queries.astype(np.float64) @ vectors.astype(np.float64).T
    out = TopK.empty(len(queries), k)
    for i, row in enumerate(products):
        order = np.lexsort([ids, -row])[:k]
        out.labels[i, : len(order)], out.scores[i, : len(order)] = ids[order], row[order]
    return out


def search_float(queries, vectors, ids, k):
    out = TopK.empty(len(queries), k)
    topk_products(queries, vectors, ids, out.labels, out.scores)
    return out


def search_int(queries, vectors, ids, k):
    out = TopK.empty(len(queries), k)
    topk_int_products(*quantize_int16(queries), *quantize_int8(vectors), ids, out.labels, out.scores)
    return out


@given(st.integers(0, 150), st.integers(1, 9), st.integers(1, 12), st.integers(0, 999))
def test_topk_products_equal_numpy_ties_to_the_smaller_id(n, d, k, seed):
    rng = np.random.default_rng(seed)
    vectors = rng.integers(-2, 3, (n, d)).astype(np.float32)  # few values: many ties, and sums without rounding
    queries = rng.integers(-2, 3, (3, d)).astype(np.float32)
    ids = rng.permutation(2 * n)[:n].astype(np.int32)
    result, expected = search_float(queries, vectors, ids, k), twin(queries, vectors, ids, k)
    assert np.array_equal(result.labels, expected.labels)
    assert np.array_equal(result.scores, expected.scores)


def test_integer_products_are_exact():
    rng = np.random.default_rng(1)
    int16s, int8s = rng.integers(-4000, 4000, 500).astype(np.int16), rng.integers(-127, 128, 500).astype(np.int8)
    assert int_product(int16s, int8s) == int16s.astype(np.int64) @ int8s.astype(np.int64)


def test_integer_products_rank_like_dequantized_tables():
    rng = np.random.default_rng(1)
    queries, vectors = (rng.standard_normal((m, 40)).astype(np.float32) for m in (9, 300))
    ids = rng.permutation(300).astype(np.int32)
    result = search_int(queries, vectors, ids, 6)
    (q, q_scales), (v, v_scales) = quantize_int16(queries), quantize_int8(vectors)
    expected = twin(q * q_scales[:, None], v * v_scales[:, None], ids, 6)
    assert np.array_equal(result.labels, expected.labels)
    assert np.allclose(result.scores, expected.scores, rtol=1e-5)


def test_reranking_equals_a_search_in_the_candidates_only():
    rng = np.random.default_rng(1)
    queries, vectors = (rng.standard_normal((m, 8)).astype(np.float32) for m in (4, 50))
    ids = rng.permutation(90)[:50].astype(np.int32)
    candidates, out = np.stack([rng.permutation(50)[:9] for _ in range(4)]), TopK.empty(4, 6)
    candidates[:, 7] = -1
    rerank(queries, vectors, ids, candidates, out.labels, out.scores)
    for i in range(4):
        rows = candidates[i][candidates[i] >= 0]
        expected = twin(queries[i : i + 1], vectors[rows], ids[rows], 6)
        assert np.array_equal(out.labels[i], expected.labels[0])
        assert np.allclose(out.scores[i], expected.scores[0], rtol=1e-4)


@pytest.mark.parametrize("search", [search_float, search_int])
def test_a_single_query_gets_the_same_result_as_in_a_batch(search):
    rng = np.random.default_rng(2)
    queries, vectors = (rng.standard_normal((m, 37)).astype(np.float32) for m in (20, 500))
    ids = np.arange(500, dtype=np.int32)
    batch = search(queries, vectors, ids, 5)
    for i in range(20):
        single = search(queries[i : i + 1], vectors, ids, 5)
        assert np.array_equal(single.labels[0], batch.labels[i])
        assert np.array_equal(single.scores[0], batch.scores[i])
