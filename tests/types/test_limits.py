import pytest

from labelspace.errors import ParameterError
from labelspace.types.limits import Limit


def test_a_variable_replaces_the_default(monkeypatch):
    limit = Limit("LABELSPACE_MAX_TEST", 7)
    assert limit.value == 7
    monkeypatch.setenv("LABELSPACE_MAX_TEST", " 12 ")
    assert limit.value == 12


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5", "9" * 5000])
def test_what_is_no_limit(monkeypatch, value):
    monkeypatch.setenv("LABELSPACE_MAX_TEST", value)
    rule = "LABELSPACE_MAX_TEST must be an integer of at least 1 .*; set it to 7, or unset it"
    with pytest.raises(ParameterError, match=rule):
        _ = Limit("LABELSPACE_MAX_TEST", 7).value
