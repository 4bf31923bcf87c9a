"""Write CSR rows as lines ``l1,l2 f:v f:v ...`` of bytes: the inverse of ``xmc_parse``.

A float32 gets the fewest digits that read back to the same float32, from six on before trailing zeros are cut.
"""

import math

import numpy as np
import numpy.typing as npt

from labelspace.kernels.compiled import kernel
from labelspace.kernels.xmc_parse import Bytes, scale_by_power_of_10
from labelspace.types import Floats, Longs

ID_BYTES = 12  # an int32 and its separator
VALUE_BYTES = 18  # sign, point, ten digits, exponent

_NEWLINE, _SPACE, _COMMA, _MINUS, _POINT, _ZERO, _COLON, _E = 10, 32, 44, 45, 46, 48, 58, 101
_MIN_DIGITS, _MAX_DIGITS = 6, 10  # nine are enough for a float32; one more where log10 rounds up
_PLAIN_DIGITS = 9  # an integer of more digits is written with an exponent
_PLAIN_ZEROS = 4  # so is a fraction with more zeros after the point


@kernel()
def _shortest_decimal(value: np.float32) -> tuple[int, int]:
    """A positive float32 as mantissa and power of ten, without trailing zeros."""
    top = int(math.floor(math.log10(value)))
    mantissa, exponent = 0, 0
    for count in range(_MIN_DIGITS, _MAX_DIGITS + 1):
        exponent = top - count + 1
        mantissa = int(np.rint(_scale_float(value, -exponent)))
        if np.float32(scale_by_power_of_10(mantissa, exponent)) == value:
            break
    while mantissa % 10 == 0:
        mantissa //= 10
        exponent += 1
    return mantissa, exponent


@kernel()
def _scale_float(value: np.float32, exponent: int) -> float:
    power = scale_by_power_of_10(1, abs(exponent))
    return np.float64(value) * power if exponent >= 0 else np.float64(value) / power


@kernel()
def _write_int(out: Bytes, start: int, number: int) -> int:
    """Write a number of at least 0; returns where it ends."""
    length, remaining = 1, number // 10
    while remaining > 0:
        length += 1
        remaining //= 10
    for pos in range(start + length - 1, start - 1, -1):
        out[pos] = _ZERO + number % 10
        number //= 10
    return start + length


@kernel()
def _write_float(out: Bytes, start: int, value: np.float32) -> int:
    """Write a float32 other than 0; returns where it ends."""
    if value < 0:
        out[start] = _MINUS
        start += 1
    mantissa, exponent = _shortest_decimal(abs(value))
    end = _write_int(out, start, mantissa)
    length = end - start
    if exponent >= 0 and length + exponent <= _PLAIN_DIGITS:
        out[end : end + exponent] = _ZERO
        return end + exponent
    point = length + exponent  # digits before the point; fewer than 0: zeros after it
    if exponent < 0 and 0 < point:
        for pos in range(end, start + point, -1):
            out[pos] = out[pos - 1]
        out[start + point] = _POINT
        return end + 1
    if exponent < 0 and -_PLAIN_ZEROS <= point:
        shift = 2 - point
        for pos in range(end - 1, start - 1, -1):
            out[pos + shift] = out[pos]
        out[start : start + shift] = _ZERO
        out[start + 1] = _POINT
        return end + shift
    out[end] = _E
    end += 1
    if exponent < 0:
        out[end] = _MINUS
        end += 1
    return _write_int(out, end, abs(exponent))


@kernel()
def format_rows(
    x_counts: Longs, x_ids: Longs, x_values: Floats, y_counts: Longs, y_ids: Longs, out: npt.NDArray[np.uint8]
) -> int:
    """Write one line per row into ``out`` and return the number of bytes; zeros are dropped.

    The counts (n_rows,) are the features and labels per row, ids and values those of all rows. Values are finite.
    ``out`` has at least ID_BYTES per label, ID_BYTES + VALUE_BYTES per feature, and one byte per row.
    """
    pos, x, y = 0, 0, 0
    for row in range(len(x_counts)):
        for label in range(y_counts[row]):
            if label > 0:
                out[pos] = _COMMA
                pos += 1
            pos = _write_int(out, pos, y_ids[y])
            y += 1
        for _ in range(x_counts[row]):
            if x_values[x] != 0:
                out[pos] = _SPACE
                pos = _write_int(out, pos + 1, x_ids[x])
                out[pos] = _COLON
                pos = _write_float(out, pos + 1, x_values[x])
            x += 1
        out[pos] = _NEWLINE
        pos += 1
    return pos
