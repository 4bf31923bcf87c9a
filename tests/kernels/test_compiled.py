import gc

import numpy as np
from numba import njit

from labelspace.kernels.compilation import watching
from labelspace.kernels.compiled import kernel, part


@part()
def twice(x: int) -> int:
    return 2 * x


def test_watchers_are_told_of_kernels_that_are_compiled_and_garbage_is_not_collected_meanwhile():
    @njit
    def outer(x: int) -> int:
        return twice(x) + 1

    seen = []
    with watching(lambda name, starts: seen.append((name.rpartition(".")[2], starts, gc.isenabled()))):
        assert outer(3) == 7
    assert seen == [
        ("outer", True, False), ("twice", True, False), ("twice", False, False), ("outer", False, True)
    ]  # fmt: skip
    with watching(lambda name, starts: seen.append(name)):
        assert outer(4) == 9
    assert len(seen) == 4
    assert gc.isenabled()


def test_a_part_is_plain_python_outside_of_kernels_and_a_kernel_is_compiled():
    assert twice(3) == 6
    assert kernel()(twice)(np.int64(3)) == 6
