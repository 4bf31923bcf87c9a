import pytest

from labelspace.errors import ParameterError
from labelspace.models.treespace import Treespace
from labelspace.models.treespace.level_weights import level_weights


@pytest.mark.parametrize("given", [[1, 0.5, 0.25], "1,0.5,0.25", "1, .5, 25e-2", 0.5, "0.5", [0.5]])
def test_one_number_is_relative_and_several_are_the_weights(given):
    assert level_weights(given, 3).tolist() == [1, 0.5, 0.25]


@pytest.mark.parametrize("given", [[1, 2], "1,2,3,4"])
def test_another_number_of_weights_than_levels_is_an_error_that_says_the_levels(given):
    with pytest.raises(ParameterError, match=r"one number or 3, one for each level .* but has [24]; "):
        level_weights(given, 3)


@pytest.mark.parametrize("given", [0, -1, "", "a", "1,,2", "1,0", [], [1, 0], [1, "2"], [[1]], None, True, "nan"])
def test_anything_but_numbers_above_0_is_refused(given):
    with pytest.raises(ParameterError, match="level_weight of treespace must be a number above 0, or one for each"):
        Treespace(level_weight=given).check_params()
