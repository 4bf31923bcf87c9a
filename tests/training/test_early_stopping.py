import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.errors import DataError
from labelspace.training.early_stopping import (
    VALIDATION_K,
    early_stopping_rows,
    hold_out_rows,
    r_precision,
    should_stop,
)
from labelspace.types import TopK


def some_labels(n, seed=0):
    return sp.csr_matrix((np.random.default_rng(seed).random((n, 6)) < 0.4).astype(np.float32))


@pytest.mark.parametrize(
    ("n", "share", "at_most", "expected"), [(200, 0.05, 1000, 10), (200, 0.5, 30, 30), (31, 0.1, 9, 3)]
)
def test_documents_are_split_at_random(n, share, at_most, expected):
    Y = some_labels(n)
    train, held_out = hold_out_rows(Y, share, at_most, random_state=4)
    assert len(held_out) == expected
    assert sorted([*train, *held_out]) == list(range(n))
    assert (np.diff(train) > 0).all()
    assert (np.diff(held_out) > 0).all()
    assert held_out.tolist() != list(range(expected))
    again = zip(hold_out_rows(Y, share, at_most, 4), (train, held_out), strict=True)
    assert all(np.array_equal(*pair) for pair in again)
    assert not np.array_equal(hold_out_rows(Y, share, at_most, 5)[1], held_out)


def test_nothing_is_held_out_where_either_side_would_have_no_label():
    assert hold_out_rows(some_labels(9), 0.05, 100, 0) is None, "not one document"
    assert hold_out_rows(some_labels(1), 0.5, 100, 0) is None
    one = sp.csr_matrix(([1.0], ([7], [2])), shape=(40, 3))
    assert all(hold_out_rows(one, 0.2, 100, seed) is None for seed in range(20)), "the only label is on one side"


def test_the_only_document_of_a_label_is_not_held_out():
    Y = sp.csr_matrix(np.concatenate([np.eye(40), np.ones((160, 40))], axis=0, dtype=np.float32))
    Y[160:, :30] = 0
    Y.eliminate_zeros()
    for seed in range(5):
        train, held_out = hold_out_rows(Y, 0.5, 1000, seed)
        assert len(held_out) > 20
        assert (Y[train].sum(axis=0) > 0).all()


@pytest.mark.parametrize(
    ("scores", "patience", "expected"),
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
def test_training_stops_when_the_best_epoch_is_long_ago(scores, patience, expected):
    assert should_stop(scores, patience) is expected


def test_r_precision_is_hits_over_the_hits_that_are_possible():
    Y = np.zeros((4, 9), np.float32)
    Y[0, [1, 2]], Y[1, :7], Y[3, 8] = 1, 1, 1  # the third has none
    labels = np.array([[1, 5, 6, 7, 8], [0, 1, 2, 8, 7], [0, 1, 2, 3, 4], [-1, -1, -1, -1, -1]], np.int32)
    top = TopK(labels, np.where(labels < 0, -np.inf, 1).astype(np.float32))
    assert VALIDATION_K == 5
    assert np.isclose(r_precision(top, sp.csr_matrix(Y)), (1 / 2 + 3 / 5 + 0) / 3)


def test_r_precision_of_documents_without_labels_is_0():
    top = TopK(np.zeros((2, 5), np.int32), np.ones((2, 5), np.float32))
    assert r_precision(top, sp.csr_matrix((2, 9), dtype=np.float32)) == 0


def test_some_training_documents_are_held_out_for_early_stopping():
    Y = sp.csr_matrix((np.random.default_rng(0).random((200, 5)) < 0.5).astype(np.float32))
    train, held_out = early_stopping_rows(Y, random_state=1)
    assert len(held_out) == 20
    assert sorted([*train, *held_out]) == list(range(200))
    assert not np.array_equal(held_out, early_stopping_rows(Y, random_state=2)[1])
    with pytest.raises(DataError, match="early stopping needs some documents .* but there are 3 in all; give validat"):
        early_stopping_rows(Y[:3], random_state=0)
