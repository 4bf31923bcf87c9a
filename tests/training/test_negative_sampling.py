import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.training.negative_sampling import sample_labels, seen_labels

LABELS = np.array([0, 1, 3, 4, 6, 7, 9, 10, 12, 15], np.int32)  # some have no document


@pytest.fixture(name="Y")
def some_documents():
    Y = np.zeros((4, 17), np.float32)
    Y[0, [3, 9]], Y[1, [9]], Y[3, [0, 3, 15]] = 1, 1, 1
    return sp.csr_matrix(Y)


@pytest.mark.parametrize("n_negatives", [1, 3, 500])
@pytest.mark.parametrize("hard_negatives", [None, np.array([[6, -1], [7, 9], [-1, -1], [6, 3]], np.int32)])
def test_the_positives_of_a_batch_are_included_and_no_label_is_repeated(Y, n_negatives, hard_negatives):
    for seed in range(30):
        sampled = sample_labels(Y, LABELS, n_negatives, np.random.default_rng(seed), hard_negatives)
        assert len(set(sampled.ids)) == len(sampled.ids)
        assert np.isin(sampled.ids, LABELS).all()
        assert np.array_equal(sampled.ids[sampled.columns], Y.indices)
        assert np.array_equal(sampled.indptr, Y.indptr)
        fixed = [0, 3, 9, 15] if hard_negatives is None else [0, 3, 6, 7, 9, 15]
        assert sampled.ids[: sampled.n_fixed].tolist() == fixed
        assert (sampled.weights[: sampled.n_fixed] == 1).all()
        assert not sampled.covers_all
        weights = sampled.weights[sampled.n_fixed :]
        assert len(weights) <= n_negatives
        assert not len(weights) or np.isclose(weights.sum(), len(LABELS) - len(fixed)), "they stand for those left out"
        assert sampled.columns.dtype == sampled.ids.dtype == np.int32


def test_weighted_sums_over_sampled_labels_are_those_over_all_on_average(Y):
    values = np.random.default_rng(1).random(17)
    sums = []
    for seed in range(3000):
        sampled = sample_labels(Y, LABELS, 12, np.random.default_rng(seed))  # almost always samples another label
        sums.append(sampled.weights @ values[sampled.ids])
    error = np.std(sums) / np.sqrt(len(sums))
    assert abs(np.mean(sums) - values[LABELS].sum()) < 4 * error + 0.01
    assert np.std(sums) > 0.01


def test_documents_without_labels_are_trained_on_sampled_labels():
    sampled = sample_labels(sp.csr_matrix((3, 17), dtype=np.float32), LABELS, 4, np.random.default_rng(0))
    assert sampled.n_fixed == len(sampled.columns) == 0
    assert 1 <= len(sampled.ids) <= 4
    assert np.isclose(sampled.weights.sum(), len(LABELS))


def test_where_the_batch_has_every_label_nothing_is_sampled():
    Y = np.zeros((1, 17), np.float32)
    Y[0, LABELS] = 1
    sampled = sample_labels(sp.csr_matrix(Y), LABELS, 4, np.random.default_rng(0))
    assert np.array_equal(sampled.ids, LABELS)
    assert (sampled.weights == 1).all()


def test_labels_are_seen_where_a_document_has_them(Y):
    seen = seen_labels(Y)
    assert seen.tolist() == [0, 3, 9, 15]
    assert seen.dtype == np.int32
    assert len(seen_labels(Y[2])) == 0
