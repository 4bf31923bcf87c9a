"""TF-IDF weights and stacking against dense arithmetic."""

import numpy as np
import pytest

from labelspace.features.sparse_matrix import CsrRows, inverse_document_frequency, stack_rows


def rows(matrix):
    """The rows of a dense matrix."""
    columns = [np.flatnonzero(row) for row in matrix]
    flat = np.concatenate([np.zeros(0, int), *columns]).astype(np.int32)
    values = np.array([matrix[i, j] for i, js in enumerate(columns) for j in js], np.float32)
    return CsrRows(flat, values, np.cumsum([len(js) for js in columns], dtype=np.int64))


@pytest.mark.parametrize("sizes", [[1], [5], [1, 1], [3, 1, 4], [2, 0, 2]])
def test_blocks_are_stacked_in_order(sizes):
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((sum(sizes), 7)) < 0.4, rng.random((sum(sizes), 7)), 0).astype(np.float32)
    cuts = np.cumsum([0, *sizes])
    X = stack_rows([rows(dense[start:stop]) for start, stop in zip(cuts, cuts[1:], strict=False)], 7)
    assert X.shape == dense.shape
    assert X.has_canonical_format
    assert X.indices.dtype == X.indptr.dtype == np.int32
    assert np.array_equal(X.toarray(), dense)


def test_no_blocks_are_no_rows():
    assert stack_rows([], 7).shape == (0, 7)


def test_rows_of_one_text_do_not_share_arrays():
    one, other = (stack_rows([rows(np.array([[value, 0]]))], 2) for value in (1.0, 2.0))
    assert (one[0, 0], other[0, 0]) == (1, 2)


@pytest.mark.parametrize("sublinear", [True, False])
def test_tfidf_is_the_formula(sublinear):
    counts = CsrRows(np.array([0, 2, 1], np.int32), np.array([3, 1, 2], np.int32), np.array([2, 2, 3]))
    idf = inverse_document_frequency(np.array([1, 1, 1]), 3)
    assert np.allclose(idf, np.log(4 / 2) + 1)
    weights = counts.tfidf(idf, sublinear)
    first = np.array([1 + np.log(3) if sublinear else 3, 1])
    assert np.allclose(weights.values, [*first / np.linalg.norm(first), 1])
    assert np.array_equal(weights.columns, counts.columns)
    assert np.array_equal(weights.ends, counts.ends)
