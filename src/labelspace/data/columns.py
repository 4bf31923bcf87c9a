"""Which columns of a table are inputs and which outputs, as the command line names them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from labelspace.data.records import FIELDS
from labelspace.errors import DataError, ParameterError
from labelspace.types import Columns

EXAMPLE = "--inputs title,price --outputs brand,L0_category,L1_category"


def parse_columns(inputs: str | None, outputs: str | None) -> Columns | None:
    """What ``--inputs`` and ``--outputs`` say; None where both are left out.

    Outputs whose names differ in one number only are the levels of a chain; another chain is written with ``>``.

    >>> parse_columns("title, price", "brand,L1_category,L0_category").outputs
    (('brand',), ('L0_category', 'L1_category'))
    >>> parse_columns("title", "department > aisle > shelf").outputs
    (('department', 'aisle', 'shelf'),)
    """
    if inputs is None and outputs is None:
        return None
    if inputs is None or outputs is None:
        missing = "--inputs" if inputs is None else "--outputs"
        raise ParameterError(f"--inputs and --outputs go together, but {missing} is missing; write {EXAMPLE}")
    groups = [_listed("--outputs", group, ">") for group in _listed("--outputs", outputs, ",")]
    named = Columns(tuple(_listed("--inputs", inputs, ",")), tuple(map(tuple, groups)))  # none of them twice
    return replace(named, outputs=_chained(named.outputs))


def _listed(flag: str, text: str, separator: str) -> list[str]:
    names = [name.strip() for name in text.split(separator)]
    if not all(names):
        raise ParameterError(
            f"{flag} must be names of columns with {separator!r} between them, but one is empty in {text!r}; "
            f"write {EXAMPLE}"
        )
    return names


def _chained(groups: Sequence[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Lone columns whose names differ in one number only as one group, in the order of that number."""
    alike: dict[tuple[str, str], dict[int, str]] = {}  # what stands around a number -> number -> name
    for group in groups:
        for found in re.finditer(r"\d+", group[0]) if len(group) == 1 else ():
            around = group[0][: found.start()], group[0][found.end() :]
            alike.setdefault(around, {})[int(found[0])] = group[0]
    layer_chain: dict[str, tuple[str, ...]] = {}
    for levels in sorted(alike.values(), key=len, reverse=True):
        free = [levels[number] for number in sorted(levels) if levels[number] not in layer_chain]
        layer_chain |= dict.fromkeys(free, tuple(free)) if len(free) > 1 else {}
    return tuple(dict.fromkeys(layer_chain.get(group[0], group) if len(group) == 1 else group for group in groups))


def needed_columns(columns: Columns, with_labels: bool) -> tuple[str, ...]:
    """The columns that a file must have: the outputs only where labels are asked for."""
    return columns.inputs + (columns.output_names if with_labels else ())


def is_table(names: Sequence[str], columns: Columns, with_labels: bool) -> bool:
    """Whether a file with these columns is such a table; else it has texts and labels in the usual fields.

    >>> columns = Columns(("title",), (("brand",),))
    >>> is_table(["title"], columns, False), is_table(["text", "labels"], columns, True), is_table([], columns, True)
    (True, False, True)
    """
    needed = set(needed_columns(columns, with_labels))
    there = needed.intersection(names)
    return there == needed or bool(there.difference(FIELDS)) or not {"text", "features"}.intersection(names)


def check_columns(path: str | Path, names: Sequence[str], columns: Columns, with_labels: bool) -> None:
    """A file without one of the columns is an error that names it."""
    for name in needed_columns(columns, with_labels):
        if name not in names:
            close = get_close_matches(name, names, n=1)
            remedy = f"did you mean {close[0]!r}?" if close else "name columns that it has, or add this one"
            raise DataError(f"{path} must have the column {name!r}, but has: {', '.join(names)[:200]}; {remedy}")
