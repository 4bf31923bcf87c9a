import numpy as np
import scipy.sparse as sp

from labelspace.data.synthetic import planted
from labelspace.features.normalize import normalize_rows
from labelspace.labels.clustering import balanced_tree, pifa_embeddings


def test_a_label_is_the_sum_of_its_documents():
    data = planted(n=50, d=40, l=6, seed=1)
    Z = pifa_embeddings(data.X, data.Y).toarray()
    for label in range(6):
        total = data.X[data.Y[:, label].toarray().ravel() > 0].sum(axis=0).A1
        assert np.allclose(Z[label], total / np.linalg.norm(total), atol=1e-5)


def test_clusters_are_halved_until_they_are_small_enough():
    Z = normalize_rows(sp.random(101, 50, 0.2, "csr", np.float32, rng=np.random.default_rng(0)))
    order, depths = balanced_tree(Z, max_leaf=13, seed=3)
    assert sorted(order) == list(range(101))
    sizes = [np.diff(bounds) for bounds in depths]
    assert [len(s) for s in sizes] == [1, 2, 4, 8]
    assert all(s.max() - s.min() <= 1 for s in sizes)
    for above, below in zip(depths, depths[1:], strict=False):
        assert set(above) <= set(below), "clusters are nested"


def test_the_seed_decides_and_threads_do_not(monkeypatch):
    Z = normalize_rows(sp.random(200, 50, 0.2, "csr", np.float32, rng=np.random.default_rng(0)))
    monkeypatch.setenv("LABELSPACE_THREADS", "1")
    one = balanced_tree(Z, 10, seed=1)[0]
    monkeypatch.setenv("LABELSPACE_THREADS", "2")
    assert np.array_equal(one, balanced_tree(Z, 10, seed=1)[0])
    assert not np.array_equal(one, balanced_tree(Z, 10, seed=2)[0])


def test_relatives_of_a_planted_hierarchy_share_leaves():
    data = planted(n=6000, d=3000, l=111, labels_per_document=3, seed=2)
    order, depths = balanced_tree(pifa_embeddings(data.X, data.Y), max_leaf=14, seed=0)
    leaf = np.empty(111, int)
    for cluster, (start, stop) in enumerate(zip(depths[-1], depths[-1][1:], strict=False)):
        leaf[order[start:stop]] = cluster
    edges = data.labels.hierarchy.edges
    together = (leaf[edges[:, 0]] == leaf[edges[:, 1]]).mean()
    at_random = np.mean([(leaf == leaf[i]).mean() for i in range(111)])
    assert together > 2 * at_random
