import numpy as np
import pytest

from labelspace.kernels.topk import radix_sort


@pytest.mark.parametrize(("n", "n_keys"), [(0, 1), (1, 1), (30, 5), (40, 5), (600, 700), (3_000, 2**31)])
def test_numbers_are_sorted_by_their_upper_halves_and_equal_ones_keep_their_order(n, n_keys):
    keys = np.random.default_rng(0).integers(n_keys, size=n)
    items = keys << 32 | np.arange(n)
    found = radix_sort(items.copy(), np.empty(n + 3, np.int64), n_keys)[:n]
    order = np.argsort(keys, kind="stable")
    np.testing.assert_array_equal(found >> 32, keys[order])
    np.testing.assert_array_equal(found & 0xFFFFFFFF, order)
