"""Parse lines ``l1,l2 f:v f:v ...`` (Extreme Classification Repository) from bytes into CSR parts.

One pass, byte by byte. The text must end with a line end, so that no step needs to look for the end of the buffer.
Indices come out ascending, values of a repeated index summed, repeated labels and zeros dropped.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from labelspace.types import Floats, Ints

Bytes = npt.NDArray[np.uint8]

PARSED, BAD_LABEL, BAD_INDEX, BAD_VALUE, BAD_SUM = range(5)

_TAB, _NEWLINE, _RETURN, _SPACE = 9, 10, 13, 32
_PLUS, _COMMA, _MINUS, _POINT, _ZERO, _NINE, _COLON = 43, 44, 45, 46, 48, 57, 58
_UPPER_E, _LOWER_E = 69, 101
_INDEX_CAP = 10**10  # beyond every allowed index, and far from overflow
_MANTISSA_CAP = 10**17  # 18 digits: more than a float64 holds, and one more digit still fits an int64
_EXPONENT_CAP = 10**6
_LAST_POWER = 308
_POWERS: npt.NDArray[np.float64] = np.array([float(f"1e{i}") for i in range(_LAST_POWER + 1)])


@njit(cache=True, nogil=True)
def _is_gap(byte: int) -> bool:
    return byte == _SPACE or byte == _TAB


@njit(cache=True, nogil=True)
def _line_ends(text: Bytes, at: int) -> bool:
    return bool(text[at] == _NEWLINE or (text[at] == _RETURN and text[at + 1] == _NEWLINE))


@njit(cache=True, nogil=True)
def _whole_number(text: Bytes, at: int) -> tuple[int, int]:
    """The digits from ``at`` on as a number, and where they end (``at`` itself where there is none)."""
    number = 0
    while _ZERO <= text[at] <= _NINE:
        if number < _INDEX_CAP:
            number = number * 10 + (text[at] - _ZERO)
        at += 1
    return number, at


@njit(cache=True, nogil=True)
def scaled(mantissa: int, exponent: int) -> float:
    """Mantissa times ten to the exponent, within two float64 roundings."""
    value = float(mantissa)
    if mantissa == 0 or exponent == 0:
        return value
    if exponent > 0:
        return value * float(_POWERS[min(exponent, _LAST_POWER)])
    value /= float(_POWERS[min(-exponent, _LAST_POWER)])
    if exponent < -_LAST_POWER:
        value /= float(_POWERS[min(-exponent - _LAST_POWER, _LAST_POWER)])
    return value


@njit(cache=True, nogil=True)
def _decimal(text: Bytes, at: int) -> tuple[float, int]:
    """The decimal number from ``at`` on and where it ends; NaN where there is none."""
    sign = 1.0
    if text[at] == _MINUS or text[at] == _PLUS:
        if text[at] == _MINUS:
            sign = -1.0
        at += 1
    mantissa, exponent, digits = 0, 0, 0
    while _ZERO <= text[at] <= _NINE:
        if mantissa < _MANTISSA_CAP:
            mantissa = mantissa * 10 + (text[at] - _ZERO)
        else:
            exponent += 1
        digits += 1
        at += 1
    if text[at] == _POINT:
        at += 1
        while _ZERO <= text[at] <= _NINE:
            if mantissa < _MANTISSA_CAP:
                mantissa = mantissa * 10 + (text[at] - _ZERO)
                exponent -= 1
            digits += 1
            at += 1
    if digits == 0:
        return np.nan, at
    if text[at] == _LOWER_E or text[at] == _UPPER_E:
        at += 1
        down = text[at] == _MINUS
        if down or text[at] == _PLUS:
            at += 1
        start, power = at, 0
        while _ZERO <= text[at] <= _NINE:
            if power < _EXPONENT_CAP:
                power = power * 10 + (text[at] - _ZERO)
            at += 1
        if at == start:
            return np.nan, at
        exponent += -power if down else power
    return sign * scaled(mantissa, exponent), at


@njit(cache=True, nogil=True)
def _merge_features(ids: Ints, values: Floats, start: int, stop: int) -> int:
    """Sort one row by index and sum repeats, in place; the row's new end, or -1 where a sum is not finite."""
    order = np.argsort(ids[start:stop], kind="mergesort")  # stable: repeats are summed in the order of the file
    row_ids, row_values = ids[start:stop][order], values[start:stop][order]
    end, at = start, 0
    while at < len(row_ids):
        index, total = row_ids[at], 0.0
        while at < len(row_ids) and row_ids[at] == index:
            total += row_values[at]
            at += 1
        value = np.float32(total)
        if not np.isfinite(value):
            return -1
        if value != 0:
            ids[end], values[end] = index, value
            end += 1
    return end


@njit(cache=True, nogil=True)
def _merge_labels(ids: Ints, start: int, stop: int) -> int:
    """Sort one row's labels and drop repeats, in place; the row's new end."""
    row = ids[start:stop][np.argsort(ids[start:stop], kind="mergesort")]  # not np.sort: one sort less to compile
    end = start
    for at in range(len(row)):
        if at == 0 or row[at] != row[at - 1]:
            ids[end] = row[at]
            end += 1
    return end


@njit(cache=True, nogil=True)
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

    Args:
        text: uint8 (n_bytes,), the lines.
        n_rows: at most so many lines are read.
        n_features: an index must be below.
        n_labels: a label must be below.
        x_counts: int32 (n_rows,), filled with the features a row.
        x_ids: int32, at least one place for each ``:`` of the text.
        x_values: float32, as long.
        y_counts: int32 (n_rows,), filled with the labels a row.
        y_ids: int32, at least one place for each line and each ``,`` of the text.

    Returns:
        What happened (PARSED or a BAD_ code), rows parsed, place in the text (after the last row, or of the offending
        piece), features and labels filled.
    """
    at, row, x, y = 0, 0, 0, 0
    while row < n_rows and at < len(text):
        x_start, y_start, line = x, y, at
        rising = True
        if not _is_gap(text[at]) and not _line_ends(text, at):
            while True:
                label, after = _whole_number(text, at)
                next_at_end = text[after] == _COMMA or _is_gap(text[after]) or _line_ends(text, after)
                if after == at or label >= n_labels or not next_at_end:
                    return BAD_LABEL, row, at, x, y
                rising = rising and (y == y_start or label > y_ids[y - 1])
                y_ids[y] = label
                y += 1
                at = after
                if text[at] != _COMMA:
                    break
                at += 1
        if not rising:
            y = _merge_labels(y_ids, y_start, y)

        rising = True
        while True:
            while _is_gap(text[at]):
                at += 1
            if _line_ends(text, at):
                break
            index, colon = _whole_number(text, at)
            if colon == at or text[colon] != _COLON or index >= n_features:
                return BAD_INDEX, row, at, x, y
            number, after = _decimal(text, colon + 1)
            value = np.float32(number)
            if not np.isfinite(value) or not (_is_gap(text[after]) or _line_ends(text, after)):
                return BAD_VALUE, row, at, x, y
            at = after
            if value != 0:
                rising = rising and (x == x_start or index > x_ids[x - 1])
                x_ids[x], x_values[x] = index, value
                x += 1
        if not rising:
            x = _merge_features(x_ids, x_values, x_start, x)
            if x < 0:
                return BAD_SUM, row, line, x_start, y
        at += 1 if text[at] == _NEWLINE else 2
        x_counts[row], y_counts[row] = x - x_start, y - y_start
        row += 1
    return PARSED, row, at, x, y
