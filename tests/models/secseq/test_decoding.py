import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")

from labelspace.models.secseq.decoding import leaf_counts, leaf_histogram  # noqa: E402
from labelspace.types import TopK  # noqa: E402
from tests.models.secseq.decoder_twin import code_tree, random_labels  # noqa: E402


def test_label_shares_by_hand():
    """Labels 5, 6 and 7 share a code, which documents 0, 2 and 3 have."""
    Y = np.zeros((5, 9), np.float32)
    Y[0, [5, 6]], Y[1, 0], Y[2, [5]], Y[3, [5, 0]] = 1, 1, 1, 1
    Y = sp.csr_matrix(Y)
    before = Y.copy()
    of_documents, of_labels = (leaf_counts("shares", code_tree(), Y, of_documents) for of_documents in (True, False))
    assert of_documents == pytest.approx([1, 0, 0, 0, 0, 1, 1 / 3, 0, 0])
    assert of_labels == pytest.approx([1, 0, 0, 0, 0, 3 / 4, 1 / 4, 0, 0])
    assert of_documents.dtype == np.float32
    assert (Y != before).nnz == 0


def test_label_shares_are_at_most_1():
    Y = random_labels(30, 9)
    shares = leaf_counts("shares", code_tree(), Y, of_documents=True)
    assert (shares <= 1).all()
    assert shares[[0, 1, 2, 3, 4, 8]].tolist() == [1] * 6
    assert leaf_counts("shares", code_tree(), Y, of_documents=False)[5:8].sum() == pytest.approx(1)


def test_a_leaf_histogram_by_hand():
    tree = code_tree()
    one, shared, other = tree.leaf_of[0], tree.leaf_of[5], tree.leaf_of[4]
    leaves = np.array([[[one, shared, -1], [shared, -1, -1]], [[other, one, -1], [one, -1, -1]]])
    weights = np.array([[[0.5, 0.25, 9], [0.5, 9, 9]], [[0.125, 0.25, 9], [0.25, 9, 9]]], np.float32)
    shares = np.array([1, 1, 1, 1, 0.5, 0.5, 0.25, 0.0, 1], np.float32)
    histogram = leaf_histogram(leaves, weights, tree, shares)
    top = TopK.from_sparse(histogram, 4)
    assert top.labels.tolist() == [[0, 5, 6, -1], [0, 4, -1, -1]]
    assert top.scores[0, :3] == pytest.approx([0.5, 0.375, 0.1875])
    assert top.scores[1, :2] == pytest.approx([0.5, 0.0625])
    assert TopK.from_sparse(histogram, 1).labels.tolist() == [[0], [0]]


def test_the_best_of_rows_are_those_of_sorting():
    rng = np.random.default_rng(3)
    table = (rng.random((20, 15)) * (rng.random((20, 15)) < 0.4)).round(1).astype(np.float32)
    table[4] = 0
    scores = sp.csr_matrix(table)
    scores.data[::5] = 0  # explicit zeros
    scores = scores[:, rng.permutation(15)][:, np.arange(15)]  # unsorted columns
    table = scores.toarray()
    top = TopK.from_sparse(scores, 3)
    for row in range(20):
        best = [label for label in np.lexsort((np.arange(15), -table[row])) if table[row, label] > 0][:3]
        assert top.labels[row].tolist() == best + [-1] * (3 - len(best))
        assert top.scores[row, : len(best)].tolist() == table[row, best].tolist()
        assert np.isneginf(top.scores[row, len(best) :]).all()
