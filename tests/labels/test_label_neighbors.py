import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.labels import document_neighbors as module
from labelspace.labels.document_neighbors import label_neighbors


def brute_force(Y, n_neighbors):
    """The cosines of all pairs, sorted; those equal up to rounding by row."""
    norms = np.maximum(np.linalg.norm(Y, axis=1), 1)
    graph = np.zeros((len(Y), len(Y)))
    for j, row in enumerate(Y):
        cosines = Y @ row / (norms * norms[j])
        cosines[j] = 0
        order = np.lexsort([np.arange(len(Y)), -cosines.round(5)])[:n_neighbors]
        graph[j, order[cosines[order] > 0]] = 1
    return graph


@pytest.mark.parametrize("n_neighbors", [1, 3, 10, 1000])
@pytest.mark.parametrize(("n_labels", "share"), [(30, 0.2), (5, 0.3), (60, 0.02)])
def test_the_neighbors_are_those_of_brute_force(n_neighbors, n_labels, share, monkeypatch):
    monkeypatch.setattr(module, "ROW_BLOCK", 7)
    Y = (np.random.default_rng(0).random((80, n_labels)) < share).astype(np.float32)
    assert Y.any(axis=1).sum() > 40
    graph = label_neighbors(sp.csr_matrix(Y), n_neighbors)
    assert graph.has_sorted_indices
    assert not graph.diagonal().any()
    expected, norms = brute_force(Y, n_neighbors), np.maximum(np.linalg.norm(Y, axis=1), 1)
    cosines = np.round(Y @ Y.T / np.outer(norms, norms), 5)
    for ours, theirs, row in zip(graph.toarray(), expected, cosines, strict=True):
        assert sorted(row[ours > 0]) == sorted(row[theirs > 0]), "as similar; other ones where rounding decides"
    assert (graph.toarray() == expected).all(axis=1).mean() > 0.9


def test_documents_with_equal_labels_are_neighbors_by_their_row_and_never_their_own():
    graph = label_neighbors(sp.csr_matrix(np.ones((6, 1), np.float32)), 2)
    neighbors = [row.indices.tolist() for row in graph]
    assert neighbors == [[1, 2], [0, 2], [0, 1], [0, 1], [0, 1], [0, 1]]


def test_documents_that_share_no_label_have_no_neighbor():
    assert label_neighbors(sp.csr_matrix(np.eye(4, dtype=np.float32)), 3).nnz == 0
    assert label_neighbors(sp.csr_matrix((3, 2), dtype=np.float32), 3).nnz == 0
