import numpy as np
import scipy.sparse as sp

from labelspace.data.synthetic import planted
from labelspace.models.secseq import label_embeddings as deepwalk
from labelspace.models.secseq.kernels import sample_walks
from labelspace.models.secseq.label_embeddings import positive_pmi, walk_cooccurrence

Y = planted(n=300, d=50, l=40, seed=1).Y


def test_pairs_are_those_within_the_window_in_both_directions(monkeypatch):
    drawn = []

    def walk_and_record(*args):
        sample_walks(*args)
        drawn.extend(args[-1].tolist())

    monkeypatch.setattr(deepwalk, "sample_walks", walk_and_record)
    Y = sp.csr_matrix(np.array([[1, 1, 0, 0, 0], [0, 1, 1, 0, 0], [1, 1, 1, 0, 0], [0, 0, 0, 1, 0]], np.float32))
    counts = walk_cooccurrence(Y, seed=0)
    expected = np.zeros((5, 5))
    for row in drawn:
        for i in range(deepwalk.WALK_LENGTH):
            for j in range(deepwalk.WALK_LENGTH):
                if 0 < abs(i - j) <= deepwalk.WINDOW:
                    expected[row[i], row[j]] += 1
    assert counts.toarray().tolist() == expected.tolist()
    assert sorted(row[0] for row in drawn) == sorted([0, 1, 2] * deepwalk.WALKS_PER_LABEL)
    assert counts.getnnz(axis=1).tolist() == [3, 3, 3, 0, 0], "no walks from labels without others"


def test_blocks_and_threads_do_not_matter_and_the_seed_does(monkeypatch):
    monkeypatch.setenv("LABELSPACE_THREADS", "1")
    pairs = walk_cooccurrence(Y, seed=0)
    assert (pairs != walk_cooccurrence(Y, seed=1)).nnz
    monkeypatch.setenv("LABELSPACE_THREADS", "2")
    monkeypatch.setattr(deepwalk, "WALK_BLOCK", 17)
    assert (pairs != walk_cooccurrence(Y, seed=0)).nnz == 0


def test_the_order_of_a_rows_labels_does_not_matter():
    mixed = Y.copy()
    for start, stop in zip(Y.indptr, Y.indptr[1:], strict=False):
        mixed.indices[start:stop] = Y.indices[start:stop][::-1]
    mixed.has_sorted_indices = False
    assert (walk_cooccurrence(Y, seed=0) != walk_cooccurrence(mixed, seed=0)).nnz == 0


def test_many_labels_have_fewer_walks_each(monkeypatch):
    pairs_per_walk = sum(deepwalk.WALK_LENGTH - distance for distance in range(1, deepwalk.WINDOW + 1))
    n_labels = (walk_cooccurrence(Y, seed=0).getnnz(axis=1) > 0).sum()
    for max_pairs, n_walks in ((3 * pairs_per_walk * n_labels, 3), (0, 1)):
        monkeypatch.setattr(deepwalk, "MAX_PAIRS", max_pairs)
        assert walk_cooccurrence(Y, seed=0).sum() == 2 * n_walks * pairs_per_walk * n_labels


def test_a_document_of_very_many_labels_does_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(deepwalk, "MAX_PAIRS", 0)
    Y = sp.csr_matrix(np.ones((2, 4000), np.float32))
    assert walk_cooccurrence(Y, seed=0).nnz < 4000 * 2 * 85 + 1


def test_positive_pmi_is_that_of_the_formula():
    rng = np.random.default_rng(0)
    counts = np.triu(rng.integers(0, 4, (30, 30)) * (rng.random((30, 30)) < 0.3))
    counts = (counts + counts.T).astype(np.float32)
    counts[:, 7] = counts[7] = 0
    totals = counts.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.nan_to_num(np.maximum(np.log(counts * counts.sum() / np.outer(totals, totals)), 0.0))
    given = sp.csr_matrix(counts)
    pmi = positive_pmi(given)
    assert np.allclose(pmi.toarray(), expected, atol=1e-5)
    assert pmi.nnz == (expected > 0).sum()
    assert np.array_equal(given.toarray(), counts)
    assert positive_pmi(sp.csr_matrix((3, 3), dtype=np.float32)).nnz == 0
