"""Products of 8 bits against NumPy."""

import numpy as np
import pytest

from labelspace.kernels.byte_products import CENTER, HAS_INSTRUCTION, multiply, pack, quantize_groups


def test_groups_have_codes_and_scales():
    x = np.random.default_rng(0).standard_normal((3, 128)).astype(np.float32)
    x[1, :64] = 0
    codes, scales = np.empty(x.shape, np.uint8), np.empty((3, 2), np.float32)
    quantize_groups(x, codes, scales)
    restored = (codes.reshape(3, 2, 64).astype(np.float32) - CENTER) * scales[:, :, None]
    assert (codes[1, :64] == CENTER).all()
    assert (abs(restored.reshape(x.shape) - x) <= np.repeat(scales, 64, axis=1) * 0.501).all()


@pytest.mark.skipif(not HAS_INSTRUCTION, reason="the processor has no AVX-512 VNNI")
@pytest.mark.parametrize("n", [1, 6, 14])
def test_products_are_those_of_numpy_and_rows_depend_on_no_other(n):
    rng = np.random.default_rng(n)
    weights, scales = rng.integers(-127, 128, (96, 192)).astype(np.int8), rng.random((96, 3), np.float32)
    codes, code_scales = rng.integers(1, 256, (n, 192)).astype(np.uint8), rng.random((n, 3), np.float32)
    bias = rng.standard_normal(96).astype(np.float32)
    out, alone = np.empty((n, 96), np.float32), np.empty((1, 96), np.float32)
    matrix = pack(weights, scales, bias)
    multiply(codes, code_scales, *matrix, out)
    x = (codes.astype(float) - CENTER) * np.repeat(code_scales, 64, axis=1)
    expected = x @ (weights * np.repeat(scales, 64, axis=1).astype(float)).T + bias
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-4 * abs(expected).max())
    multiply(codes[-1:], code_scales[-1:], *matrix, alone)
    assert alone[0].tobytes() == out[-1].tobytes()
