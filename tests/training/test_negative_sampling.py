import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.training.negative_sampling import choose, seen_labels

LABELS = np.array([0, 1, 3, 4, 6, 7, 9, 10, 12, 15], np.int32)  # some have no document


@pytest.fixture(name="true")
def some_documents():
    Y = np.zeros((4, 17), np.float32)
    Y[0, [3, 9]], Y[1, [9]], Y[3, [0, 3, 15]] = 1, 1, 1
    return sp.csr_matrix(Y)


@pytest.mark.parametrize("negatives", [1, 3, 500])
@pytest.mark.parametrize("near", [None, np.array([[6, -1], [7, 9], [-1, -1], [6, 3]], np.int32)])
def test_the_batch_s_own_labels_are_chosen_and_none_twice(true, negatives, near):
    for seed in range(30):
        chosen = choose(true, LABELS, negatives, np.random.default_rng(seed), near)
        assert len(set(chosen.ids)) == len(chosen.ids)
        assert np.isin(chosen.ids, LABELS).all()
        assert np.array_equal(chosen.ids[chosen.columns], true.indices)
        assert np.array_equal(chosen.ends, true.indptr)
        sure = [0, 3, 9, 15] if near is None else [0, 3, 6, 7, 9, 15]
        assert chosen.ids[: chosen.n_sure].tolist() == sure
        assert (chosen.weights[: chosen.n_sure] == 1).all()
        assert not chosen.every
        drawn = chosen.weights[chosen.n_sure :]
        assert len(drawn) <= negatives
        assert not len(drawn) or np.isclose(drawn.sum(), len(LABELS) - len(sure)), "they stand for those left out"
        assert chosen.columns.dtype == chosen.ids.dtype == np.int32


def test_sums_over_the_chosen_are_those_over_all_on_average(true):
    values = np.random.default_rng(1).random(17)
    sums = []
    for seed in range(3000):
        chosen = choose(true, LABELS, 12, np.random.default_rng(seed))  # some other label is almost always drawn
        sums.append(chosen.weights @ values[chosen.ids])
    error = np.std(sums) / np.sqrt(len(sums))
    assert abs(np.mean(sums) - values[LABELS].sum()) < 4 * error + 0.01
    assert np.std(sums) > 0.01


def test_documents_without_labels_learn_on_what_is_drawn():
    chosen = choose(sp.csr_matrix((3, 17), dtype=np.float32), LABELS, 4, np.random.default_rng(0))
    assert chosen.n_sure == len(chosen.columns) == 0
    assert 1 <= len(chosen.ids) <= 4
    assert np.isclose(chosen.weights.sum(), len(LABELS))


def test_where_the_batch_has_every_label_nothing_is_drawn():
    Y = np.zeros((1, 17), np.float32)
    Y[0, LABELS] = 1
    chosen = choose(sp.csr_matrix(Y), LABELS, 4, np.random.default_rng(0))
    assert np.array_equal(chosen.ids, LABELS)
    assert (chosen.weights == 1).all()


def test_labels_are_seen_where_a_document_carries_them(true):
    seen = seen_labels(true)
    assert seen.tolist() == [0, 3, 9, 15]
    assert seen.dtype == np.int32
    assert len(seen_labels(true[2])) == 0
