import numpy as np
import scipy.sparse as sp

from labelspace.data.synthetic import planted
from labelspace.kernels.random_walks import walk
from labelspace.models.secseq import deepwalk as walks
from labelspace.models.secseq.deepwalk import positive_information, walked_pairs

Y = planted(n=300, d=50, l=40, seed=1).Y


def test_pairs_are_those_within_the_window_both_ways(monkeypatch):
    drawn = []

    def walk_and_tell(*args):
        walk(*args)
        drawn.extend(args[-1].tolist())

    monkeypatch.setattr(walks, "walk", walk_and_tell)
    Y = sp.csr_matrix(np.array([[1, 1, 0, 0, 0], [0, 1, 1, 0, 0], [1, 1, 1, 0, 0], [0, 0, 0, 1, 0]], np.float32))
    counts = walked_pairs(Y, seed=0)
    expected = np.zeros((5, 5))
    for row in drawn:
        for i in range(walks.LENGTH):
            for j in range(walks.LENGTH):
                if 0 < abs(i - j) <= walks.WINDOW:
                    expected[row[i], row[j]] += 1
    assert counts.toarray().tolist() == expected.tolist()
    assert sorted(row[0] for row in drawn) == sorted([0, 1, 2] * walks.WALKS)
    assert counts.getnnz(axis=1).tolist() == [3, 3, 3, 0, 0], "who stands alone or nowhere does not walk"


def test_blocks_and_threads_do_not_matter_and_the_seed_does(monkeypatch):
    monkeypatch.setenv("LABELSPACE_THREADS", "1")
    whole = walked_pairs(Y, seed=0)
    assert (whole != walked_pairs(Y, seed=1)).nnz
    monkeypatch.setenv("LABELSPACE_THREADS", "2")
    monkeypatch.setattr(walks, "BLOCK", 17)
    assert (whole != walked_pairs(Y, seed=0)).nnz == 0


def test_the_order_of_a_rows_labels_does_not_matter():
    mixed = Y.copy()
    for start, stop in zip(Y.indptr, Y.indptr[1:], strict=False):
        mixed.indices[start:stop] = Y.indices[start:stop][::-1]
    mixed.has_sorted_indices = False
    assert (walked_pairs(Y, seed=0) != walked_pairs(mixed, seed=0)).nnz == 0


def test_many_labels_walk_less_each(monkeypatch):
    pairs = sum(walks.LENGTH - apart for apart in range(1, walks.WINDOW + 1))
    walkers = (walked_pairs(Y, seed=0).getnnz(axis=1) > 0).sum()
    for most, times in ((3 * pairs * walkers, 3), (0, 1)):
        monkeypatch.setattr(walks, "PAIRS", most)
        assert walked_pairs(Y, seed=0).sum() == 2 * times * pairs * walkers


def test_a_document_of_very_many_labels_does_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(walks, "PAIRS", 0)
    Y = sp.csr_matrix(np.ones((2, 4000), np.float32))
    assert walked_pairs(Y, seed=0).nnz < 4000 * 2 * 85 + 1


def test_information_is_that_of_the_formula():
    rng = np.random.default_rng(0)
    counts = np.triu(rng.integers(0, 4, (30, 30)) * (rng.random((30, 30)) < 0.3))
    counts = (counts + counts.T).astype(np.float32)
    counts[:, 7] = counts[7] = 0
    each = counts.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.nan_to_num(np.maximum(np.log(counts * counts.sum() / np.outer(each, each)), 0.0))
    given = sp.csr_matrix(counts)
    found = positive_information(given)
    assert np.allclose(found.toarray(), expected, atol=1e-5)
    assert found.nnz == (expected > 0).sum()
    assert np.array_equal(given.toarray(), counts)
    assert positive_information(sp.csr_matrix((3, 3), dtype=np.float32)).nnz == 0
