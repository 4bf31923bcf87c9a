from importlib import import_module

import pytest

from labelspace.moved_modules import MOVED


@pytest.mark.parametrize("old", MOVED)
def test_the_old_name_of_a_module_works_and_names_the_new_one(old):
    with pytest.warns(DeprecationWarning, match=f"{old} is now {MOVED[old]}"):
        module = import_module(old)
    new = import_module(MOVED[old])
    for name, value in vars(new).items():
        assert name.startswith("__") or getattr(module, name) is value


def test_other_names_are_not_found():
    with pytest.raises(ModuleNotFoundError):
        import_module("labelspace.never_was")
