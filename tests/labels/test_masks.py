import numpy as np
import scipy.sparse as sp

from labelspace.labels.masks import LastMask, ids_among, labels_among


def test_a_mask_that_changes_in_place_is_a_new_one():
    cache, mask, made = LastMask(), np.array([True, False]), []

    def make():
        made.append(mask.copy())
        return len(made)

    assert [cache.get(mask, make), cache.get(mask.copy(), make)] == [1, 1]
    mask[1] = True
    assert cache.get(mask, make) == 2
    assert cache.get(mask[:1], make) == 3, "of another length"


def test_lists_of_ids_equal_a_matrix_without_columns():
    rng = np.random.default_rng(1)
    Y, mask = sp.csr_matrix((rng.random((30, 12)) < 0.3).astype(np.float32)), rng.random(12) < 0.4
    expected = Y.toarray() * mask
    assert np.array_equal(labels_among(Y, mask).toarray(), expected)
    ids, starts = ids_among(Y.indices, Y.indptr, mask)
    assert (ids.dtype, starts.dtype) == (Y.indices.dtype, Y.indptr.dtype)
    rows = [ids[start:stop].tolist() for start, stop in zip(starts, starts[1:], strict=False)]
    assert rows == [np.flatnonzero(row).tolist() for row in expected]
