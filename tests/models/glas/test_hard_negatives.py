import numpy as np
import pytest

from labelspace.models.glas import hard_negatives
from labelspace.models.glas.hard_negatives import LabelLists, mine_hard_negatives
from labelspace.training.losses import SampledLabels
from tests.models.glas.cases import after_one_epoch, quick, small_data


@pytest.fixture(scope="module")
def small():
    return small_data()


def test_hard_negatives_are_the_best_scored_labels_and_have_weight_1(small, monkeypatch):
    monkeypatch.setattr(hard_negatives, "SEARCHED_LISTS", 1000)  # every list
    net, data = after_one_epoch(quick(all_labels=False, n_negatives=2), small)
    lists = LabelLists(data.labels, net.label_embeddings.shape[1])
    nearest = mine_hard_negatives(net, lists, data.X, 4, 0, lambda *step: None)
    no_positives = np.zeros(0, np.int32), np.zeros(1, np.int32)
    scores = net.scores(net.encoder.embed(data.X), SampledLabels(np.arange(30, dtype=np.int32), *no_positives))
    best = np.argsort(-scores, axis=1)[:, :4]
    recall = np.mean([len(set(one) & set(other)) for one, other in zip(nearest, best, strict=True)]) / 4
    assert recall == 1
    rows = np.array([1, 9], np.int32)
    sampled = data.sample_labels(data.Y[rows], 2, nearest[rows], np.random.default_rng(0))
    assert np.isin(nearest[rows], sampled.ids[: sampled.n_fixed]).all()
    assert (sampled.weights[: sampled.n_fixed] == 1).all()
    assert len(set(sampled.ids)) == len(sampled.ids)
    assert np.array_equal(sampled.ids[sampled.columns], data.Y[rows].indices)


def best_labels(queries, table, k):
    return np.sort(np.argsort(-(queries @ table.T), axis=1)[:, :k], axis=1)


def listed(table, labels):
    lists = LabelLists(labels, table.shape[1])
    lists.update(table, seed=0)
    return lists


@pytest.fixture
def topics():
    """Embeddings of 2,000 labels around 40 centers."""
    rng = np.random.default_rng(0)
    table = np.repeat(rng.standard_normal((40, 16)), 50, axis=0) + 0.3 * rng.standard_normal((2000, 16))
    return table.astype(np.float32)


def share_found(lists, table, labels):
    queries = table[::20]
    best = labels[best_labels(queries, table[labels], 5)]
    found = lists.search(table, queries, 5)
    return np.mean([len(set(one) & set(other)) for one, other in zip(found, best, strict=True)]) / 5


def test_most_of_the_best_labels_are_in_the_lists_that_are_read(topics, monkeypatch):
    labels = np.setdiff1d(np.arange(2000, dtype=np.int32), [7, 1000])  # these two are in no list
    assert share_found(listed(topics, labels), topics, labels) > 0.9
    monkeypatch.setattr(hard_negatives, "SEARCHED_LISTS", 1000)
    for threads in ("1", "3"):
        monkeypatch.setenv("LABELSPACE_THREADS", threads)
        monkeypatch.setattr(hard_negatives, "LIST_BLOCK", 5)
        assert share_found(listed(topics, labels), topics, labels) == 1


def test_labels_that_moved_are_found_without_new_centers(topics, monkeypatch):
    rng, labels = np.random.default_rng(1), np.arange(2000, dtype=np.int32)
    lists = listed(topics, labels)
    drift = rng.standard_normal((40, 16)).repeat(50, axis=0)
    monkeypatch.setattr(hard_negatives, "spherical_kmeans", None)  # not called again
    for step in range(1, 5):
        moved = (topics + 0.25 * step * drift + 0.1 * rng.standard_normal(topics.shape)).astype(np.float32)
        before = lists.list_of.copy()
        lists.update(moved, seed=0)
        assert (lists.list_of != before).any()
        assert share_found(lists, moved, labels) > 0.9


def test_lists_do_not_depend_on_threads(topics, monkeypatch):
    labels, found = np.arange(2000, dtype=np.int32), []
    for threads in ("1", "3"):
        monkeypatch.setenv("LABELSPACE_THREADS", threads)
        lists = listed(topics, labels)
        lists.update(topics[::-1].copy(), seed=0)
        found.append([array.tobytes() for array in lists.arrays().values()])
    assert found[0] == found[1]


def test_where_there_are_fewer_labels_than_asked_for_the_rest_is_none():
    table = np.eye(4, dtype=np.float32)
    found = listed(table, np.array([1, 3], np.int32)).search(table, np.ones((2, 4), np.float32), 3)
    assert np.sort(found, axis=1).tolist() == [[-1, 1, 3]] * 2


def test_hard_negatives_are_mined_from_the_second_epoch_on(small, monkeypatch):
    updated = []

    class Spy(LabelLists):
        def update(self, embeddings, seed):
            updated.append((embeddings.shape, bool(self.centers.any())))
            super().update(embeddings, seed)

    monkeypatch.setattr("labelspace.models.glas.training.LabelLists", Spy)
    quick(all_labels=False, epochs=3).fit(small.X, small.Y)
    assert updated == [((30, 17), False), ((30, 17), True)]
    quick(all_labels=False, epochs=2, n_hard_negatives=0).fit(small.X, small.Y)
    quick(all_labels=True, epochs=2).fit(small.X, small.Y)
    assert len(updated) == 2
