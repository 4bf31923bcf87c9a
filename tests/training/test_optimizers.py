import numpy as np
import pytest

from labelspace.training.optimizers import Adaptive, Moving


@pytest.mark.parametrize("which", [np.array([4, 0, 6], np.int32), slice(2, 5)])
def test_adaptive_is_adagrad_on_the_numbers_that_are_named(which):
    rng = np.random.default_rng(5)
    start = rng.standard_normal(7).astype(np.float32)
    numbers = Adaptive(start.copy())
    value, square = start.astype(np.float64), np.zeros(7)
    for rate in (0.5, 0.3, 0.1):
        gradient = rng.standard_normal(3).astype(np.float32)
        numbers.step(gradient, rate, which)
        square[which] += gradient.astype(np.float64) ** 2
        value[which] -= rate * gradient / np.sqrt(square[which])
    others = np.setdiff1d(np.arange(7), np.arange(7)[which])
    assert np.allclose(numbers.value, value, atol=1e-5)
    assert np.allclose(numbers.square, square, rtol=1e-5)
    assert np.array_equal(numbers.value[others], start[others])
    assert numbers.value.dtype == np.float32


def test_adaptive_keeps_numbers_without_a_gradient():
    numbers = Adaptive(np.ones(3, np.float32))
    numbers.step(np.zeros(3, np.float32), 0.5, slice(None))
    assert numbers.value.tolist() == [1, 1, 1]


def test_moving_moves_the_rows_of_a_part_in_place():
    value = np.ones((4, 2), np.float32)
    weights = Moving(value)
    weights.step(np.full((2, 2), -3, np.float32), 0.1, 1, slice(1, 3))
    assert np.allclose(value, [[1, 1], [1.1, 1.1], [1.1, 1.1], [1, 1]], atol=1e-4), "Adam's first step is the rate"
    assert not weights.mean[[0, 3]].any()
