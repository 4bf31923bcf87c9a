import numpy as np
import pytest

from labelspace.kernels import quantize as rounding
from labelspace.kernels.quantize import quantize_int8, quantize_int16


def test_bytes_are_at_most_half_a_scale_away():
    table = np.random.default_rng(1).standard_normal((20, 30)).astype(np.float32)
    table[4] = 0
    small, scales = quantize_int8(table)
    assert small.dtype == np.int8
    assert (np.abs(small * scales[:, None] - table) <= 0.5001 * scales[:, None]).all()
    assert np.allclose(scales, np.abs(table).max(axis=1) / 127)
    assert not small[4].any()


def test_blocks_of_rows_change_nothing(monkeypatch):
    table = np.random.default_rng(1).standard_normal((20, 30)).astype(np.float32)
    whole, scales = quantize_int8(table)
    monkeypatch.setattr(rounding, "ROW_BLOCK", 7)
    assert np.array_equal(quantize_int8(table)[0], whole)
    assert np.array_equal(quantize_int8(table)[1], scales)


@pytest.mark.parametrize("width", [1, 300, 512, 513, 5000])
def test_a_product_of_words_and_bytes_fits_into_32_bits(width):
    ones = np.ones((1, width), np.float32)
    words, bytes_ = quantize_int16(ones)[0].astype(np.int64), quantize_int8(ones)[0].astype(np.int64)
    assert 2**31 * 0.49 < (words * bytes_).sum() < 2**31 or words.max() == 2**15 - 1


def test_a_table_without_rows_or_columns_stays_one():
    assert quantize_int8(np.empty((0, 3), np.float32))[0].shape == (0, 3)
    assert quantize_int16(np.empty((2, 0), np.float32))[0].shape == (2, 0)
