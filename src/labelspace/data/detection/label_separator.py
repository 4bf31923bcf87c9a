"""What separates the labels of a cell: ``|``, ``;``, ``,``, a line end, or nothing.

1. If the labels are known, the separator that finds most of them.
2. Else ``|``, ``;`` and line ends, which hardly occur in names; of several, the most frequent one. If commas are in ten
   times as many cells, rule 3 decides.
3. Else commas, if there are fewer names between commas than there are cells, or if these names recur and cells do not:
   lists of names recur less than names. In the reverse case commas belong to names. Else the error asks.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from labelspace.errors import DataError

LISTS = ("|", ";", "\n", "><")
SEPARATORS = (*LISTS, ",")
SHOWN = {"\n": "line ends", "><": "><", " ": "spaces"}
_ENTITY = re.compile(r"&#?\w{1,10};")  # its semicolon separates nothing
# Share of the names that must be known labels for a separator to be right. New files have new labels, so that a larger
# share would leave the separator open; with a smaller one, parts of names would do.
_KNOWN_SHARE = 0.5
# The larger the next four, the more files are an error that asks for the separator; the smaller, the more are misread.
_TIMES_USED = 3  # how often each cell with commas occurs, on average, if it is a single name
_TIMES_PARTS = 1.5  # how much more often parts, or cells, recur than the others
_TIMES_COMMAS = 10  # how many more cells have commas than another mark, so that the mark may be a slip
_UNIQUE = 0.8  # share of the cells with commas that are different, if they are lists


def split_cell(cell: str, separator: str | None) -> list[str]:
    """Return the names in a cell, without spaces around them and without empty ones.

    >>> split_cell("red ; green;", ";"), split_cell("<python><pandas>", "><"), split_cell("R&amp;D; a", ";")
    (['red', 'green'], ['python', 'pandas'], ['R&amp;D', 'a'])
    """
    if separator is None:
        parts = [cell]
    elif separator == "><":
        parts = cell.strip().removeprefix("<").removesuffix(">").split("><")
    elif separator == ";" and "&" in cell:
        entities = [match.end() - 1 for match in _ENTITY.finditer(cell)]
        cuts = [at for at, char in enumerate(cell) if char == ";" and at not in entities]
        parts = [cell[start + 1 : stop] for start, stop in zip([-1, *cuts], [*cuts, len(cell)], strict=True)]
    else:
        parts = cell.split(separator)
    return [part for part in map(str.strip, parts) if part]


def detect_separator(
    cells: Sequence[str], path: str | Path, is_known: Callable[[str], bool] | None = None
) -> str | None:
    """Detect the separator of the labels in cells with names; None if every cell is one label.

    >>> detect_separator(["red; green", "red"], "a.csv")
    ';'
    """
    cells = [cell for cell in cells if cell.strip()]
    used = {mark: sum(len(split_cell(cell, mark)) > 1 for cell in cells) for mark in SEPARATORS}
    used["><"] = sum(cell.strip().startswith("<") and cell.strip().endswith(">") for cell in cells if "><" in cell)
    present = [mark for mark in SEPARATORS if used[mark]]
    if not present:
        return None
    if is_known is not None:
        found = _with_most_known(cells, [None, *present], is_known)
        if found is not None:
            return found[0]
    lists = [mark for mark in LISTS if used[mark]]
    mark = max(lists, key=lambda mark: used[mark], default=None)
    if mark is not None and used[","] < _TIMES_COMMAS * used[mark]:
        return mark
    return _comma(cells, path) or mark


def _with_most_known(
    cells: Sequence[str], separators: Iterable[str | None], is_known: Callable[[str], bool]
) -> tuple[str | None] | None:
    """Return the separator with the largest share of known names, if it finds most of them."""
    shares: dict[str | None, float] = {}
    for mark in separators:
        names = [name for cell in cells for name in split_cell(cell, mark)]
        shares[mark] = sum(map(is_known, names)) / max(len(names), 1)
    best = max(shares, key=lambda mark: shares[mark])
    return (best,) if shares[best] >= _KNOWN_SHARE else None


def _comma(cells: Sequence[str], path: str | Path) -> str | None:
    listed = [cell.strip() for cell in cells if len(split_cell(cell, ",")) > 1]
    wholes = {cell.strip() for cell in cells}
    names = [name for cell in cells for name in split_cell(cell, ",")]
    parts, n_lists = set(names), len(set(listed))
    if len(parts) < len(wholes) or (n_lists > _UNIQUE * len(listed) and len(names) > _TIMES_PARTS * len(parts)):
        return ","
    if len(listed) >= _TIMES_USED * n_lists and len(parts) > _TIMES_PARTS * len(wholes):
        return None
    raise DataError(
        f"what separates the labels of {path} must be clear, but {len(listed):,} of {len(cells):,} cells have a comma, "
        f"such as {listed[0][:60]!r}, which may separate two labels or belong to one; write "
        "label_separator=',' or label_separator='none'",
        options=["label_separator"],
    )
