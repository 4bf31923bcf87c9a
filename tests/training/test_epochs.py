import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelspace.errors import ModelError
from labelspace.training.epochs import MIN_BATCHES, batch_schedule, run_epochs

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
