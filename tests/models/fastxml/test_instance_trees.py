import numpy as np
import pytest

from labelspace.data.synthetic import planted
from labelspace.kernels.csr_arrays import CsrArrays, csr_arrays
from labelspace.kernels.dual_cd import SolverOptions
from labelspace.models.fastxml.kernels import Forest, Targets, find_leaf, grow_tree, partition_rows, round_weights

DATA = planted(n=300, d=60, l=12, seed=3)


def grow(X=DATA.X, max_leaf=10, max_kept=1000, seed=1, C=1.0):
    Y = DATA.Y
    discounts = 1 / np.log2(np.arange(2, Y.shape[1] + 2))
    targets = Targets(CsrArrays(np.ones(Y.nnz, np.float32), Y.indices, Y.indptr), np.ones(Y.shape[0]), discounts)
    return grow_tree(csr_arrays(X), X.shape[1], targets, SolverOptions(C, 0.01, 20), max_leaf, max_kept, seed)


def pointers(counts):
    return np.append(0, np.cumsum(counts))


def test_every_document_reaches_the_leaf_that_holds_it():
    child, features, weights, n_weights, documents, n_documents = grow()
    features, weights = np.concatenate(features), np.concatenate(weights)
    ends = pointers(n_documents)
    roots = np.zeros(1, np.int32)
    ids = (part.astype(np.uint16) for part in (features, documents))
    forest = Forest(roots, child, next(ids), weights, pointers(n_weights), next(ids), ends)
    assert sorted(documents) == list(range(300))
    assert weights.dtype == np.int8
    assert n_documents.max() <= 10
    assert (n_documents[child > 0] == 0).all()
    assert (n_weights[child == 0] == 0).all()
    assert sorted([*child[child > 0], *(child[child > 0] + 1)]) == list(range(1, len(child)))
    for row in range(0, 300, 7):
        x = DATA.X[row].toarray().ravel()
        leaf = find_leaf(x, roots[0], forest)
        assert row in documents[ends[leaf] : ends[leaf + 1]]


def test_a_split_brings_documents_with_like_labels_together():
    child, _, _, _, documents, n_documents = grow(max_leaf=60)
    ends, Y = pointers(n_documents), DATA.Y.toarray()
    spread = [
        Y[documents[first:last]].mean(axis=0) for first, last in zip(ends, ends[1:], strict=False) if last > first
    ]
    assert len(spread) > 2
    assert np.mean([mean.max() for mean in spread]) > 1.5 * Y.mean(axis=0).max()


def test_seeds_grow_other_trees_and_the_same_seed_the_same():
    assert np.array_equal(grow()[4], grow()[4])
    assert not np.array_equal(grow()[4], grow(seed=2)[4])


def test_documents_that_no_feature_tells_apart_are_one_leaf_of_which_some_are_kept():
    nothing = DATA.X[:, :0].tocsr()
    child, _, _, _, documents, n_documents = grow(nothing, max_kept=50)
    assert child.tolist() == [0]
    assert n_documents.tolist() == [50]
    assert len(set(documents)) == 50
    assert documents.max() > 100, "drawn from all"


@pytest.mark.parametrize(
    ("w", "expected"), [([0.5, -1.0, 0.001], [64, -127, 0]), ([0.0, 0.0], [0, 0]), ([1e-9, 0], [127, 0])]
)
def test_weights_are_rounded_to_the_range(w, expected):
    rounded = np.array(w)
    round_weights(rounded, 127)
    assert rounded.tolist() == expected


def test_positive_rows_come_first_in_order():
    rows = np.array([5, 3, 8, 1], np.int32)
    assert partition_rows(rows, np.array([False, True, False, True])) == 2
    assert rows.tolist() == [3, 1, 5, 8]
