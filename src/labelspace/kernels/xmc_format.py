"""Write CSR rows as lines ``l1,l2 f:v f:v ...`` of bytes: the reverse of ``xmc_parse``.

A float32 gets the fewest digits, six or more before trailing zeros are cut, that read back to the same float32.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import njit

from labelspace.kernels.xmc_parse import Bytes, scaled
from labelspace.types import Floats, Longs

ID_BYTES = 12  # an int32 and its separator
VALUE_BYTES = 18  # sign, point, ten digits, exponent

_NEWLINE, _SPACE, _COMMA, _MINUS, _POINT, _ZERO, _COLON, _E = 10, 32, 44, 45, 46, 48, 58, 101
_FEWEST_DIGITS, _MOST_DIGITS = 6, 10  # nine are enough for a float32; one more where log10 rounds up
_PLAIN_PLACES = 9  # a whole number of more places is written with an exponent
_PLAIN_ZEROS = 4  # so is a fraction with more zeros after the point


@njit(cache=True, nogil=True)
def _digits(value: np.float32) -> tuple[int, int]:
    """A positive float32 as mantissa and power of ten, without trailing zeros."""
    top = int(math.floor(math.log10(value)))
    mantissa, exponent = 0, 0
    for count in range(_FEWEST_DIGITS, _MOST_DIGITS + 1):
        exponent = top - count + 1
        mantissa = int(np.rint(_scaled_float(value, -exponent)))
        if np.float32(scaled(mantissa, exponent)) == value:
            break
    while mantissa % 10 == 0:
        mantissa //= 10
        exponent += 1
    return mantissa, exponent


@njit(cache=True, nogil=True)
def _scaled_float(value: np.float32, exponent: int) -> float:
    power = scaled(1, abs(exponent))
    return np.float64(value) * power if exponent >= 0 else np.float64(value) / power


@njit(cache=True, nogil=True)
def _put_whole(out: Bytes, at: int, number: int) -> int:
    """Write a number of at least 0; where it ends."""
    length, rest = 1, number // 10
    while rest > 0:
        length += 1
        rest //= 10
    for place in range(at + length - 1, at - 1, -1):
        out[place] = _ZERO + number % 10
        number //= 10
    return at + length


@njit(cache=True, nogil=True)
def _put_value(out: Bytes, at: int, value: np.float32) -> int:
    """Write a float32 other than 0; where it ends."""
    if value < 0:
        out[at] = _MINUS
        at += 1
    mantissa, exponent = _digits(abs(value))
    end = _put_whole(out, at, mantissa)
    length = end - at
    if exponent >= 0 and length + exponent <= _PLAIN_PLACES:
        out[end : end + exponent] = _ZERO
        return end + exponent
    point = length + exponent  # digits before the point; fewer than 0: zeros after it
    if exponent < 0 and 0 < point:
        for place in range(end, at + point, -1):
            out[place] = out[place - 1]
        out[at + point] = _POINT
        return end + 1
    if exponent < 0 and -_PLAIN_ZEROS <= point:
        shift = 2 - point
        for place in range(end - 1, at - 1, -1):
            out[place + shift] = out[place]
        out[at : at + shift] = _ZERO
        out[at + 1] = _POINT
        return end + shift
    out[end] = _E
    end += 1
    if exponent < 0:
        out[end] = _MINUS
        end += 1
    return _put_whole(out, end, abs(exponent))


@njit(cache=True, nogil=True)
def format_rows(
    x_counts: Longs, x_ids: Longs, x_values: Floats, y_counts: Longs, y_ids: Longs, out: npt.NDArray[np.uint8]
) -> int:
    """Write one line a row into ``out`` and return the bytes filled; zeros are left out.

    Args:
        x_counts: int64 (n_rows,), features a row.
        x_ids: int64, feature indices of all rows.
        x_values: float32, as long, finite.
        y_counts: int64 (n_rows,), labels a row.
        y_ids: int64, labels of all rows.
        out: uint8, of at least ID_BYTES a label, ID_BYTES + VALUE_BYTES a feature, and one byte a row.
    """
    at, x, y = 0, 0, 0
    for row in range(len(x_counts)):
        for label in range(y_counts[row]):
            if label > 0:
                out[at] = _COMMA
                at += 1
            at = _put_whole(out, at, y_ids[y])
            y += 1
        for _ in range(x_counts[row]):
            if x_values[x] != 0:
                out[at] = _SPACE
                at = _put_whole(out, at + 1, x_ids[x])
                out[at] = _COLON
                at = _put_value(out, at + 1, x_values[x])
            x += 1
        out[at] = _NEWLINE
        at += 1
    return at
