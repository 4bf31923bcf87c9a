import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from labelspace.errors import DataError, ModelError
from labelspace.training.epochs import (
    MIN_BATCHES,
    VALIDATION_K,
    batch_schedule,
    early_stopping_rows,
    hold_out_rows,
    r_precision,
    run_epochs,
    should_stop,
)
from labelspace.types import TopK

FINGERPRINT = {"params": {"learning_rate": 0.1}, "data": [1, 2]}


@given(st.integers(1, 10**7), st.integers(1, 5000), st.integers(1, 10**5))
def test_batch_size_and_epochs_are_within_their_bounds_or_as_given(n, usual, steps):
    size, epochs = batch_schedule(n, None, None, steps, (3, 9), usual)
    assert 1 <= size <= usual
    assert 3 <= epochs <= 9
    assert -(-n // size) >= min(MIN_BATCHES, n) / 2, "an epoch has some batches"
    assert batch_schedule(n, usual, 4, steps, (3, 9)) == (min(usual, n), 4), "a batch size that is given is used"
    assert batch_schedule(n, None, 100, steps, (3, 9), usual) == (size, 100), (
        "given epochs need not be within the bounds"
    )
    if 3 < epochs < 9:
        assert abs(epochs * -(-n // size) - steps) <= -(-n // size) / 2


class Net:
    """Arrays that each epoch changes differently, in three steps."""

    def __init__(self):
        self.n_steps, self.value, self.memory = 0, np.ones(4), np.zeros(2, np.float32)
        self.epochs = []

    def arrays(self):
        return {"value": self.value, "memory": self.memory}

    def epoch(self, number):
        rng = np.random.default_rng([9, number])
        for _ in range(3):
            self.n_steps += 1
            self.value += rng.random(4) / self.n_steps
            self.memory *= 0.5
            self.memory += self.value[:2]
        self.epochs.append(number)

    def run(
        self, epochs=6, scores=None, patience=None, fingerprint=FINGERPRINT, folder=None, name="checkpoint", stop=None
    ):
        """``scores`` are those after each epoch; the training is interrupted in epoch ``stop``."""

        def epoch(number):
            if number == stop:
                self.value += 99  # half an epoch
                raise KeyboardInterrupt
            self.epoch(number)

        validate = None if scores is None else lambda: scores[self.epochs[-1]]
        return run_epochs(self, epochs, epoch, validate, patience, fingerprint, folder, name)


def same(one, other):
    return all(np.array_equal(one.arrays()[key], other.arrays()[key]) for key in one.arrays())


def after(epochs):
    net = Net()
    for epoch in range(epochs):
        net.epoch(epoch)
    return net


def test_all_epochs_are_run_in_order():
    net = Net()
    assert net.run() == []
    assert net.epochs == list(range(6))
    assert same(net, after(6))
    assert net.n_steps == 18


@pytest.mark.parametrize("scores", [None, [0.1, 0.4, 0.3, 0.2, 0.5, 0.1]])
@pytest.mark.parametrize("stop", range(6))
def test_a_training_that_was_interrupted_anywhere_ends_with_the_same_arrays(tmp_path, stop, scores):
    uninterrupted = Net()
    expected = uninterrupted.run(scores=scores)
    with pytest.raises(KeyboardInterrupt):
        Net().run(scores=scores, folder=tmp_path, stop=stop)
    net = Net()
    assert net.run(scores=scores, folder=tmp_path) == expected
    assert net.epochs == list(range(stop, 6)), "only the remaining epochs"
    assert net.n_steps == 18
    assert same(net, uninterrupted)
    again = Net()
    assert again.run(scores=scores, folder=tmp_path) == expected
    assert again.epochs == []
    assert same(again, uninterrupted), "nothing remains"


@pytest.mark.parametrize("folder", [True, False])
@pytest.mark.parametrize(
    ("scores", "patience", "epochs", "best"),
    [
        ([0.1, 0.5, 0.4, 0.3, 0.9, 0.9], 2, 4, 1),
        ([0.1, 0.5, 0.4, 0.6, 0.5, 0.6], 2, 6, 3),  # a tie is no improvement
        ([0.1, 0.5, 0.4, 0.3, 0.9, 0.9], 3, 6, 4),
        ([0.0] * 6, 1, 2, 0),
        ([0.1, 0.5, 0.4, 0.3, 0.2, 0.1], None, 6, 1),
    ],
)
def test_patience_stops_the_training_and_the_best_epoch_is_restored(tmp_path, scores, patience, epochs, best, folder):
    net = Net()
    assert net.run(scores=scores, patience=patience, folder=tmp_path if folder else None) == scores[:epochs]
    assert net.epochs == list(range(epochs))
    assert same(net, after(best + 1))
    assert bool(list(tmp_path.iterdir())) == folder, "no file remains where no folder was given"


def test_patience_counts_on_after_an_interruption(tmp_path):
    scores = [0.1, 0.5, 0.4, 0.3, 0.9, 0.9]
    with pytest.raises(KeyboardInterrupt):
        Net().run(scores=scores, patience=2, folder=tmp_path, stop=3)
    net = Net()
    assert net.run(scores=scores, patience=2, folder=tmp_path) == scores[:4]
    assert net.epochs == [3]
    assert same(net, after(2))


def test_trainings_of_two_names_are_saved_side_by_side(tmp_path):
    one, other = Net(), Net()
    one.run(scores=[0.5, 0.1, 0.1], epochs=3, folder=tmp_path, name="tree-0")
    other.run(scores=[0.1, 0.1, 0.5], epochs=3, folder=tmp_path, name="tree-1")
    assert sorted(path.stem for path in tmp_path.iterdir()) == ["tree-0", "tree-0-best", "tree-1", "tree-1-best"]
    assert same(one, after(1))
    assert same(other, after(3))


def test_the_checkpoint_of_another_training_is_refused(tmp_path):
    Net().run(folder=tmp_path)
    with pytest.raises(ModelError, match="must be of the same data and parameters"):
        Net().run(folder=tmp_path, fingerprint={**FINGERPRINT, "data": [1, 3]})


def test_a_best_epoch_that_is_not_there_any_more_is_said(tmp_path):
    scores = [0.1, 0.5, 0.2]
    Net().run(scores=scores, epochs=3, folder=tmp_path)
    (tmp_path / "best.safetensors").unlink()
    with pytest.raises(ModelError, match=r"of the best epoch of this training, but is not; delete it and checkpoint"):
        Net().run(scores=scores, epochs=3, folder=tmp_path)
    (tmp_path / "best.safetensors").write_bytes((tmp_path / "checkpoint.safetensors").read_bytes())
    with pytest.raises(ModelError, match="of the best epoch"):
        Net().run(scores=scores, epochs=3, folder=tmp_path)


def test_two_trainings_in_one_folder_are_refused_in_the_first_epoch(tmp_path):
    def train_inside(number):
        with pytest.raises(ModelError, match="one training at a time"):
            Net().run(folder=tmp_path)

    run_epochs(Net(), 1, train_inside, None, None, FINGERPRINT, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.safetensors"]


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
