import numpy as np
import pytest

from labelspace.training.optimizers import AdagradParameter, AdamParameter, RowAdagrad, RowAdam, RowSgd


@pytest.mark.parametrize("ids", [np.array([4, 0, 6], np.int32), slice(2, 5)])
def test_an_adagrad_parameter_updates_the_numbers_that_are_named(ids):
    rng = np.random.default_rng(5)
    start = rng.standard_normal(7).astype(np.float32)
    numbers = AdagradParameter(start.copy())
    value, square = start.astype(np.float64), np.zeros(7)
    for rate in (0.5, 0.3, 0.1):
        gradient = rng.standard_normal(3).astype(np.float32)
        numbers.step(gradient, rate, ids)
        square[ids] += gradient.astype(np.float64) ** 2
        value[ids] -= rate * gradient / np.sqrt(square[ids])
    others = np.setdiff1d(np.arange(7), np.arange(7)[ids])
    assert np.allclose(numbers.value, value, atol=1e-5)
    assert np.allclose(numbers.square, square, rtol=1e-5)
    assert np.array_equal(numbers.value[others], start[others])
    assert numbers.value.dtype == np.float32


def test_a_gradient_of_0_changes_no_number():
    numbers = AdagradParameter(np.ones(3, np.float32))
    numbers.step(np.zeros(3, np.float32), 0.5, slice(None))
    assert numbers.value.tolist() == [1, 1, 1]


def test_an_adam_parameter_updates_the_rows_of_a_part_in_place():
    value = np.ones((4, 2), np.float32)
    weights = AdamParameter(value)
    weights.step(np.full((2, 2), -3, np.float32), 0.1, 1, slice(1, 3))
    assert np.allclose(value, [[1, 1], [1.1, 1.1], [1.1, 1.1], [1, 1]], atol=1e-4), (
        "Adam's first step is the learning rate"
    )
    assert not weights.mean[[0, 3]].any()


# ---- rows of a matrix


def rows_of(name, rows, width):
    return {"sgd": RowSgd(), "adagrad": RowAdagrad(rows), "adam": RowAdam(rows, width)}[name]


def slow_update(name, gradients, rate):
    """The last update of a row, from all gradients it ever had, in float64."""
    last = gradients[-1]
    if name == "sgd":
        return -rate * last
    if name == "adagrad":
        return -rate * last / np.sqrt(sum((g**2).mean() for g in gradients))
    mean, square = np.zeros_like(last), np.zeros_like(last)
    for g in gradients:
        mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g**2
    n = len(gradients)
    return -rate * (mean / (1 - 0.9**n)) / np.sqrt(square / (1 - 0.999**n))


@pytest.mark.parametrize("name", ["sgd", "adagrad", "adam"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_update_of_a_row_depends_on_its_gradients_alone(name, dtype):
    rng = np.random.default_rng(6)
    optimizer, known = rows_of(name, 8, 3), [[] for _ in range(8)]
    assert optimizer.name == name
    for _ in range(12):
        ids = rng.permutation(8)[: rng.integers(1, 6)].astype(np.int32)
        gradient = rng.standard_normal((len(ids), 3)).astype(dtype)
        updates = optimizer.updates(ids, gradient, 0.3)
        assert updates.dtype == dtype
        for i, row, update in zip(ids, gradient, updates, strict=True):
            known[i].append(row.astype(np.float64))
            assert np.allclose(update, slow_update(name, known[i], 0.3), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", ["sgd", "adagrad", "adam"])
def test_a_gradient_of_0_moves_no_row_that_never_had_another(name):
    optimizer, ids = rows_of(name, 4, 3), np.arange(4, dtype=np.int32)
    for _ in range(5):
        assert not optimizer.updates(ids, np.zeros((4, 3), np.float32), 100.0).any()


@pytest.mark.parametrize("name", ["adagrad", "adam"])
def test_the_first_update_does_not_depend_on_the_norm_of_the_gradient(name):
    gradient = np.random.default_rng(7).standard_normal((4, 3)).astype(np.float32)
    ids = np.arange(4, dtype=np.int32)
    first = rows_of(name, 4, 3).updates(ids, gradient, 0.1)
    for scale in (0.1, 1e12):
        assert np.allclose(rows_of(name, 4, 3).updates(ids, gradient * np.float32(scale), 0.1), first, rtol=2e-2)


@pytest.mark.parametrize("name", ["sgd", "adagrad", "adam"])
def test_updates_leave_the_gradient_unchanged_and_reach_the_minimum_of_a_quadratic(name):
    optimizer, ids = rows_of(name, 4, 3), np.arange(4, dtype=np.int32)
    rng = np.random.default_rng(8)
    minimum, point = rng.standard_normal((2, 4, 3)).astype(np.float32)
    for step in range(600):
        gradient = point - minimum
        before = gradient.copy()
        point = point + optimizer.updates(ids, gradient, 0.2 * (1 - step / 600))
        assert np.array_equal(gradient, before)
    assert np.allclose(point, minimum, atol=1e-2)
