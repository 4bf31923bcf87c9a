import numpy as np
from numba import njit

from labelspace.kernels.lanes import LANES, add_row_products, add_to_rows


@njit
def products(data, indices, start, stop, table, out):
    add_row_products(data, indices, start, stop, table, out)


@njit
def changes(data, indices, start, stop, table, steps):
    add_to_rows(data, indices, start, stop, table, steps)


def row_and_table():
    rng = np.random.default_rng(0)
    data, indices = rng.standard_normal(40, np.float32), rng.integers(0, 30, 40).astype(np.int32)
    return data, indices, rng.standard_normal((30, LANES), np.float32), rng.standard_normal(LANES, np.float32)


def test_products_are_added_in_the_order_of_the_entries():
    data, indices, table, out = row_and_table()
    expected = out.copy()
    for j in range(3, 37):
        expected += data[j] * table[indices[j]]
    products(data, indices, 3, 37, table, out)
    assert np.array_equal(out, expected)


def test_rows_of_the_table_are_changed_also_where_they_occur_twice():
    data, indices, table, steps = row_and_table()
    expected = table.copy()
    for j in range(40):
        expected[indices[j]] += data[j] * steps
    changes(data, indices, np.int32(0), np.int32(40), table, steps)
    assert np.array_equal(table, expected)


def test_no_entries_change_nothing():
    data, indices, table, out = row_and_table()
    before, table_before = out.copy(), table.copy()
    products(data, indices, 5, 5, table, out)
    changes(data, indices, 5, 5, table, out)
    assert np.array_equal(out, before)
    assert np.array_equal(table, table_before)
