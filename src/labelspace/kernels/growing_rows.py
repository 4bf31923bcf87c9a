"""A sparse matrix whose rows grow: labels and values of a row are adjacent in one pool, with room behind them.

Row r has ``sizes[r]`` entries from ``starts[r]`` on and room for ``rooms[r]``. A row that is full moves to the end of
the pool, ``end[0]``, with twice the room. Whoever adds makes sure first that the pool is long enough (``room_needed``).
``moments`` are the sum of all that was added to an entry, each times the ``moment`` of its step: they make the mean of
the matrix over steps.
"""

import numpy as np

from labelspace.kernels.compiled import kernel, part
from labelspace.types import Floats, Ints, Longs


@part()
def soft_threshold(value: np.float32, l1: np.float32) -> np.float32:
    """Sign(value) max(|value| - l1, 0)."""
    return value - max(min(value, l1), -l1)


@kernel()
def room_needed(rows: Ints, n_added: int, sizes: Ints, rooms: Ints) -> int:
    """Entries that the pool must have left before each of the rows gets ``n_added`` more."""
    needed = 0
    for row in rows:
        if sizes[row] + n_added > rooms[row]:
            needed += 2 * (sizes[row] + n_added)
    return needed


@kernel()
def move_row(
    row: int, n_added: int, labels: Ints, values: Floats, moments: Floats, starts: Longs, sizes: Ints, rooms: Ints,
    end: Longs,
) -> None:  # fmt: skip
    """Move a row to the end of the pool, with twice the room for ``n_added`` more entries."""
    start, new = starts[row], end[0]
    for m in range(sizes[row]):
        labels[new + m], values[new + m], moments[new + m] = labels[start + m], values[start + m], moments[start + m]
    starts[row], rooms[row] = new, 2 * (sizes[row] + n_added)
    end[0] += rooms[row]


@kernel()
def add_to_row(
    row: int, factor: np.float32, moment: np.float32, changed: Ints, steps: Floats, n_changed: int, slot: Ints,
    grow: bool, labels: Ints, values: Floats, moments: Floats, starts: Longs, sizes: Ints, rooms: Ints, end: Longs,
) -> None:  # fmt: skip
    """Add factor * steps[c] to the entry of each label changed[c]; entries that are not there are made if ``grow``.

    ``slot`` (n_labels) has the place of each label in ``changed``, else a negative number. It is the same afterwards.
    """
    start, found = starts[row], 0
    for m in range(start, start + sizes[row]):
        c = slot[labels[m]]
        if c >= 0:
            values[m] += factor * steps[c]
            moments[m] += moment * factor * steps[c]
            found += 1
            slot[labels[m]] = -3 - c  # found
    if found < n_changed and grow:
        if sizes[row] + n_changed - found > rooms[row]:
            move_row(row, n_changed - found, labels, values, moments, starts, sizes, rooms, end)
            start = starts[row]
        for c in range(n_changed):
            if slot[changed[c]] == c:
                m = start + sizes[row]
                labels[m], values[m], moments[m] = changed[c], factor * steps[c], moment * factor * steps[c]
                sizes[row] += 1
    for c in range(n_changed):
        slot[changed[c]] = c


@kernel()
def nonzero_rows(
    l1: Floats, labels: Ints, values: Floats, starts: Longs, sizes: Ints, shrink: bool, indptr: Longs,
    out_labels: Ints, out_values: Floats,
) -> int:  # fmt: skip
    """Copy the entries above l1[row] in size, one row after another; with ``shrink`` soft-thresholded.

    ``indptr`` (n_rows + 1) gets where each row begins. Returns the number of entries.
    """
    pos = 0
    for row in range(len(starts)):
        indptr[row] = pos
        for m in range(starts[row], starts[row] + sizes[row]):
            value = soft_threshold(values[m], l1[row])
            if value != 0.0:
                out_labels[pos], out_values[pos] = labels[m], value if shrink else values[m]
                pos += 1
    indptr[len(starts)] = pos
    return pos
