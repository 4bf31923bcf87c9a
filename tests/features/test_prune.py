import numpy as np
import scipy.sparse as sp

from labelspace.features.normalize import normalize_rows
from labelspace.features.prune import keep_entries, strong_entries


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
