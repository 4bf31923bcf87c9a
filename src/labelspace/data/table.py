"""Tables: the options ``inputs`` and ``outputs``, which name columns, and rows as documents.

1. The text of a row is ``column: value`` for each input, joined by ``; ``, without missing values.
2. Its labels are ``column: value`` for each output; a cell with a list gives several.
3. In a path of category columns, the parent of a value is the value of the nearest level above that is not missing.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from labelspace.data.cells import cell_values
from labelspace.data.fields import check_column
from labelspace.data.read_options import TableOptions
from labelspace.data.records import FIELDS, Record, Rows, checked_id
from labelspace.data.side_columns import check_values, with_values
from labelspace.errors import DataError, ParameterError
from labelspace.types import Columns, Csr, Hierarchy, LabelSpace, Longs, SideColumns

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
    beside = side_columns(options)
    groups = outputs if isinstance(outputs, str) else [">".join(name_list("outputs", group)) for group in outputs]
    for name in [] if isinstance(inputs, str) else [*inputs, *groups]:
        if "," in name:
            raise ParameterError(f"the columns of a table must be named without commas, but one is {name!r}; rename it")
    groups = groups if isinstance(groups, str) else ",".join(groups)
    return replace(parse_columns(",".join(name_list("inputs", inputs)), groups), beside=beside)


def side_columns(options: Mapping[str, Any]) -> SideColumns:
    """Return the columns beside the text that options name; a file of vectors is none."""
    numeric, categorical = (
        tuple(name_list(key, options[key])) if key in options else () for key in ("numeric", "categorical")
    )
    vectors = options.get("vectors")
    return SideColumns(numeric, categorical, vectors if isinstance(vectors, str) else None)


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
    return columns.inputs + columns.beside.names + (columns.output_names if with_labels else ())


def is_table(names: Sequence[str], columns: Columns, with_labels: bool) -> bool:
    """Return whether a file with these columns is such a table; else it has the fields ``text`` and ``labels``.

    >>> columns = Columns(("title",), (("brand",),))
    >>> is_table(["title"], columns, False), is_table(["text", "labels"], columns, True), is_table([], columns, True)
    (True, False, True)
    """
    required = set(required_columns(columns, with_labels))
    present = required.intersection(names)
    return present == required or bool(present.difference(FIELDS)) or not {"text", "features"}.intersection(names)


def table_records(
    path: str | Path, rows: Rows, columns: Columns, with_labels: bool = True, first: int = 0, is_checked: bool = False
) -> Iterator[Record]:
    """Return the rows of a file as records; ``first`` is the number of its first row.

    ``is_checked`` says that the file is known to have the columns.
    """
    names = [] if is_checked else rows.names()
    required = required_columns(columns, with_labels)
    for name in required if names else ():  # an empty file has no columns
        check_column(path, names, name)
    for number, (location, row) in enumerate(rows.read(["id", *required]), first):
        labels = row_labels(row, columns) if with_labels else ()
        text = with_values(row_text(row, columns), row, columns.beside, str(location))
        yield Record(checked_id(row.get("id"), number, location), text, None, labels, location.line)


def row_text(row: Mapping[str, object], columns: Columns) -> str:
    """Return the text of a row; empty if every input is missing.

    >>> columns = Columns(("title", "size", "price"), (("brand",),))
    >>> row_text({"title": " Brass Angle ", "size": "NA", "price": 119.0}, columns)
    'title: Brass Angle; price: 119'
    """
    cells = ((name, ", ".join(cell_values(row.get(name)))) for name in columns.inputs)
    return "; ".join(f"{name}: {cell}" for name, cell in cells if cell)


def row_texts(inputs: Iterable[Any], columns: Columns | None) -> Iterable[Any]:
    """Return texts as they are, rows of a table as texts; raise DataError for a row with none of the columns."""
    if columns is None:
        return inputs
    texts = []
    for number, given in enumerate(inputs):
        if isinstance(given, Mapping) and not set(columns.inputs).intersection(given):
            problem = f"row {number} has: {', '.join(map(str, given))[:80]}; name its fields like them"
            raise DataError(f"a row must have some of the columns {', '.join(columns.inputs)}, but {problem}")
        texts.append(_given_text(given, columns, number) if isinstance(given, Mapping) else given)
    return texts


def _given_text(row: Mapping[str, Any], columns: Columns, number: int) -> str:
    check_values(row, columns.beside)
    return with_values(row_text(row, columns), row, columns.beside, f"row {number}")


def row_labels(row: Mapping[str, object], columns: Columns) -> tuple[str, ...]:
    """Return the labels of a row, each once.

    >>> row_labels({"brand": "Trm", "tags": ["a", None, "b"]}, Columns(("title",), (("brand",), ("tags",))))
    ('brand: Trm', 'tags: a', 'tags: b')
    """
    values = ((name, value) for name in columns.output_names for value in cell_values(row.get(name)))
    return tuple(dict.fromkeys(f"{name}: {value}" for name, value in values))


def describe_labels(labels: LabelSpace, Y: Csr, columns: Columns) -> LabelSpace:
    """Return the labels with their values as synonyms, and the hierarchy of the training rows Y (n, n_labels).

    >>> from scipy.sparse import csr_matrix
    >>> labels, Y = LabelSpace(["L0: Drinks", "L1: Juice", "L1: Tea"]), csr_matrix([[1, 1, 0], [1, 0, 1]])
    >>> labels = describe_labels(labels, Y, Columns(("title",), (("L0", "L1"),)))
    >>> labels.synonyms, labels.hierarchy.edges.tolist()
    ([['Drinks'], ['Juice'], ['Tea']], [[1, 0], [2, 0]])
    """
    values = [[columns.split_label(name)[1]] for name in labels.names]
    return replace(labels, synonyms=values, hierarchy=_hierarchy(labels, Y, columns))


def _hierarchy(labels: LabelSpace, Y: Csr, columns: Columns) -> Hierarchy | None:
    """Return the hierarchy of the category columns as in the rows; without any, that of label names that are paths."""
    if all(len(group) == 1 for group in columns.outputs):
        return labels.hierarchy
    members, by_label = columns.masks(labels.names), Y.tocsc()
    edges = [np.zeros((0, 2), np.int64)]
    for group in columns.outputs:
        levels = [np.flatnonzero(members[name]) for name in group]
        edges += _level_edges([by_label[:, level].tocsr() for level in levels], levels)
    pairs = np.concatenate(edges)
    return Hierarchy.from_edges(pairs, len(labels)) if len(pairs) else None


def _level_edges(blocks: list[Csr], levels: list[Longs]) -> Iterator[Longs]:
    """Return the edges (child, parent) of one path of levels; a block is the columns of Y of one level."""
    present = [np.diff(block.indptr) > 0 for block in blocks]  # (n,) per level
    for child in range(1, len(blocks)):
        unmatched = present[child].copy()  # rows whose nearest level above has not been reached
        for parent in reversed(range(child)):
            rows = np.flatnonzero(unmatched & present[parent])
            pairs = (blocks[child][rows].T @ blocks[parent][rows]).tocoo()  # documents that have both
            yield np.stack([levels[child][pairs.row], levels[parent][pairs.col]], axis=1)
            unmatched &= ~present[parent]
