"""Labels as Python objects, as a matrix Y and a label space.

1. A matrix of 0 and 1, sparse or dense, or a table of such columns, whose names are the labels.
2. A column with the names of each document, in a list or set; None, NaN and an empty list are no labels.
3. A column with one name per document, or with names in a text whose separator is given.
4. Numbers: names, such as "250" for 250; ids of the labels if these are known, and none is named by another id.
   Class ids of Hugging Face datasets are names.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelspace.data.label_mapping import matched_labels, ones_of_rows
from labelspace.data.label_separator import detect_separator
from labelspace.data.objects.frames import Given, is_frame, is_missing, named_column, to_frame, to_list
from labelspace.data.read_options import NO_SEPARATOR
from labelspace.data.records import split_cell
from labelspace.errors import DataError, ParameterError
from labelspace.types import Csr, LabelSpace

_RULE = "labels must be a sequence of lists of names"
_ONE = "give one list per text: [['name'], ...]"
_MATRIX = "a matrix of 0 and 1 is an array: np.array(labels)"


def read_labels(
    given: Given, n: int, known: LabelSpace | None = None, separator: str | None = None
) -> tuple[Csr, LabelSpace]:
    """Return the labels of n documents: Y (n, n_labels), and the label space; ``known`` labels keep their ids.

    A text that looks like several names is an error unless ``separator`` says what it is.

    >>> Y, labels = read_labels([["bread", "rye"], "tea".split(), None], 3)
    >>> labels.names, Y.toarray().tolist()
    (['bread', 'rye', 'tea'], [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    """
    frame = to_frame(given) if is_frame(given) else None
    numbers = given if len(getattr(given, "shape", ())) == 2 else None
    if frame is not None:
        numbers = frame.numbers()
    if numbers is not None:
        Y, space = indicator_labels(numbers, None if frame is None else frame.names, known)
        _check_length(Y.shape[0], n)
        return Y, space
    listed = named_column(given, to_list(given, _RULE, _ONE))
    _check_length(len(listed), n)
    return _of_rows(label_rows(listed, separator, detect=True), known)


def _check_length(n_rows: int, n: int) -> None:
    if n_rows != n:
        raise DataError(f"there must be one list of labels per text, but there are {n_rows} for {n} texts; give all")


def label_rows(listed: Sequence[Any], separator: str | None, detect: bool) -> list[list[Any]]:
    """Return the names or ids of each document."""
    present = [value for value in listed if not is_missing(value)]
    if present and all(isinstance(value, (str, Integral)) and not isinstance(value, bool) for value in present):
        return _of_cells(listed, separator, detect)
    if separator is not None and detect and present:
        problem = f"row 0 is {present[0]!r:.40}"
        raise ParameterError(f"label_separator is for labels that are texts, but {problem}; leave it out")
    return [[] if is_missing(names) else _checked_names(row, names) for row, names in enumerate(listed)]


def _of_cells(cells: Sequence[Any], separator: str | None, detect: bool) -> list[list[Any]]:
    """Return the labels of cells with one name or id each, or with names between separators."""
    if separator is None and detect:
        _check_single([cell for cell in cells if isinstance(cell, str)])
    mark = None if separator == NO_SEPARATOR else separator
    present = ("" if is_missing(cell) else cell for cell in cells)
    return [split_cell(cell, mark) if isinstance(cell, str) else [int(cell)] for cell in present]


def _check_single(cells: Sequence[str]) -> None:
    """Raise DataError for texts that may be several names each."""
    try:
        mark = detect_separator(cells, "the labels")
    except DataError:  # commas, which may separate names or belong to them
        mark = ","
    if mark is not None:
        shown = next(cell for cell in cells if len(split_cell(cell, mark)) > 1)[:60]
        remedy = f"write label_separator={mark!r}, or label_separator={NO_SEPARATOR!r} where it is one"
        raise DataError(f"labels that are texts must be one name each, but {shown!r} may be several; {remedy}")


def _checked_names(row: int, names: Given) -> list[Any]:
    """Return the names or ids of one text as a list; an iterator is read once, here."""
    listed: list[Any] | None = None
    if isinstance(names, np.ndarray):
        listed = names.tolist()
    elif isinstance(names, Iterable) and not isinstance(names, (str, bytes, Mapping)):
        listed = list(names)
    if listed is None or not all(_is_label(name) for name in listed):
        shown = " ".join(repr(names).split())[:60]
        raise DataError(f"the labels of a text must be a list of names, but row {row} has {shown}; write ['name']")
    return listed


def _is_label(name: object) -> bool:
    return bool(name) if isinstance(name, str) else isinstance(name, Integral) and not isinstance(name, bool)


def _of_rows(rows: list[list[Any]], known: LabelSpace | None) -> tuple[Csr, LabelSpace]:
    labels = set(chain.from_iterable(rows))
    numbers = [label for label in labels if not isinstance(label, str)]
    if numbers:
        _check_numbers(rows, numbers, labels)
        if known is None or any(known.find(str(number)) not in (None, number) for number in numbers):
            return _of_rows([[str(number) for number in row] for row in rows], known)
        _check_ids(rows, numbers, known)
    names = sorted(label for label in labels if isinstance(label, str))
    if known is None:
        space = LabelSpace(names)
        space = space.with_paths() if space.are_paths else space
    else:
        space = known.extended(name for name in names if known.find(name) is None)
    id_of: dict[Any, Any] = {label: label if not isinstance(label, str) else space.find(label) for label in labels}
    return ones_of_rows([sorted({id_of[label] for label in row}) for row in rows], len(space)), space


def _check_numbers(rows: list[list[Any]], numbers: list[int], labels: set[Any]) -> None:
    """Raise DataError unless all labels are numbers, and their rows are no matrix of 0 and 1."""
    if len(numbers) < len(labels):
        name = next(label for label in labels if isinstance(label, str))
        raise DataError(f"labels must be all names or all ids, but there are {numbers[0]} and {name!r}; give names")
    widths = {*map(len, rows)}
    if any(len(set(row)) < len(row) for row in rows) or (labels == {0, 1} and widths == {2}):
        raise DataError(f"the labels of a text must each be given once, but are {rows[0]!r:.60}; {_MATRIX}")


def _check_ids(rows: list[list[Any]], numbers: list[int], known: LabelSpace) -> None:
    """Raise DataError unless ids are of known labels, and are no rows of a matrix of 0 and 1."""
    wrong = next((number for number in numbers if not 0 <= number < len(known)), None)
    if wrong is not None:
        raise DataError(f"a label id must be from 0 to {len(known) - 1}, but one is {wrong}; correct it, or give names")
    if len(rows[0]) > 1 and {*map(len, rows)} == {len(known)}:
        raise DataError(f"the label ids of a text must be some of all, but are {rows[0]!r:.60}; {_MATRIX}")


def indicator_labels(given: Given, names: Sequence[str] | None, known: LabelSpace | None) -> tuple[Csr, LabelSpace]:
    """Return Y of a matrix of 0 and 1, and its labels: ``names``, else the known ones, else numbers."""
    matrix = given if sp.issparse(given) else np.asarray(given)
    if matrix.dtype.kind not in "biuf":
        raise DataError(f"{_RULE}, or a matrix of 0 and 1, but is an array of {matrix.dtype}; {_ONE}")
    Y = sp.csr_matrix(matrix, dtype=np.float32, copy=True)
    Y.sum_duplicates()
    Y.eliminate_zeros()
    if (Y.data != 1).any():
        wrong = Y.data[Y.data != 1][0]
        raise DataError(f"a matrix of labels must hold 0 and 1, but holds {wrong:g}; mark each label with 1")
    if names is not None:
        if len(set(names)) < len(names):
            problem = f"{len(names)} have {len(set(names))}"
            raise DataError(f"columns of labels must differ in name, but {problem}; rename some")
        return to_label_space(Y, LabelSpace(list(names)), known)
    n_labels = Y.shape[1]
    space = LabelSpace.numbered(n_labels) if known is None else known
    if len(space) < n_labels or (len(space) > n_labels and space.hierarchy is None):  # one may add labels at the end
        problem = f"there are {len(space)} names for {n_labels} columns; give the names of its columns in their order"
        raise DataError(f"labels must name every column of a matrix, but {problem}")
    Y.resize((Y.shape[0], len(space)))
    return Y, space


def to_label_space(Y: Csr, labels: LabelSpace, known: LabelSpace | None) -> tuple[Csr, LabelSpace]:
    """Return Y with the ids of the known labels, if any; without, of the labels and those that their paths imply."""
    if known is not None:
        return matched_labels(Y, labels, known)
    space = labels.with_paths() if labels.hierarchy is None and labels.are_paths else labels
    Y.resize((Y.shape[0], len(space)))
    return Y, space
