import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.models.neighbors.kernels import BLOCK, Postings, nearest_quantized_rows, shared_products
from labelspace.types import TopK
from tests.models.neighbors.numpy_index import to_gaps


def random_rows(rng, n, d, words, signed):
    """Numbers of 8 bits, whose columns follow Zipf's law, and a scale per column."""
    columns = np.minimum((d * rng.random((n, words)) ** 4).astype(int), d - 1)
    numbers = np.zeros((n, d), np.int8)
    numbers[np.repeat(np.arange(n), words), columns.ravel()] = rng.integers(-127 if signed else 1, 128, n * words)
    return numbers, (rng.random(d) / 127).astype(np.float32)


def indexed(numbers, scales, n_common, n_frequent):
    """The first columns as common ones, the next as frequent ones, all others as rare ones."""
    n, d = numbers.shape
    is_rare = np.arange(d) >= n_common + n_frequent
    is_frequent = (np.arange(d) >= n_common) & ~is_rare
    frequent, rare = (sp.csc_matrix(numbers.astype(np.int32) * mask) for mask in (is_frequent, is_rare))
    gaps, gap_values, gap_starts = to_gaps(frequent.indices, frequent.data.astype(np.int8), np.diff(frequent.indptr))
    common_column = np.where(np.arange(d) < n_common, np.arange(d), -1).astype(np.int32)
    common = np.ascontiguousarray(numbers[:, :n_common])
    norms = np.linalg.norm(common * scales[:n_common], axis=1).astype(np.float32)
    return Postings(
        scales,
        rare.data.astype(np.int8),
        rare.indices.astype(np.uint16),
        rare.indptr,
        gap_values,
        gaps,
        gap_starts,
        common_column,
        common,
        norms,
    )


def run(Q, index, k):
    sums = np.zeros(len(index.common_norms) + 5, np.int32)
    out = TopK.empty(Q.shape[0], k)
    nearest_quantized_rows(csr_arrays(Q), 0, Q.shape[0], index, sums, out.labels, out.scores)
    assert not sums.any(), "the scratch is left as it was"
    return out


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(("n_common", "n_frequent"), [(0, 0), (20, 0), (20, 100), (300, 100), (500, 0)])
@pytest.mark.parametrize("words", [2, 40])
def test_neighbors_equal_the_dense_product(words, n_common, n_frequent, signed):
    rng = np.random.default_rng(words)
    n = 20 * BLOCK + 7
    numbers, scales = random_rows(rng, n, 500, words, signed)
    queries = random_rows(rng, 30, 500, words, signed)[0] * scales + 0.5 * numbers[:30] * scales  # near duplicates
    Q = sp.csr_matrix(queries / np.linalg.norm(queries, axis=1, keepdims=True), dtype=np.float32)
    scores = Q.toarray().astype(np.float64) @ (numbers * scales.astype(np.float64)).T
    for k in (1, 7, 30):
        out = run(Q, indexed(numbers, scales, n_common, n_frequent), k)
        expected = TopK.from_scores(np.where(scores > 0, scores, -np.inf), k)
        size = np.abs(scores).max()
        listed = expected.scores > 1e-3 * size
        assert np.allclose(out.scores[listed], expected.scores[listed], atol=2e-4 * size)
        found = np.take_along_axis(scores, np.maximum(out.labels, 0).astype(int), axis=1)
        assert np.allclose(found[listed], out.scores[listed], atol=2e-4 * size), "the scores are those of the rows"


def test_an_empty_query_has_no_neighbors():
    index = indexed(*random_rows(np.random.default_rng(0), 50, 100, 5, signed=False), 10, 10)
    out = run(sp.csr_matrix((1, 100), dtype=np.float32), index, 3)
    assert out.labels.tolist() == [[-1, -1, -1]]
    assert np.isneginf(out.scores).all()


def test_gaps_add_up_to_the_rows():
    rng = np.random.default_rng(1)
    rows = [np.sort(rng.permutation(5000)[:size]) for size in (0, 3, 400, 1, 0)]
    values = [rng.integers(1, 128, len(part)).astype(np.int8) for part in rows]
    gaps, numbers, starts = to_gaps(
        np.concatenate(rows), np.concatenate(values), np.array([len(part) for part in rows])
    )
    for part, expected, start, stop in zip(rows, values, starts, starts[1:], strict=False):
        kept = numbers[start:stop] != 0
        assert np.cumsum(gaps[start:stop], dtype=int)[kept].tolist() == part.tolist()
        assert numbers[start:stop][kept].tolist() == expected.tolist()
    assert to_gaps(np.zeros(0, np.int32), np.zeros(0, np.int8), np.zeros(3, int))[2].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(("n_common", "n_frequent"), [(0, 0), (20, 0), (20, 100), (0, 500)])
def test_what_features_add_equals_the_dense_products(n_common, n_frequent):
    rng = np.random.default_rng(1)
    numbers, scales = random_rows(rng, 900, 500, 10, True)
    x = sp.csr_matrix(np.where(rng.random((1, 500)) < 0.3, rng.random((1, 500)), 0), dtype=np.float32)
    rows, slots = rng.permutation(900)[:50].astype(np.int32), np.zeros(900, np.int32)
    out = np.full((50, x.nnz), np.nan, np.float32)
    shared_products(x.data, x.indices, indexed(numbers, scales, n_common, n_frequent), rows, slots, out)
    expected = (numbers[rows] * scales)[:, x.indices] * x.data
    assert np.count_nonzero(expected) > 100
    np.testing.assert_allclose(out, expected, rtol=1e-5)
    assert not slots.any(), "as it was"
