import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.features.normalize import normalize_rows
from labelspace.models.neighbors.kernels import strong_values
from labelspace.models.neighbors.model import keep_entries, strong_entries


def test_kept_rows_have_norm_1_and_what_is_left_out_is_small():
    rng = np.random.default_rng(0)
    X = normalize_rows(sp.random(3000, 200, 0.3, "csr", np.float32, rng))  # more rows than one task takes
    kept = strong_entries(X, 0.1, 5)
    before, pruned = X.copy(), keep_entries(X, kept)
    assert (X != before).nnz == 0
    assert X.nnz == len(kept) > pruned.nnz == kept.sum() > 0.5 * X.nnz
    assert np.allclose(pruned.multiply(pruned).sum(axis=1), 1, atol=1e-5)
    assert np.asarray(pruned.multiply(X).sum(axis=1)).min() >= np.sqrt(0.9) - 1e-5, "the cosine with the whole row"


def test_rows_that_lose_nothing_stay_as_they_are():
    X = sp.csr_matrix(np.eye(3, dtype=np.float32))
    assert keep_entries(X, strong_entries(X, 0.9, 1)) is X


def test_a_row_does_not_depend_on_the_rows_beside_it():
    rng = np.random.default_rng(5)
    X = normalize_rows(sp.random(60, 200, 0.3, "csr", np.float32, rng=rng))
    X.data[X.indptr[3] : X.indptr[4]] *= np.float32(1.0000001)  # not quite of norm 1, as rounding leaves it
    kept = strong_entries(X, 0.1, 40)
    kept[X.indptr[3] : X.indptr[4]] = True
    together = keep_entries(X, kept)
    for row in range(60):
        alone = keep_entries(X[row], kept[X.indptr[row] : X.indptr[row + 1]])
        assert alone.data.tolist() == together[row].data.tolist()


def numpy_strong(values, share, at_least):
    """The NumPy twin, for one row: leave out the weakest as long as all that are as weak or weaker hold little."""
    squares = values.astype(np.float64) ** 2
    sizes = np.abs(values)
    weak = np.array([squares[sizes <= size].sum() <= share * squares.sum() for size in sizes], bool)
    spared = np.array([(sizes > size).sum() < at_least for size in sizes], bool)
    return ~weak | spared


@pytest.mark.parametrize("at_least", [0, 1, 8, 60])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
def test_strong_values_equal_the_numpy_ones(share, at_least):
    rng = np.random.default_rng(at_least)
    X = sp.random(60, 80, 0.4, "csr", np.float32, rng)
    X.data = np.ceil(X.data * 20) * rng.choice(np.float32([-1, 1]), X.nnz)  # of 20 sizes: many are the same
    kept = np.zeros(X.nnz, bool)
    strong_values(X.data, X.indptr, 5, 60, share, at_least, kept)
    assert not kept[: X.indptr[5]].any(), "other rows are not touched"
    for start, stop in zip(X.indptr[5:], X.indptr[6:], strict=False):
        assert kept[start:stop].tolist() == numpy_strong(X.data[start:stop], share, at_least).tolist()
    assert kept[X.indptr[5] :].all() == (share == 0 or at_least == 60)


def test_an_empty_row_has_no_values():
    kept = np.ones(1, bool)
    strong_values(np.ones(1, np.float32), np.array([0, 0, 1], np.int32), 0, 1, 0.5, 0, kept)
    assert kept.all()
