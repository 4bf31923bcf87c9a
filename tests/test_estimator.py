import numpy as np
import pytest

from labelspace.errors import MissingExtraError, ParameterError, require
from labelspace.estimator import above, at_least, one_of, optional, whole
from labelspace.models.registry import create, method


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        (above(0), [0.1, 3], [0, -1, "2", None, True, float("nan"), float("inf"), 10**40]),
        (at_least(0), [0, 0.5], [-0.1, "a", None]),
        (whole(1), [1, 20, np.int64(3)], [0, 1.5, 3.0, "1", None, True, 2**31]),
        (one_of("a", "b"), ["a"], ["c", None]),
        (optional(whole(1)), [None, 2], [0, "x"]),
    ],
)
def test_rules_hold_for_what_they_say(rule, good, bad):
    assert all(rule.holds(value) for value in good)
    assert not any(rule.holds(value) for value in bad)


def test_a_parameter_out_of_range_is_rule_value_remedy(data):
    with pytest.raises(ParameterError, match="C of one_vs_rest must be above 0, but is -1; set it so"):
        create("one_vs_rest", C=-1).fit(data[0].X, data[0].Y)


def test_a_near_miss_is_guessed():
    with pytest.raises(ParameterError, match=r"no parameter 'treshold'; did you mean 'threshold'\?"):
        create("one_vs_rest", treshold=1)
    with pytest.raises(ParameterError, match=r"no method 'neighbors'; did you mean 'neighbors'\?"):
        method("neighbors")


def test_repr_shows_what_was_changed():
    assert repr(create("one_vs_rest", C=2.0)) == "OneVsRest(C=2.0)"


def test_a_missing_extra_says_what_to_install():
    with pytest.raises(MissingExtraError, match=r"pip install 'labelspace\[parquet\]'"):
        require("no_such_package_at_all", extra="parquet")
