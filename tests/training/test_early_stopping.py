import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from labelspace.training.early_stopping import BATCHES, PLACES, batch_schedule, hold_out_rows, r_precision, stops
from labelspace.types import TopK


@given(st.integers(1, 10**7), st.integers(1, 5000), st.integers(1, 10**5))
def test_portions_keep_within_their_bounds(n, batch, steps):
    size, epochs = batch_schedule(n, batch, None, steps, (3, 9))
    assert 1 <= size <= batch
    assert 3 <= epochs <= 9
    assert -(-n // size) >= min(BATCHES, n) / 2, "an epoch has some batches"
    assert batch_schedule(n, batch, 4, steps, (3, 9)) == (size, 4)
    assert batch_schedule(n, batch, 100, steps, (3, 9)) == (size, 100), "given, they need not keep to the bounds"
    if 3 < epochs < 9:
        assert abs(epochs * -(-n // size) - steps) <= -(-n // size) / 2


def some_labels(n, seed=0):
    return sp.csr_matrix((np.random.default_rng(seed).random((n, 6)) < 0.4).astype(np.float32))


@pytest.mark.parametrize(("n", "share", "most", "held"), [(200, 0.05, 1000, 10), (200, 0.5, 30, 30), (31, 0.1, 9, 3)])
def test_documents_are_parted_once_each_by_chance(n, share, most, held):
    Y = some_labels(n)
    rest, out = hold_out_rows(Y, share, most, seed=4)
    assert len(out) == held
    assert sorted([*rest, *out]) == list(range(n))
    assert (np.diff(rest) > 0).all()
    assert (np.diff(out) > 0).all()
    assert out.tolist() != list(range(held))
    assert all(np.array_equal(*both) for both in zip(hold_out_rows(Y, share, most, 4), (rest, out), strict=True))
    assert not np.array_equal(hold_out_rows(Y, share, most, 5)[1], out)


def test_nothing_is_held_out_where_a_part_would_have_no_label():
    assert hold_out_rows(some_labels(9), 0.05, 100, 0) is None, "not one document"
    assert hold_out_rows(some_labels(1), 0.5, 100, 0) is None
    one = sp.csr_matrix(([1.0], ([7], [2])), shape=(40, 3))
    assert all(hold_out_rows(one, 0.2, 100, seed) is None for seed in range(20)), "the only label is on either side"


def test_the_only_document_of_a_label_is_not_held_out():
    Y = sp.csr_matrix(np.concatenate([np.eye(40), np.ones((160, 40))], axis=0, dtype=np.float32))
    Y[160:, :30] = 0
    Y.eliminate_zeros()
    for seed in range(5):
        rest, held = hold_out_rows(Y, 0.5, 1000, seed)
        assert len(held) > 20
        assert (Y[rest].sum(axis=0) > 0).all()


@pytest.mark.parametrize(
    ("accuracies", "patience", "expected"),
    [
        ([], 1, False),
        ([0.0], 1, False),
        ([0.0, 0.0], 1, True),  # as good is no better
        ([0.5, 0.4, 0.6], 2, False),
        ([0.5, 0.4, 0.4], 2, True),
        ([0.5, 0.4, 0.4, 0.4], 4, False),
        ([0.5, 0.6, 0.7, 0.8], 1, False),
        ([0.5] + [0.1] * 50, None, False),
    ],
)
def test_training_stops_when_the_best_epoch_is_long_ago(accuracies, patience, expected):
    assert stops(accuracies, patience) is expected


def test_accuracy_is_the_share_of_right_labels_of_those_there_could_be():
    Y = np.zeros((4, 9), np.float32)
    Y[0, [1, 2]], Y[1, :7], Y[3, 8] = 1, 1, 1  # the third has none
    labels = np.array([[1, 5, 6, 7, 8], [0, 1, 2, 8, 7], [0, 1, 2, 3, 4], [-1, -1, -1, -1, -1]], np.int32)
    top = TopK(labels, np.where(labels < 0, -np.inf, 1).astype(np.float32))
    assert PLACES == 5
    assert np.isclose(r_precision(top, sp.csr_matrix(Y)), (1 / 2 + 3 / 5 + 0) / 3)


def test_accuracy_on_documents_without_labels_is_0_and_quiet():
    top = TopK(np.zeros((2, 5), np.int32), np.ones((2, 5), np.float32))
    assert r_precision(top, sp.csr_matrix((2, 9), dtype=np.float32)) == 0
