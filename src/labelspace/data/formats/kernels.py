"""Lines ``l1,l2 f:v f:v ...`` of the Extreme Classification Repository: parse bytes into CSR parts, and write them.

Parsing is one pass, byte by byte. The text must end with a line end, so that no step needs to check for the end of the
buffer. Indices are sorted, values of a repeated index are summed, repeated labels and zeros are dropped.

Writing gives a float32 the fewest digits that read back to the same float32, from six on before trailing zeros are cut.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from labelspace.kernels.compiled import kernel, part
from labelspace.types import Floats, Ints, Longs

Bytes = npt.NDArray[np.uint8]

PARSED, BAD_LABEL, BAD_INDEX, BAD_VALUE, BAD_SUM = range(5)

_TAB, _NEWLINE, _RETURN, _SPACE = 9, 10, 13, 32
_PLUS, _COMMA, _MINUS, _POINT, _ZERO, _NINE, _COLON = 43, 44, 45, 46, 48, 57, 58
_UPPER_E, _LOWER_E = 69, 101
_INDEX_CAP = 10**10  # beyond every allowed index and exponent, and far from overflow
_MANTISSA_CAP = 10**17  # 18 digits: more than a float64 holds, and one more digit still fits an int64
_LAST_POWER = 308
_POWERS: npt.NDArray[np.float64] = np.array([float(f"1e{i}") for i in range(_LAST_POWER + 1)])


@part()
def _is_blank(byte: int) -> bool:
    return byte == _SPACE or byte == _TAB


@part()
def _at_line_end(text: Bytes, pos: int) -> bool:
    return bool(text[pos] == _NEWLINE or (text[pos] == _RETURN and text[pos + 1] == _NEWLINE))


@kernel()
def _parse_int(text: Bytes, pos: int) -> tuple[int, int]:
    """Return the number whose digits begin at ``pos``, and where they end (``pos`` itself if there are none)."""
    number = 0
    while _ZERO <= text[pos] <= _NINE:
        if number < _INDEX_CAP:
            number = number * 10 + (text[pos] - _ZERO)
        pos += 1
    return number, pos


@kernel()
def scale_by_power_of_10(mantissa: int, exponent: int) -> float:
    """Return the mantissa times ten to the exponent, within two float64 roundings."""
    value = float(mantissa)
    if mantissa == 0 or exponent == 0:
        return value
    if exponent > 0:
        return value * float(_POWERS[min(exponent, _LAST_POWER)])
    value /= float(_POWERS[min(-exponent, _LAST_POWER)])
    if exponent < -_LAST_POWER:
        value /= float(_POWERS[min(-exponent - _LAST_POWER, _LAST_POWER)])
    return value


@part()
def _parse_float(text: Bytes, pos: int) -> tuple[float, int]:
    """Return the decimal number that begins at ``pos`` and where it ends; NaN if there is none."""
    sign = 1.0
    if text[pos] == _MINUS or text[pos] == _PLUS:
        if text[pos] == _MINUS:
            sign = -1.0
        pos += 1
    mantissa, exponent, digits = 0, 0, 0
    while _ZERO <= text[pos] <= _NINE:
        if mantissa < _MANTISSA_CAP:
            mantissa = mantissa * 10 + (text[pos] - _ZERO)
        else:
            exponent += 1
        digits += 1
        pos += 1
    if text[pos] == _POINT:
        pos += 1
        while _ZERO <= text[pos] <= _NINE:
            if mantissa < _MANTISSA_CAP:
                mantissa = mantissa * 10 + (text[pos] - _ZERO)
                exponent -= 1
            digits += 1
            pos += 1
    if digits == 0:
        return np.nan, pos
    if text[pos] == _LOWER_E or text[pos] == _UPPER_E:
        pos += 1
        negative = text[pos] == _MINUS
        if negative or text[pos] == _PLUS:
            pos += 1
        power, end = _parse_int(text, pos)
        if end == pos:
            return np.nan, pos
        exponent += -power if negative else power
        pos = end
    return sign * scale_by_power_of_10(mantissa, exponent), pos


@part()
def _merge_features(ids: Ints, values: Floats, start: int, stop: int) -> int:
    """Sort one row by index and sum repeats, in place; return the row's new end, or -1 if a sum is not finite."""
    order = np.argsort(ids[start:stop], kind="mergesort")  # stable: repeats are summed in the order of the file
    sorted_ids, sorted_values = ids[start:stop][order], values[start:stop][order]
    end, pos = start, 0
    while pos < len(sorted_ids):
        index, total = sorted_ids[pos], 0.0
        while pos < len(sorted_ids) and sorted_ids[pos] == index:
            total += sorted_values[pos]
            pos += 1
        value = np.float32(total)
        if not np.isfinite(value):
            return -1
        if value != 0:
            ids[end], values[end] = index, value
            end += 1
    return end


@part()
def _merge_labels(ids: Ints, start: int, stop: int) -> int:
    """Sort one row's labels and drop repeats, in place; return the row's new end."""
    row = ids[start:stop][np.argsort(ids[start:stop], kind="mergesort")]  # not np.sort: one sort less to compile
    end = start
    for pos in range(len(row)):
        if pos == 0 or row[pos] != row[pos - 1]:
            ids[end] = row[pos]
            end += 1
    return end


@kernel()
def parse_rows(
    text: Bytes,
    n_rows: int,
    n_features: int,
    n_labels: int,
    x_counts: npt.NDArray[Any],
    x_ids: Ints,
    x_values: Floats,
    y_counts: npt.NDArray[Any],
    y_ids: Ints,
) -> tuple[int, int, int, int, int]:
    """Parse up to ``n_rows`` lines of ``text``, which ends with a line end.

    The counts (n_rows,) are filled with the features and labels per row. ``x_ids`` and ``x_values`` need an entry for
    each ``:`` of the text, ``y_ids`` one for each line and each ``,``. Returns the status (PARSED or a BAD_ code), rows
    parsed, position in the text (after the last row, or of the malformed token), features and labels filled.
    """
    pos, row, x, y = 0, 0, 0, 0
    while row < n_rows and pos < len(text):
        x_start, y_start, line = x, y, pos
        ascending = True
        if not _is_blank(text[pos]) and not _at_line_end(text, pos):
            while True:
                label, after = _parse_int(text, pos)
                next_at_end = text[after] == _COMMA or _is_blank(text[after]) or _at_line_end(text, after)
                if after == pos or label >= n_labels or not next_at_end:
                    return BAD_LABEL, row, pos, x, y
                ascending = ascending and (y == y_start or label > y_ids[y - 1])
                y_ids[y] = label
                y += 1
                pos = after
                if text[pos] != _COMMA:
                    break
                pos += 1
        if not ascending:
            y = _merge_labels(y_ids, y_start, y)

        ascending = True
        while True:
            while _is_blank(text[pos]):
                pos += 1
            if _at_line_end(text, pos):
                break
            index, colon = _parse_int(text, pos)
            if colon == pos or text[colon] != _COLON or index >= n_features:
                return BAD_INDEX, row, pos, x, y
            number, after = _parse_float(text, colon + 1)
            value = np.float32(number)
            if not np.isfinite(value) or not (_is_blank(text[after]) or _at_line_end(text, after)):
                return BAD_VALUE, row, pos, x, y
            pos = after
            if value != 0:
                ascending = ascending and (x == x_start or index > x_ids[x - 1])
                x_ids[x], x_values[x] = index, value
                x += 1
        if not ascending:
            x = _merge_features(x_ids, x_values, x_start, x)
            if x < 0:
                return BAD_SUM, row, line, x_start, y
        pos += 1 if text[pos] == _NEWLINE else 2
        x_counts[row], y_counts[row] = x - x_start, y - y_start
        row += 1
    return PARSED, row, pos, x, y


ID_BYTES = 12  # an int32 and its separator
VALUE_BYTES = 18  # sign, point, ten digits, exponent
_MIN_DIGITS, _MAX_DIGITS = 6, 10  # nine are enough for a float32; one more where log10 rounds up
_PLAIN_DIGITS = 9  # an integer of more digits is written with an exponent
_PLAIN_ZEROS = 4  # so is a fraction with more zeros after the point


@kernel()
def _shortest_decimal(value: np.float32) -> tuple[int, int]:
    """Return a positive float32 as mantissa and power of ten, without trailing zeros."""
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
    """Write a number of at least 0; return where it ends."""
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
    """Write a float32 other than 0; return where it ends."""
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
    out[end] = _LOWER_E
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
