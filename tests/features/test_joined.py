import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.errors import DataError
from labelspace.features.normalize import has_unit_rows, normalize_rows
from labelspace.features.views import FIRST_SHARE, join_tables


def unit_rows(seed, n=30, d=9):
    rng = np.random.default_rng(seed)
    return normalize_rows(sp.csr_matrix((rng.random((n, d)) * (rng.random((n, d)) < 0.3)).astype(np.float32)))


def test_rows_are_side_by_side_with_norm_1():
    left, right = unit_rows(1), unit_rows(2, d=7)
    both = join_tables([left, right])
    a, b = left.toarray(), right.toarray()
    has_a, has_b = a.any(axis=1, keepdims=True), b.any(axis=1, keepdims=True)
    share = FIRST_SHARE
    expected = np.hstack([a * np.where(has_b, share**0.5, 1), b * np.where(has_a, (1 - share) ** 0.5, 1)])
    assert not (has_a & has_b).all(), "some rows have one part only"
    np.testing.assert_allclose(both.toarray(), expected, rtol=1e-6)
    assert has_unit_rows(both)
    assert both.has_sorted_indices
    one = join_tables([left[3], right[3]])
    np.testing.assert_allclose(one.toarray(), expected[3:4], rtol=1e-6)


def test_rows_of_any_length_are_scaled_first():
    left, right = unit_rows(1), unit_rows(2)
    scaled = join_tables([3 * left, right * 0.5])
    np.testing.assert_allclose(scaled.toarray(), join_tables([left, right]).toarray(), rtol=1e-5)


def test_dense_views_are_not_joined():
    with pytest.raises(DataError, match="must be sparse, but one is dense"):
        join_tables([unit_rows(1), np.ones((30, 2), np.float32)])
