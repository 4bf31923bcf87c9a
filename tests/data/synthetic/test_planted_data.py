import numpy as np
import pytest

from labelspace.data.synthetic import planted
from labelspace.errors import ParameterError


def test_the_same_seed_gives_the_same_data():
    one, two, other = planted(200, 300, 30, seed=1), planted(200, 300, 30, seed=1), planted(200, 300, 30, seed=2)
    assert (one.X != two.X).nnz == (one.Y != two.Y).nnz == 0
    assert (one.X != other.X).nnz > 0


def test_frequencies_follow_zipf():
    counts = np.sort(planted(50_000, 500, 200, labels_per_document=1, seed=3).Y.sum(axis=0).A1)[::-1]
    ranks = np.arange(1, 201)
    slope = np.polyfit(np.log(ranks[:100]), np.log(counts[:100]), 1)[0]
    assert slope == pytest.approx(-1.0, abs=0.1)


def test_labels_of_one_document_are_related_more_often_than_by_chance():
    data = planted(3000, 500, 100, seed=4)
    co = (data.Y.T @ data.Y).toarray()
    parent = data.labels.hierarchy.parents.toarray() > 0
    apart = ~parent & ~parent.T & ~np.eye(100, dtype=bool)
    assert co[parent].mean() > 5 * co[apart].mean()


def test_texts_hold_the_features_as_words():
    data = planted(20, 50, 10, texts=True, seed=5)
    for row, text in enumerate(data.texts):
        assert sorted({int(word[1:]) for word in text.split()}) == data.X[row].indices.tolist()


@pytest.mark.parametrize("sizes", [(1, 1, 1), (3, 1, 50), (1, 1000, 2)])
def test_any_size_will_do(sizes):
    n, d, n_labels = sizes
    data = planted(n, d, n_labels)
    assert data.X.shape == (n, d)
    assert data.Y.shape == (n, n_labels)
    assert (np.diff(data.Y.indptr) >= 1).all()
    assert set(data.Y.data) == {1.0}


def test_nothing_is_not_a_size():
    with pytest.raises(ParameterError, match="l must be at least 1, but is 0"):
        planted(10, 10, 0)


@pytest.mark.slow
def test_a_million_labels_are_no_trouble():
    data = planted(100_000, 200_000, 1_000_000, seed=1)
    assert data.Y.shape == (100_000, 1_000_000)
    assert data.labels.hierarchy.levels.max() == 6
