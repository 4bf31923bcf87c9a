import numpy as np
import pytest

from labelspace.training.optimizers import AdagradParameter, AdamParameter, RowAdagrad, RowAdam, RowSgd


@pytest.mark.parametrize("which", [np.array([4, 0, 6], np.int32), slice(2, 5)])
def test_adaptive_is_adagrad_on_the_numbers_that_are_named(which):
    rng = np.random.default_rng(5)
    start = rng.standard_normal(7).astype(np.float32)
    numbers = AdagradParameter(start.copy())
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
    numbers = AdagradParameter(np.ones(3, np.float32))
    numbers.step(np.zeros(3, np.float32), 0.5, slice(None))
    assert numbers.value.tolist() == [1, 1, 1]


def test_moving_moves_the_rows_of_a_part_in_place():
    value = np.ones((4, 2), np.float32)
    weights = AdamParameter(value)
    weights.step(np.full((2, 2), -3, np.float32), 0.1, 1, slice(1, 3))
    assert np.allclose(value, [[1, 1], [1.1, 1.1], [1.1, 1.1], [1, 1]], atol=1e-4), "Adam's first step is the rate"
    assert not weights.mean[[0, 3]].any()


# ---- rows of a table


def rows_of(form, rows, width):
    return {"sgd": RowSgd(), "adagrad": RowAdagrad(rows), "adam": RowAdam(rows, width)}[form]


def slow_steps(form, gradients, rate):
    """The last step of a row, from all gradients it ever had, number by number in float64."""
    last = gradients[-1]
    if form == "sgd":
        return -rate * last
    if form == "adagrad":
        return -rate * last / np.sqrt(sum((g**2).mean() for g in gradients))
    mean, square = np.zeros_like(last), np.zeros_like(last)
    for g in gradients:
        mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g**2
    n = len(gradients)
    return -rate * (mean / (1 - 0.9**n)) / np.sqrt(square / (1 - 0.999**n))


@pytest.mark.parametrize("form", ["sgd", "adagrad", "adam"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_move_by_their_own_history_alone(form, dtype):
    rng = np.random.default_rng(6)
    optimizer, known = rows_of(form, 8, 3), [[] for _ in range(8)]
    assert optimizer.form == form
    for _ in range(12):
        ids = rng.permutation(8)[: rng.integers(1, 6)].astype(np.int32)
        gradient = rng.standard_normal((len(ids), 3)).astype(dtype)
        steps = optimizer.steps(ids, gradient, 0.3)
        assert steps.dtype == dtype
        for i, own, step in zip(ids, gradient, steps, strict=True):
            known[i].append(own.astype(np.float64))
            assert np.allclose(step, slow_steps(form, known[i], 0.3), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("form", ["sgd", "adagrad", "adam"])
def test_a_gradient_of_nothing_moves_no_row_that_never_had_another(form):
    optimizer, ids = rows_of(form, 4, 3), np.arange(4, dtype=np.int32)
    for _ in range(5):
        assert not optimizer.steps(ids, np.zeros((4, 3), np.float32), 100.0).any()


@pytest.mark.parametrize("form", ["adagrad", "adam"])
def test_the_first_step_does_not_depend_on_the_length_of_the_gradient(form):
    gradient = np.random.default_rng(7).standard_normal((4, 3)).astype(np.float32)
    ids = np.arange(4, dtype=np.int32)
    first = rows_of(form, 4, 3).steps(ids, gradient, 0.1)
    for scale in (0.1, 1e12):
        assert np.allclose(rows_of(form, 4, 3).steps(ids, gradient * np.float32(scale), 0.1), first, rtol=2e-2)


@pytest.mark.parametrize("form", ["sgd", "adagrad", "adam"])
def test_steps_on_rows_leave_the_gradient_as_it_is_and_find_the_bottom_of_a_bowl(form):
    optimizer, ids = rows_of(form, 4, 3), np.arange(4, dtype=np.int32)
    rng = np.random.default_rng(8)
    bottom, at = rng.standard_normal((2, 4, 3)).astype(np.float32)
    for step in range(600):
        gradient = at - bottom
        before = gradient.copy()
        at = at + optimizer.steps(ids, gradient, 0.2 * (1 - step / 600))
        assert np.array_equal(gradient, before)
    assert np.allclose(at, bottom, atol=1e-2)
