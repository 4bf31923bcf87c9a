"""What a loaded state must satisfy: each rule refuses what breaks it, whatever block of a large array it is in."""

import numpy as np
import pytest

from labelspace.estimator import state_constraints
from labelspace.estimator.state_constraints import (
    LARGEST_FLOAT,
    Sizes,
    StateError,
    are_sorted_spans,
    array,
    ids,
    is_sorted,
    offsets,
)


def check(constraint, values, **known):
    sizes = Sizes()
    sizes.set(known)
    constraint.bind(values, sizes)
    constraint.check(values, sizes)
    return sizes


@pytest.fixture(params=[2**20, 8], ids=["one block", "many blocks"])
def block_bytes(request, monkeypatch):
    monkeypatch.setattr(state_constraints, "BLOCK_BYTES", request.param)


def test_a_name_stands_for_one_size():
    sizes = check(array("float32", "n", "m"), np.zeros((3, 2), np.float32), n=3)
    assert sizes.number("m") == 2
    assert sizes.number("m + 1") == 3
    assert sizes.bind("k + 1", 5)
    assert sizes.number("k") == 4
    assert not sizes.bind("empty + 1", 0), "a size is not negative"
    with pytest.raises(StateError, match=r"must have shape \(3, m\), but has \(4, 2\)"):
        check(array("float32", "n", "m"), np.zeros((4, 2), np.float32), n=3)
    with pytest.raises(StateError, match="no array or value gives it"):
        sizes.number("unknown")


def test_a_part_shares_the_sizes_that_it_is_told():
    whole = Sizes()
    part = Sizes(whole, {"n": "n_nodes"})
    assert part.bind("n", 4)
    assert part.bind("own", 2)
    assert whole.number("n_nodes") == 4
    assert whole.get("own") is None
    assert not Sizes(whole, {"m": "n_nodes"}).bind("m + 1", 4)


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        (np.zeros(3, np.float64), "must be of dtype float32, but is float64"),
        (np.zeros((3, 1), np.float32), r"must have shape \(n\), but has \(3, 1\)"),
        (np.array([0, np.nan, 1], np.float32), "must hold finite numbers"),
        (np.array([0, 1, np.inf], np.float32), "must hold finite numbers"),
    ],
)
def test_dtype_shape_and_finiteness(values, rule, block_bytes):
    with pytest.raises(StateError, match=rule):
        check(array("float32", "n"), values)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_numbers_whose_products_overflow_are_refused(dtype, block_bytes):
    largest = min(LARGEST_FLOAT, float(np.finfo(dtype).max))
    check(array(dtype, "n"), np.full(9, largest, dtype) * np.array([1, -1, 1] * 3, dtype))
    if dtype != "float16":
        with pytest.raises(StateError, match="must have numbers of at most 1e"):
            check(array(dtype, "n"), np.array([0, -2 * largest, 1], dtype))
    for bad in (np.nan, np.inf, -np.inf):
        values = np.ones(9, dtype)
        values[7] = bad
        with pytest.raises(StateError, match="finite"):
            check(array(dtype, "n"), values)
        check(array(dtype, "n", finite=False), values)


def test_ids_are_in_range(block_bytes):
    check(ids("n", below="m", at_least=-1), np.array([-1, 0, 6], np.int32), m=7)
    with pytest.raises(StateError, match="must be below 7, but one is 7"):
        check(ids("n", below="m"), np.array([0, 1, 2, 3, 7], np.int32), m=7)
    with pytest.raises(StateError, match="must be at least 0, but one is -2"):
        check(ids("n", below="m"), np.array([0, 1, 2, 3, -2], np.int32), m=7)
    check(ids("n", below=3), np.zeros(0, np.int32))


def test_offsets_rise_from_nothing_to_the_end(block_bytes):
    check(offsets("n", into="m"), np.array([0, 2, 2, 5]), n=3, m=5)
    for wrong in ([1, 2, 2, 5], [0, 3, 2, 5], [0, 2, 2, 4], [0, 2, 2, 6]):
        with pytest.raises(StateError, match="must rise from 0 to m=5"):
            check(offsets("n", into="m"), np.array(wrong), n=3, m=5)
    with pytest.raises(StateError, match="must have shape"):
        check(offsets("n", into="m"), np.zeros(0, np.int64), m=5)


def test_a_truth_value_is_zero_or_one():
    check(array("bool", "n"), np.array([True, False]))
    with pytest.raises(StateError, match="must be below 2, but one is 255"):
        check(array("bool", "n"), np.array([1, 255], np.uint8).view(bool))


def test_order_within_spans(block_bytes):
    starts = np.array([0, 3, 3, 5])
    assert are_sorted_spans(np.array([1, 4, 9, 0, 2], np.uint16), starts)
    assert not are_sorted_spans(np.array([1, 4, 4, 0, 2], np.uint16), starts), "no number occurs twice"
    assert not are_sorted_spans(np.array([1, 9, 4, 0, 2], np.uint16), starts)
    assert not are_sorted_spans(np.array([1, 4, 9, 2, 0], np.uint16), starts)
    assert are_sorted_spans(np.zeros(0, np.int32), np.array([0, 0]))
    rng = np.random.default_rng(0)
    for _ in range(200):
        values = rng.integers(0, 3, 9)
        edges = np.sort(np.append([0, 9], rng.integers(0, 10, 3)))
        parts = np.split(values, edges[1:-1])
        assert are_sorted_spans(values, edges) == all((np.diff(part) > 0).all() for part in parts)
        assert is_sorted(values) == (np.diff(values) >= 0).all()
