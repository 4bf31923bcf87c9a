import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.errors import DataError, ModelError
from labelspace.training.epochs import early_stopping_rows, follow

WHAT = {"params": {"rate": 0.1}, "data": [1, 2]}


class Net:
    """Arrays that each epoch changes in a way of its own, in steps of three."""

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

    def run(self, epochs=6, accuracies=None, patience=None, what=WHAT, folder=None, name="checkpoint", stop=None):
        """``accuracies`` are those after each epoch, whoever asks; ``stop`` is an epoch to be cut off in."""

        def epoch(number):
            if number == stop:
                self.value += 99  # half an epoch
                raise KeyboardInterrupt
            self.epoch(number)

        accuracy = None if accuracies is None else lambda: accuracies[self.epochs[-1]]
        return follow(self, epochs, epoch, accuracy, patience, what, folder, name)


def same(one, other):
    return all(np.array_equal(one.arrays()[key], other.arrays()[key]) for key in one.arrays())


def after(epochs):
    net = Net()
    for epoch in range(epochs):
        net.epoch(epoch)
    return net


def test_all_epochs_are_gone_through_in_their_order():
    net = Net()
    assert net.run() == []
    assert net.epochs == list(range(6))
    assert same(net, after(6))
    assert net.n_steps == 18


@pytest.mark.parametrize("accuracies", [None, [0.1, 0.4, 0.3, 0.2, 0.5, 0.1]])
@pytest.mark.parametrize("stop", range(6))
def test_a_training_that_was_cut_off_anywhere_ends_in_the_same_arrays(tmp_path, stop, accuracies):
    whole = Net()
    course = whole.run(accuracies=accuracies)
    with pytest.raises(KeyboardInterrupt):
        Net().run(accuracies=accuracies, folder=tmp_path, stop=stop)
    net = Net()
    assert net.run(accuracies=accuracies, folder=tmp_path) == course
    assert net.epochs == list(range(stop, 6)), "only what was left"
    assert net.n_steps == 18
    assert same(net, whole)
    again = Net()
    assert again.run(accuracies=accuracies, folder=tmp_path) == course
    assert again.epochs == []
    assert same(again, whole), "all was done"


@pytest.mark.parametrize("folder", [True, False])
@pytest.mark.parametrize(
    ("accuracies", "patience", "epochs", "best"),
    [
        ([0.1, 0.5, 0.4, 0.3, 0.9, 0.9], 2, 4, 1),
        ([0.1, 0.5, 0.4, 0.6, 0.5, 0.6], 2, 6, 3),  # as good is no better
        ([0.1, 0.5, 0.4, 0.3, 0.9, 0.9], 3, 6, 4),
        ([0.0] * 6, 1, 2, 0),
        ([0.1, 0.5, 0.4, 0.3, 0.2, 0.1], None, 6, 1),
    ],
)
def test_patience_ends_it_and_the_best_epoch_comes_back(tmp_path, accuracies, patience, epochs, best, folder):
    net = Net()
    assert net.run(accuracies=accuracies, patience=patience, folder=tmp_path if folder else None) == accuracies[:epochs]
    assert net.epochs == list(range(epochs))
    assert same(net, after(best + 1))
    assert bool(list(tmp_path.iterdir())) == folder, "nothing is left where no folder was given"


def test_patience_goes_on_counting_where_it_was_cut_off(tmp_path):
    accuracies = [0.1, 0.5, 0.4, 0.3, 0.9, 0.9]
    with pytest.raises(KeyboardInterrupt):
        Net().run(accuracies=accuracies, patience=2, folder=tmp_path, stop=3)
    net = Net()
    assert net.run(accuracies=accuracies, patience=2, folder=tmp_path) == accuracies[:4]
    assert net.epochs == [3]
    assert same(net, after(2))


def test_trainings_of_two_names_stand_side_by_side(tmp_path):
    one, other = Net(), Net()
    one.run(accuracies=[0.5, 0.1, 0.1], epochs=3, folder=tmp_path, name="tree-0")
    other.run(accuracies=[0.1, 0.1, 0.5], epochs=3, folder=tmp_path, name="tree-1")
    assert sorted(path.stem for path in tmp_path.iterdir()) == ["tree-0", "tree-0-best", "tree-1", "tree-1-best"]
    assert same(one, after(1))
    assert same(other, after(3))


def test_the_checkpoint_of_another_training_is_refused(tmp_path):
    Net().run(folder=tmp_path)
    with pytest.raises(ModelError, match="must be of the same data and parameters"):
        Net().run(folder=tmp_path, what={**WHAT, "data": [1, 3]})


def test_rows_to_stop_by_are_some_of_train():
    Y = sp.csr_matrix((np.random.default_rng(0).random((200, 5)) < 0.5).astype(np.float32))
    rest, held = early_stopping_rows(Y, seed=1)
    assert len(held) == 20
    assert sorted([*rest, *held]) == list(range(200))
    assert not np.array_equal(held, early_stopping_rows(Y, seed=2)[1])
    with pytest.raises(DataError, match="early stopping needs some documents .* but there are 3 in all; give validat"):
        early_stopping_rows(Y[:3], seed=0)
