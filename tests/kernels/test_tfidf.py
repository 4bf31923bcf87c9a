"""Rows of counts and weights against NumPy."""

from itertools import pairwise

import numpy as np
import pytest

from labelspace.kernels.ngrams import count_rows, tfidf_values

ONCE = np.empty(0, np.int32)


def by_document(values, ends):
    return [values[a:b] for a, b in pairwise([0, *ends])]


@pytest.mark.parametrize("n_columns", [1, 2, 300, 70_000, 2**31 - 1])
@pytest.mark.parametrize("counted", [False, True])
def test_rows_are_sorted_and_merged(n_columns, counted):
    rng = np.random.default_rng(0)
    sizes = [0, 1, 2, 31, 33, 200, 511, 512, 1500, 0]
    ends = np.cumsum(sizes)
    columns = rng.integers(0, n_columns, ends[-1], dtype=np.int32)
    columns[rng.random(ends[-1]) < 0.3] = n_columns - 1
    columns[rng.random(ends[-1]) < 0.2] = -1
    counts = rng.integers(1, 1000, ends[-1], dtype=np.int32) if counted else ONCE
    out, out_counts, out_ends = count_rows(columns, counts, ends, n_columns)
    weights = by_document(counts if counted else np.ones(ends[-1], np.int32), ends)
    for row, weight, got, got_counts in zip(
        by_document(columns, ends), weights, by_document(out, out_ends), by_document(out_counts, out_ends), strict=True
    ):
        expected = np.unique(row[row >= 0])
        np.testing.assert_array_equal(got, expected)
        np.testing.assert_array_equal(got_counts, [weight[row == column].sum() for column in expected])


def test_no_rows_at_all():
    out, counts, ends = count_rows(ONCE, ONCE, np.empty(0, np.int64), 5)
    assert (out.size, counts.size, ends.size) == (0, 0, 0)


@pytest.mark.parametrize("sublinear", [True, False])
def test_rows_are_weighted_and_normalized(sublinear):
    rng = np.random.default_rng(1)
    ends = np.array([0, 3, 40, 40])
    columns, counts = rng.integers(0, 50, 40, dtype=np.int32), rng.integers(1, 200, 40, dtype=np.int32)
    idf = rng.random(50).astype(np.float32) + 1
    got = by_document(tfidf_values(columns, counts, ends, idf, sublinear), ends)
    for row, count, values in zip(by_document(columns, ends), by_document(counts, ends), got, strict=True):
        raw = (1 + np.log(count) if sublinear else count) * idf[row].astype(float)
        np.testing.assert_allclose(values, raw / max(np.linalg.norm(raw), 1e-300), rtol=2e-7)
