import numpy as np
import pytest

from labelspace.kernels import quantize
from labelspace.kernels.quantize import quantize_columns, quantize_int8, quantize_int16


def test_the_error_is_at_most_half_a_scale():
    table = np.random.default_rng(1).standard_normal((20, 30)).astype(np.float32)
    table[4] = 0
    quantized, scales = quantize_int8(table)
    assert quantized.dtype == np.int8
    assert (np.abs(quantized * scales[:, None] - table) <= 0.5001 * scales[:, None]).all()
    assert np.allclose(scales, np.abs(table).max(axis=1) / 127)
    assert not quantized[4].any()


def test_columns_of_a_sparse_matrix_have_a_scale_each():
    rng = np.random.default_rng(2)
    starts, values = np.array([0, 0, 4, 4, 9, 10, 10]), rng.standard_normal(10).astype(np.float32)
    quantized, scales = quantize_columns(values, starts)
    own = np.repeat(scales, np.diff(starts))
    assert (np.abs(quantized * own - values) <= 0.5001 * own).all()
    assert np.allclose(scales[[1, 3, 4]], [np.abs(values[a:b]).max() / 127 for a, b in ((0, 4), (4, 9), (9, 10))])
    assert quantize_columns(values[:0], np.zeros(3, np.int32))[1].shape == (2,)


def test_blocks_of_rows_change_nothing(monkeypatch):
    table = np.random.default_rng(1).standard_normal((20, 30)).astype(np.float32)
    expected, scales = quantize_int8(table)
    monkeypatch.setattr(quantize, "ROW_BLOCK", 7)
    assert np.array_equal(quantize_int8(table)[0], expected)
    assert np.array_equal(quantize_int8(table)[1], scales)


@pytest.mark.parametrize("width", [1, 300, 512, 513, 5000])
def test_a_product_of_int16_and_int8_fits_into_32_bits(width):
    ones = np.ones((1, width), np.float32)
    int16s, int8s = quantize_int16(ones)[0].astype(np.int64), quantize_int8(ones)[0].astype(np.int64)
    assert 2**31 * 0.49 < (int16s * int8s).sum() < 2**31 or int16s.max() == 2**15 - 1


def test_an_empty_table_keeps_its_shape():
    assert quantize_int8(np.empty((0, 3), np.float32))[0].shape == (0, 3)
    assert quantize_int16(np.empty((2, 0), np.float32))[0].shape == (2, 0)
