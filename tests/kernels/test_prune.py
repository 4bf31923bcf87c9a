import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.kernels.prune import strong_values


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
