"""The columns of a table that are read and predicted: the options ``inputs`` and ``outputs``."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from labelspace.data.read_options import TableOptions
from labelspace.data.records import FIELDS
from labelspace.errors import ParameterError
from labelspace.types import Columns

EXAMPLE = "inputs=['title', 'price'], outputs=['brand', 'L0_category', 'L1_category']"
TABLE = ("inputs", "outputs")  # the options of this module


def parse_columns(inputs: str, outputs: str) -> Columns:
    """Return the columns of ``inputs`` and ``outputs``, each names separated by commas.

    Outputs whose names differ in one number only are levels of one category path; other paths are written with ``>``.

    >>> parse_columns("title, price", "brand,L1_category,L0_category").outputs
    (('brand',), ('L0_category', 'L1_category'))
    >>> parse_columns("title", "department > aisle > shelf").outputs
    (('department', 'aisle', 'shelf'),)
    """
    groups = [split_names("outputs", group, ">") for group in split_names("outputs", outputs, ",")]
    named = Columns(tuple(split_names("inputs", inputs, ",")), tuple(map(tuple, groups)))  # checks for duplicates
    return replace(named, outputs=_group_levels(named.outputs))


def table_columns(options: TableOptions) -> Columns | None:
    """Return the columns of a table if ``inputs`` and ``outputs`` are given, else None."""
    inputs, outputs = options.get("inputs"), options.get("outputs")
    if inputs is None and outputs is None:
        return None
    if inputs is None or outputs is None:
        missing = "inputs" if inputs is None else "outputs"
        rule = "inputs and outputs go together"
        raise ParameterError(f"{rule}, but {missing} is missing; write {EXAMPLE}", options=TABLE)
    if "text" in options:
        rule = "inputs and outputs name the columns of a table"
        raise ParameterError(f"{rule}, but text is given too; write {EXAMPLE}", options=[*TABLE, "text"])
    groups = outputs if isinstance(outputs, str) else [">".join(name_list("outputs", group)) for group in outputs]
    for name in [] if isinstance(inputs, str) else [*inputs, *groups]:
        if "," in name:
            raise ParameterError(f"the columns of a table must be named without commas, but one is {name!r}; rename it")
    return parse_columns(",".join(name_list("inputs", inputs)), groups if isinstance(groups, str) else ",".join(groups))


def name_list(what: str, names: Any) -> list[str]:  # noqa: ANN401 - a caller may pass anything
    """Return names as a list; a single name is a list of one."""
    listed = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [names]
    if not listed or not all(isinstance(name, str) and name for name in listed):
        raise ParameterError(f"{what} must be names, but is {str(names)[:60]}; write for example {what}=['title']")
    return listed


def split_names(option: str, text: str, separator: str) -> list[str]:
    """Return the names in the value of an option, without spaces around them; raise if one is empty."""
    names = [name.strip() for name in text.split(separator)]
    if not all(names):
        example = EXAMPLE if option in TABLE else f"{option}=['title']"
        rule = f"{option} must be column names separated by {separator!r}"
        raise ParameterError(f"{rule}, but one is empty in {text!r}; write {example}", options=[*TABLE, option])
    return names


def _group_levels(groups: Sequence[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Merge single columns whose names differ in one number only into one group, in the order of that number."""
    similar: dict[tuple[str, str], dict[int, str]] = {}  # (prefix, suffix) of a number -> number -> name
    for group in groups:
        for match in re.finditer(r"\d+", group[0]) if len(group) == 1 else ():
            affixes = group[0][: match.start()], group[0][match.end() :]
            similar.setdefault(affixes, {})[int(match[0])] = group[0]
    merged: dict[str, tuple[str, ...]] = {}
    for levels in sorted(similar.values(), key=len, reverse=True):
        names = [levels[number] for number in sorted(levels) if levels[number] not in merged]
        merged |= dict.fromkeys(names, tuple(names)) if len(names) > 1 else {}
    return tuple(dict.fromkeys(merged.get(group[0], group) if len(group) == 1 else group for group in groups))


def required_columns(columns: Columns, with_labels: bool) -> tuple[str, ...]:
    """Return the columns that a file must have; the outputs only if labels are read."""
    return columns.inputs + (columns.output_names if with_labels else ())


def is_table(names: Sequence[str], columns: Columns, with_labels: bool) -> bool:
    """Return whether a file with these columns is such a table; else it has the fields ``text`` and ``labels``.

    >>> columns = Columns(("title",), (("brand",),))
    >>> is_table(["title"], columns, False), is_table(["text", "labels"], columns, True), is_table([], columns, True)
    (True, False, True)
    """
    required = set(required_columns(columns, with_labels))
    present = required.intersection(names)
    return present == required or bool(present.difference(FIELDS)) or not {"text", "features"}.intersection(names)
