import numpy as np
import pytest

from labelspace.errors import ParameterError
from labelspace.estimator.parameter_constraints import (
    Constraint,
    boolean,
    integer,
    layer_sizes,
    one_of,
    optional,
    parse_layer_sizes,
    real,
)

NO_NUMBERS = ["2", None, True, float("nan"), float("inf"), 10**40]


@pytest.mark.parametrize(
    ("constraint", "good", "bad"),
    [
        (real(above=0), [0.1, 3, np.float32(0.5)], [0, -1, *NO_NUMBERS]),
        (real(at_least=0), [0, 0.5], [-0.1, *NO_NUMBERS]),
        (real(at_least=0, below=1), [0, 0.99], [1, -1e-9, *NO_NUMBERS]),
        (real(at_most=1), [-5, 1], [1.01, *NO_NUMBERS]),
        (real(), [-1e29, 0, 1e29], NO_NUMBERS),
        (integer(1), [1, 20, np.int64(3), 2**31 - 1], [0, 1.5, 3.0, 2**31, *NO_NUMBERS]),
        (integer(0, at_most=16), [0, 16], [-1, 17, *NO_NUMBERS]),
        (one_of("a", "b"), ["a"], ["c", None]),
        (boolean(), [True, False], ["yes", None, 2]),
        (optional(integer(1)), [None, 2], [0, "x"]),
        (layer_sizes(), [5, "512", "512,256", " 5 , 6 "], ["", "5,", "0", "a", 0, -1, 2.5, True, None, 2**20, "5;6"]),
        (layer_sizes(2), ["512,256", "1,2,3"], [5, "512", ""]),
        (layer_sizes(0), ["", " ", 5], ["0", None]),
    ],
)
def test_constraints_hold_for_what_they_say(constraint, good, bad):
    for value in good:
        assert constraint.holds(value), value
        constraint.check("x", value)
    for value in bad:
        assert not constraint.holds(value), value
        with pytest.raises(ParameterError):
            constraint.check("x", value)


@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        (real(), "a number"),
        (real(at_least=0), "at least 0"),
        (real(above=0, at_most=2.5), "above 0 and at most 2.5"),
        (integer(1), "an integer of at least 1 and below 2^31"),
        (one_of("a", 2), "one of a, 2"),
        (boolean(), "one of True, False"),
        (optional(real(above=0)), "none, or above 0"),
    ],
)
def test_the_words_follow_must_be(constraint, text):
    assert constraint.text == text


def test_an_error_has_rule_value_and_remedy():
    with pytest.raises(ParameterError, match=r"^C must be above 0, but is '1'; set it so$"):
        real(above=0).check("C", "1")


def test_a_constraint_can_be_any_condition():
    even = Constraint("an even number", lambda value: value % 2 == 0)
    even.check("n", 4)
    with pytest.raises(ParameterError, match="n must be an even number, but is 3"):
        even.check("n", 3)


def test_layer_sizes_are_read_from_text():
    assert parse_layer_sizes(" 5 , 6 ") == [5, 6]
    assert parse_layer_sizes(7) == [7]
    assert parse_layer_sizes(" ") == []
