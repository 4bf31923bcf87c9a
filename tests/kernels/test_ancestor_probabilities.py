import numpy as np
import pytest

from labelspace.kernels.ancestors import Ancestry, ancestor_probabilities
from tests.kernels.test_ancestors import random_hierarchy


def twin(labels, probabilities, hierarchy, k):
    """NumPy twin with a dense table, label after label from the deepest level up."""
    parents = hierarchy.parents.toarray() > 0
    out = np.full((len(labels), k), -1), np.full((len(labels), k), -np.inf)
    for row, (listed, given) in enumerate(zip(labels, probabilities, strict=True)):
        p, rank = np.full(len(parents), -1.0), np.full(len(parents), len(listed))
        p[listed[listed >= 0]], rank[listed[listed >= 0]] = given[listed >= 0], np.flatnonzero(listed >= 0)
        for label in np.argsort(-hierarchy.levels, kind="stable"):
            below = p[parents[:, label]]
            if (below >= 0).any():
                p[label] = max(p[label], 1 - np.prod(1 - below[below >= 0]))
        order = np.lexsort((np.arange(len(p)), rank, hierarchy.levels, -np.round(p, 12)))[:k]
        order = order[p[order] >= 0]
        out[0][row, : len(order)], out[1][row, : len(order)] = order, p[order]
    return out


@pytest.mark.parametrize("parents", [1, 3])
@pytest.mark.parametrize("k", [1, 4, 40])
def test_ancestors_have_the_probability_that_a_child_is_right(parents, k):
    rng = np.random.default_rng(parents + k)
    hierarchy = random_hierarchy(rng, 30, parents)
    n, n_ranks = 60, 8
    labels = np.stack([rng.permutation(30)[:n_ranks] for _ in range(n)]).astype(np.int32)
    labels[rng.random(labels.shape) < 0.2] = -1
    given = -np.sort(-rng.integers(0, 9, labels.shape) / 8, axis=1).astype(np.float32)  # many are equal
    out_labels, out = np.full((n, k), -1, np.int32), np.full((n, k), -np.inf, np.float32)
    edges, place = hierarchy.parents, np.zeros(30, np.int32)
    for start, stop in ((0, 17), (17, n)):
        ancestry = Ancestry(edges.indptr, edges.indices, hierarchy.levels)
        ancestor_probabilities(labels, given, ancestry, start, stop, place, out_labels, out)
    expected = twin(labels, given, hierarchy, k)
    assert np.array_equal(out_labels, expected[0])
    assert np.allclose(out[out_labels >= 0], expected[1][out_labels >= 0], atol=1e-6)
    assert not place.any()
