"""Quantized tables, int8 or int16 with one scale per row: less memory than float32, and exact integer products."""

from typing import Any

import numpy as np
import numpy.typing as npt

from labelspace.types import Floats, Ints

Int8s = npt.NDArray[np.int8]
Int16s = npt.NDArray[np.int16]

INT8_MAX = 127  # symmetric range
INT16_MAX = 2**15 - 1
ROW_BLOCK = 4096  # rows at a time: no float32 copy of the full table


def quantize_int8(table: Floats) -> tuple[Int8s, Floats]:
    """Return the rows of a table as int8 and a scale each: the error is at most half a scale.

    >>> quantize_int8(np.array([[0.5, -1.0]], np.float32))[0].tolist()
    [[64, -127]]
    """
    return _quantize_rows(table, INT8_MAX, np.int8)


def quantize_int16(table: Floats) -> tuple[Int16s, Floats]:
    """Return the rows as int16 and a scale each, in a range whose products with int8 rows fit into 32 bits."""
    max_value = min(INT16_MAX, (2**31 - 1) // (INT8_MAX * max(table.shape[1], 1)))
    return _quantize_rows(table, max_value, np.int16)


def quantize_columns(values: Floats, starts: Ints) -> tuple[Int8s, Floats]:
    """Return the values of a sparse matrix, column after column (or row after row), as int8 and a scale for each.

    >>> quantize_columns(np.array([0.5, -1.0], np.float32), np.array([0, 2, 2]))[0].tolist()
    [64, -127]
    """
    scales = column_scales(values, starts)
    return round_columns(values, starts, scales), scales


def column_scales(values: Floats, starts: Ints) -> Floats:
    """Return the scale of each column by which its largest value becomes 127, column after column."""
    full = np.flatnonzero(np.diff(starts))
    max_abs = np.zeros(len(starts) - 1, np.float32)
    max_abs[full] = np.maximum.reduceat(np.abs(values), starts[full]) if len(full) else 0.0
    return (np.maximum(max_abs, 1e-30) / INT8_MAX).astype(np.float32)


def round_columns(values: Floats, starts: Ints, scales: Floats) -> Int8s:
    """Return the values of columns as int8, by scales that are at least those of ``column_scales``."""
    return np.rint(values / np.repeat(scales, np.diff(starts))).astype(np.int8)


def _quantize_rows(table: Floats, max_value: int, dtype: npt.DTypeLike) -> tuple[npt.NDArray[Any], Floats]:
    out, scales = np.empty(table.shape, dtype), np.empty(len(table), np.float32)
    for start in range(0, len(table), ROW_BLOCK):
        rows = table[start : start + ROW_BLOCK]
        max_abs = np.maximum(rows.max(axis=1, initial=0), -rows.min(axis=1, initial=0))
        scale = np.maximum(max_abs, np.float32(1e-30)) / np.float32(max_value)
        scaled = rows / scale[:, None]
        out[start : start + ROW_BLOCK] = np.rint(scaled, out=scaled)
        scales[start : start + ROW_BLOCK] = scale
    return out, scales
