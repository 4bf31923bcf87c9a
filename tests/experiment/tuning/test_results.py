import numpy as np
import pytest

from labelspace.experiment.tuning.results import MIN_TRIALS, explained, groups, importance, ranks


def test_what_matters_is_found_among_what_does_not():
    rng = np.random.default_rng(0)
    drawn = [{"C": rng.random(), "loss": rng.choice(["a", "b", "c"]), "x": rng.random()} for _ in range(40)]
    found = importance([(params, -abs(params["C"] - 0.5) - (params["loss"] == "a")) for params in drawn])
    assert list(found)[:2] == ["loss", "C"]
    assert found["loss"] > 0.5 > found["C"] > found["x"]


def test_epsilon_squared_as_worked_by_hand():
    group, rank = np.array([0, 0, 1, 1]), np.array([0.0, 1.0, 2.0, 3.0])
    # within: 0.5 + 0.5 over 2; total: 5 over 3
    assert explained(group, rank) == pytest.approx(1 - 0.5 / (5 / 3))
    assert explained(np.array([0, 1, 0, 1]), rank) == 0.0
    assert explained(np.array([0, 0, 0, 0]), rank) == 0.0
    assert explained(np.array([0, 1, 2, 3]), rank) == 0.0
    assert explained(group, np.ones(4)) == 0.0


def test_numbers_are_parted_into_quarters_and_other_values_by_value():
    assert groups([8, 7, 6, 5, 4, 3, 2, 1]).tolist() == [3, 3, 2, 2, 1, 1, 0, 0]
    assert groups(["b", None, "b", True]).tolist() == [0, 1, 0, 2]
    assert groups([64, 128, 64, 256]).tolist() == [0, 1, 0, 2]
    assert ranks([5.0, 1.0, 5.0]).tolist() == [1.5, 0.0, 1.5]


def test_few_trials_say_nothing():
    trials = [({"C": i, "rare": 1} if i < MIN_TRIALS - 1 else {"C": i}, float(i)) for i in range(MIN_TRIALS)]
    assert list(importance(trials)) == ["C"]
    assert importance(trials[:-1]) == {}
