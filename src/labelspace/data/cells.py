"""The values of a cell of a table, as texts."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from numbers import Integral, Real

import numpy as np

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none"})  # in lower case


def cell_values(cell: object) -> list[str]:
    """Return the values of a cell, without missing ones: one, or those of a list or mapping.

    >>> cell_values(119.0), cell_values([1.5, "n/a", True]), cell_values(float("nan"))
    (['119'], ['1.5', 'True'], [])
    """
    values, pending = [], [cell]  # not recursive: lists may be nested deeper than Python's stack
    while pending:
        part = pending.pop()
        if isinstance(part, Iterable) and not isinstance(part, (str, bytes)):
            pending += reversed([*(part.values() if isinstance(part, Mapping) else part)])
            continue
        value = part.strip() if isinstance(part, str) else _to_string(part)
        if value.lower() not in MISSING:
            values.append(value)
    return values


def _to_string(cell: object) -> str:
    """Return a value as written by hand: 119 and not 119.0."""
    if isinstance(cell, bytes):
        return cell.decode(errors="replace").strip()
    if isinstance(cell, Decimal):
        return f"{cell.normalize():f}"
    if isinstance(cell, Real) and not isinstance(cell, Integral):
        number = float(cell)
        if number.is_integer() and abs(number) < 1e15:
            return str(int(number))
        # A float32 such as 19.99 is 19.989999771118164 in float64.
        short = np.float32(number) if abs(number) < 1e30 else np.float32(0)
        return str(short) if float(short) == number else repr(number)
    return str(cell)
