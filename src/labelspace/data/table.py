"""Rows of a table with any columns as documents: a text of the input columns, a label for each output value.

1. The text of a row is ``column: value`` for each input, with ``; `` between them, fields that are missing left out.
2. Its labels are ``column: value`` for each output; a cell that is a list gives several.
3. In a chain of category columns a value lies below the value of the nearest level above that is not missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from numbers import Integral, Real
from pathlib import Path

import numpy as np

from labelspace.data.columns import check_columns, needed_columns
from labelspace.data.records import Record, Rows, checked_id
from labelspace.types import Columns, Csr, Hierarchy, LabelSpace, Longs

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none"})  # in lower case


def table_records(path: str | Path, rows: Rows, columns: Columns, with_labels: bool = True) -> Iterator[Record]:
    """The rows of a file as records, one at a time."""
    names = rows.names()
    if names:  # an empty file says nothing of its columns
        check_columns(path, names, columns, with_labels)
    for number, (place, row) in enumerate(rows.read(["id", *needed_columns(columns, with_labels)])):
        labels = row_labels(row, columns) if with_labels else ()
        yield Record(checked_id(row.get("id"), number, place), row_text(row, columns), None, labels, place.line)


def row_text(row: Mapping[str, object], columns: Columns) -> str:
    """The text of a row; empty where every input is missing.

    >>> columns = Columns(("title", "size", "price"), (("brand",),))
    >>> row_text({"title": " Brass Angle ", "size": "NA", "price": 119.0}, columns)
    'title: Brass Angle; price: 119'
    """
    cells = ((name, ", ".join(cell_values(row.get(name)))) for name in columns.inputs)
    return "; ".join(f"{name}: {cell}" for name, cell in cells if cell)


def row_labels(row: Mapping[str, object], columns: Columns) -> tuple[str, ...]:
    """The labels of a row, each once.

    >>> row_labels({"brand": "Trm", "tags": ["a", None, "b"]}, Columns(("title",), (("brand",), ("tags",))))
    ('brand: Trm', 'tags: a', 'tags: b')
    """
    values = ((name, value) for name in columns.output_names for value in cell_values(row.get(name)))
    return tuple(dict.fromkeys(f"{name}: {value}" for name, value in values))


def cell_values(cell: object) -> list[str]:
    """What a cell holds, missing values left out: one value, or those of a list (of a mapping, its values).

    >>> cell_values(119.0), cell_values([1.5, "n/a", True]), cell_values(float("nan"))
    (['119'], ['1.5', 'True'], [])
    """
    if isinstance(cell, str):
        value = cell.strip()
    elif isinstance(cell, Iterable) and not isinstance(cell, bytes):
        parts = cell.values() if isinstance(cell, Mapping) else cell
        return [value for part in parts for value in cell_values(part)]
    else:
        value = _written(cell)
    return [] if value.lower() in MISSING else [value]


def _written(cell: object) -> str:
    """A single value as one would write it by hand: 119 and not 119.0."""
    if isinstance(cell, bytes):
        return cell.decode(errors="replace").strip()
    if isinstance(cell, Decimal):
        return f"{cell.normalize():f}"
    if isinstance(cell, Real) and not isinstance(cell, Integral):
        number = float(cell)
        if number.is_integer() and abs(number) < 1e15:
            return str(int(number))
        # A number that was stored in 32 bits, such as 19.99, is 19.989999771118164 in 64.
        short = np.float32(number) if abs(number) < 1e30 else np.float32(0)
        return str(short) if float(short) == number else repr(number)
    return str(cell)


def describe_labels(labels: LabelSpace, Y: Csr, columns: Columns) -> LabelSpace:
    """The labels with what training rows Y (n, n_labels) say of them: values as synonyms, chains as hierarchy.

    >>> from scipy.sparse import csr_matrix
    >>> labels, Y = LabelSpace(["L0: Drinks", "L1: Juice", "L1: Tea"]), csr_matrix([[1, 1, 0], [1, 0, 1]])
    >>> labels = describe_labels(labels, Y, Columns(("title",), (("L0", "L1"),)))
    >>> labels.synonyms, labels.hierarchy.edges.tolist()
    ([['Drinks'], ['Juice'], ['Tea']], [[1, 0], [2, 0]])
    """
    values = [[columns.parted(name)[1]] for name in labels.names]
    return replace(labels, synonyms=values, hierarchy=_hierarchy(labels, Y, columns))


def _hierarchy(labels: LabelSpace, Y: Csr, columns: Columns) -> Hierarchy | None:
    """The chains of columns as the rows have them; without chains, what the names of the labels say as paths."""
    if all(len(group) == 1 for group in columns.outputs):
        return labels.hierarchy
    members, by_label = columns.masks(labels.names), Y.tocsc()
    edges = [np.zeros((0, 2), np.int64)]
    for chain in columns.outputs:
        levels = [np.flatnonzero(members[name]) for name in chain]
        edges += _chain_edges([by_label[:, level].tocsr() for level in levels], levels)
    pairs = np.concatenate(edges)
    return Hierarchy.from_edges(pairs, len(labels)) if len(pairs) else None


def _chain_edges(blocks: list[Csr], levels: list[Longs]) -> Iterator[Longs]:
    """Edges (child, parent) of one chain; a block is the rows (n, labels of its level)."""
    there = [np.diff(block.indptr) > 0 for block in blocks]  # (n,) a level
    for child in range(1, len(blocks)):
        waiting = there[child].copy()  # rows whose nearest level above has not been met
        for parent in reversed(range(child)):
            rows = np.flatnonzero(waiting & there[parent])
            met = (blocks[child][rows].T @ blocks[parent][rows]).tocoo()  # documents that have both
            yield np.stack([levels[child][met.row], levels[parent][met.col]], axis=1)
            waiting &= ~there[parent]
