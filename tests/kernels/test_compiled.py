import ast
import gc
from pathlib import Path

import numpy as np
import pytest
from numba import njit

import labelspace
from labelspace.kernels.compilation import watching
from labelspace.kernels.compiled import part


@part()
def twice(x: int) -> int:
    return 2 * x


@njit
def thrice(x: int) -> int:
    return 3 * x


@pytest.fixture(autouse=True)
def unfrozen():
    """As in a process that has not frozen what it imported, which conftest.py does."""
    gc.unfreeze()
    yield
    gc.freeze()


def test_watchers_are_told_of_kernels_that_are_compiled_and_garbage_is_not_collected_meanwhile():
    @njit
    def outer(x: int) -> int:
        return twice(thrice(x)) + 1

    seen = []
    with watching(lambda name, starts: seen.append((name.rpartition(".")[2], starts, gc.isenabled()))):
        assert outer(3) == 19
    assert seen == [
        ("outer", True, False), ("thrice", True, False), ("thrice", False, False), ("outer", False, False)
    ]  # fmt: skip
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
    with watching(lambda name, starts: seen.append(name)):
        assert outer(4) == 25
    assert len(seen) == 4


def test_what_was_frozen_stays_so():
    @njit
    def once(x: int) -> int:
        return x

    gc.freeze()
    assert once(3) == 3
    assert gc.get_freeze_count() > 0


def test_a_part_can_be_called_by_itself():
    assert twice(np.int64(3)) == 6


def test_fastmath_kernels_that_kernels_call_are_inlined():
    called, fast = set(), {}
    for path in Path(labelspace.__file__).parent.rglob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            options = " ".join(map(ast.unparse, getattr(node, "decorator_list", ())))
            if options.startswith(("kernel(", "part(")):
                calls = (each.func for each in ast.walk(node) if isinstance(each, ast.Call))
                called |= {each.id for each in calls if isinstance(each, ast.Name)}
                if "fastmath" in options:
                    fast[node.name] = options
    assert "dot" in fast.keys() & called
    missing = {name for name in fast.keys() & called if "forceinline=True" not in fast[name]}
    assert not missing
