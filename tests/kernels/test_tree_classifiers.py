import numpy as np
import scipy.sparse as sp

from labelspace.data.synthetic import planted
from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.dual_cd import SolverOptions, solve_squared_hinge, squared_norms
from labelspace.kernels.lanes import LANES
from labelspace.kernels.tree_classifiers import (
    ClassifierOptions,
    NodeDocuments,
    NodeScratch,
    compact_rows,
    count_entries,
    node_training_set,
    train_children,
)


def test_compact_rows_have_the_same_values_in_new_columns():
    X = planted(n=60, d=80, l=5, seed=1).X
    rows, new_column = np.array([5, 9, 33], np.int32), np.full(80, -1, np.int32)
    values, columns, ends, column_ids = compact_rows(csr_arrays(X), rows, new_column)
    assert ends.dtype == np.int64, "there may be more than 2**31 entries"
    small = sp.csr_matrix((values, columns, ends), shape=(3, len(column_ids))).toarray()
    assert np.array_equal(small, X[rows].toarray()[:, column_ids])
    assert len(set(column_ids)) == len(column_ids) == len(np.unique(X[rows].indices))
    assert (new_column == -1).all()


def scratch_of(X, rows):
    """What ``train_children`` copies the rows into."""
    n_entries = count_entries(X.indptr, rows)
    assert n_entries == X[rows].nnz
    new_column = np.full(X.shape[1], -1, np.int32)
    return NodeScratch(new_column, np.empty(n_entries, np.float32), np.empty(n_entries, np.int32))


def test_children_are_trained_like_single_classifiers():
    data = planted(n=300, d=200, l=12, seed=2)
    rows = np.arange(0, 300, 2, dtype=np.int32)
    positive_rows = [np.flatnonzero(data.Y[rows][:, child].toarray().ravel()) for child in range(3)]
    ends = np.cumsum([0, *map(len, positive_rows)]).astype(np.int64)
    documents = NodeDocuments(rows, np.concatenate(positive_rows).astype(np.int32), ends)
    options = ClassifierOptions(False, 1.0, SolverOptions(1.0, 1e-5, 500), 0.01, np.ones(300))
    features, weights, stops, biases = train_children(
        csr_arrays(data.X), documents, options, 7, scratch_of(data.X, rows)
    )
    X = data.X[rows]
    norms = squared_norms(X.data, X.indptr, 1.0)
    for child in range(3):
        signs = np.zeros((len(rows), LANES), np.float32)
        signs[:, 0] = -1
        signs[positive_rows[child], 0] = 1
        w, scratch = np.zeros((201, LANES), np.float32), (np.empty_like(signs), np.empty(len(rows), np.int32))
        options = SolverOptions(1.0, 1e-5, 500)
        solve_squared_hinge(csr_arrays(X), norms, np.ones(len(rows)), signs, 1.0, options, 7 + child, w, *scratch)
        w = w[:, 0]
        own = np.zeros(200, np.float32)
        own[features[stops[child] : stops[child + 1]]] = weights[stops[child] : stops[child + 1]]
        expected = np.where(np.abs(w[:-1]) >= 0.01, w[:-1], 0)
        assert np.allclose(own, expected, atol=2e-3)
        assert np.isclose(biases[child], w[-1], atol=2e-3)


def test_the_training_set_of_a_node_is_the_union_of_its_labels_documents():
    rng = np.random.default_rng(8)
    Y = sp.random(50, 12, 0.1, "csc", np.float32, rng=rng)
    cuts, row_index = np.array([2, 3, 7, 9]), np.full(50, -1, np.int32)
    negatives = np.array([4, 44, 4], np.int32)
    dense = Y.toarray() > 0
    for all_rows in (False, True):
        rows, positives, ends = node_training_set(Y.indices, Y.indptr, cuts, all_rows, negatives, row_index)
        expected = np.union1d(np.flatnonzero(dense[:, 2:9].any(axis=1)), negatives)
        assert rows.tolist() == (list(range(50)) if all_rows else expected.tolist())
        for child in range(3):
            own = np.sort(rows[positives[ends[child] : ends[child + 1]]])
            assert own.tolist() == np.flatnonzero(dense[:, cuts[child] : cuts[child + 1]].any(axis=1)).tolist()
        assert (row_index == -1).all()
