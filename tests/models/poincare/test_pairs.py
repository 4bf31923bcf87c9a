import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from labelspace.models.poincare.pairs import draw_outside, sample_pairs


def random_rows(seed, n, n_columns, share=0.4):
    return sp.csr_matrix((np.random.default_rng(seed).random((n, n_columns)) < share).astype(np.float32))


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 8), st.sampled_from([0.0, 0.4, 0.9, 1.0]))
def test_what_is_drawn_is_a_column_that_the_row_does_not_have(seed, n, n_columns, share):
    rows = random_rows(seed, n, n_columns, share)
    drawn = draw_outside(rows, 5, np.random.default_rng(seed))
    assert drawn.shape == (n, 5)
    for row, columns in zip(rows.toarray(), drawn, strict=True):
        if row.all():
            assert (columns == n_columns).all(), "there is none"
        else:
            assert (columns >= 0).all()
            assert (columns < n_columns).all()
            assert not row[columns].any()


def test_every_column_that_a_row_does_not_have_is_drawn_equally_often():
    rows = sp.csr_matrix(np.array([[1, 0, 1, 0, 0, 1], [0, 0, 0, 0, 0, 0], [0, 1, 1, 1, 1, 1]], np.float32))
    drawn = draw_outside(rows, 12_000, np.random.default_rng(0))
    for row, columns in zip(rows.toarray(), drawn, strict=True):
        counts = np.bincount(columns, minlength=6)
        expected = 12_000 / (row == 0).sum()
        assert (np.abs(counts[row == 0] - expected) < 0.1 * expected).all()
        assert not counts[row == 1].any()


def test_each_document_has_its_positives_and_its_own_negatives():
    true = random_rows(1, 9, 12)
    true = sp.vstack([true, sp.csr_matrix((1, 12)), sp.csr_matrix(np.ones((1, 12)))]).tocsr()
    pairs = sample_pairs(true, true, 4, np.random.default_rng(0))
    n_positives = true.nnz
    assert np.array_equal(pairs.ids, np.unique(pairs.ids))
    targets, positives = pairs.ids[pairs.targets], []
    drawn = []
    for i, row in enumerate(true.toarray()):
        of_row = np.flatnonzero(pairs.documents == i)
        mine, others = of_row[of_row < n_positives], of_row[of_row >= n_positives]
        assert sorted(targets[mine]) == np.flatnonzero(row).tolist()
        assert len(others) == (0 if row.all() else 4)
        assert not row[targets[others]].any(), "never a positive"
        columns = pairs.columns[of_row]
        assert len(set(columns)) == len(columns)
        assert pairs.columns[mine].tolist() == list(range(len(mine)))
        assert (pairs.columns[others] >= int(true.sum(axis=1).max())).all()
        drawn.append(tuple(targets[others]))
        positives.append(len(mine))
    assert pairs.width == max(positives) + 4
    assert np.diff(pairs.indptr).tolist() == positives
    assert len(set(drawn)) > 5, "not shared by the documents"


@pytest.mark.parametrize("seed", range(3))
def test_more_may_be_excluded_than_the_positives(seed):
    true, more = random_rows(seed, 7, 10, 0.2), random_rows(seed + 9, 7, 10, 0.3)
    excluded = (true + more).tocsr()
    pairs = sample_pairs(true, excluded, 20, np.random.default_rng(seed))
    negatives = slice(true.nnz, None)
    assert not excluded.toarray()[pairs.documents[negatives], pairs.ids[pairs.targets[negatives]]].any()
    assert pairs.indptr[-1] == true.nnz
