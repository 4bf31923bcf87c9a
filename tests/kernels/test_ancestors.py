import numpy as np
import pytest

from labelspace.kernels.ancestors import Ancestry, include_ancestors
from labelspace.types import Hierarchy


def random_hierarchy(rng, n_labels, parents):
    """A DAG: every label has up to ``parents`` parents of smaller ids."""
    edges = [
        (child, rng.integers(0, child)) for child in range(1, n_labels) for _ in range(rng.integers(0, parents + 1))
    ]
    return Hierarchy.from_edges(np.array(edges, np.int64).reshape(-1, 2), n_labels)


def twin(labels, scores, hierarchy, k):
    """NumPy twin with a dense table: the best score at or below each label, then a sort by four keys."""
    reach = hierarchy.ancestors.toarray() > 0
    np.fill_diagonal(reach, True)
    out = np.full((len(labels), k), -1), np.full((len(labels), k), -np.inf)
    for row, (listed, given) in enumerate(zip(labels, scores, strict=True)):
        table = np.full(reach.shape, -np.inf)
        for label, score in zip(listed[listed >= 0], given[listed >= 0], strict=True):
            table[label, reach[label]] = score
        best = table.max(axis=0)
        rank = np.full(len(best), len(listed))
        rank[listed[listed >= 0]] = np.flatnonzero(listed >= 0)
        order = np.lexsort((np.arange(len(best)), rank, hierarchy.levels, -best))[:k]
        order = order[best[order] > -np.inf]
        out[0][row, : len(order)], out[1][row, : len(order)] = order, best[order]
    return out


@pytest.mark.parametrize("parents", [1, 3])
@pytest.mark.parametrize("k", [1, 4, 40])
def test_rows_are_closed_like_a_dense_table(parents, k):
    rng = np.random.default_rng(parents + k)
    hierarchy = random_hierarchy(rng, 30, parents)
    n, n_ranks = 60, 8
    labels = np.stack([rng.permutation(30)[:n_ranks] for _ in range(n)]).astype(np.int32)
    labels[rng.random(labels.shape) < 0.2] = -1
    scores = -np.sort(-rng.integers(-3, 4, labels.shape), axis=1).astype(np.float32)  # many are equal
    out_labels, out_scores = np.full((n, k), -1, np.int32), np.full((n, k), -np.inf, np.float32)
    parents = hierarchy.parents
    for start, stop in ((0, 17), (17, n)):
        ancestry, scratch = Ancestry(parents.indptr, parents.indices, hierarchy.levels), np.zeros((2, 30), np.int32)
        include_ancestors(labels, scores, ancestry, start, stop, scratch, out_labels, out_scores)
    expected = twin(labels, scores, hierarchy, k)
    assert np.array_equal(out_labels, expected[0])
    assert np.array_equal(out_scores, expected[1])
