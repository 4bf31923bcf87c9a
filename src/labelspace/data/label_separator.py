"""What separates the labels of a cell, by the cells.

It is ``|``, ``;``, ``,``, a line end, or nothing:

1. If the labels are known, the separator that finds most of them.
2. Else ``|``, ``;`` and line ends, which hardly occur in names; of several, the most frequent one. If commas are in ten
   times as many cells, rule 3 decides.
3. Else commas, if there are fewer names between commas than there are cells, or if these names recur and cells do not:
   lists of names recur less than names. In the reverse case commas belong to names. Else the error asks.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from labelspace.data.records import split_cell
from labelspace.errors import DataError

LISTS = ("|", ";", "\n", "><")
SEPARATORS = (*LISTS, ",")
SHOWN = {"\n": "line ends", "><": "><", " ": "spaces"}
# Share of the names that must be known labels for a separator to be right. New files have new labels, so that a larger
# share would leave the separator open; with a smaller one, parts of names would do.
_KNOWN_SHARE = 0.5
# The larger the next four, the more files are an error that asks for the separator; the smaller, the more are misread.
_TIMES_USED = 3  # how often each cell with commas occurs, on average, if it is a single name
_TIMES_PARTS = 1.5  # how much more often parts, or cells, recur than the others
_TIMES_COMMAS = 10  # how many more cells have commas than another mark, so that the mark may be a slip
_UNIQUE = 0.8  # share of the cells with commas that are different, if they are lists
IsKnown = Callable[[str], bool]


def detect_separator(cells: Sequence[str], path: str | Path, is_known: IsKnown | None = None) -> str | None:
    """Detect the separator of the labels in cells with names; None if every cell is one label.

    >>> detect_separator(["red; green", "red"], "a.csv")
    ';'
    """
    cells = [cell for cell in cells if cell.strip()]
    used = _uses(cells, SEPARATORS)
    present = [mark for mark in SEPARATORS if used[mark]]
    if not present:
        return None
    if is_known is not None:
        shares = {mark: _known_share(cells, mark, is_known) for mark in (None, *present)}
        best = max(shares, key=lambda mark: shares[mark])
        if shares[best] >= _KNOWN_SHARE:
            return best
    mark = max((mark for mark in LISTS if used[mark]), key=lambda mark: used[mark], default=None)
    if mark is not None and used[","] < _TIMES_COMMAS * used[mark]:
        return mark
    return _comma(cells, path) or mark


def describe_other(cells: Sequence[str], mark: str | None) -> str | None:
    """Say that most cells hold another separator than ``mark``, which is used; None if they do not.

    >>> describe_other(["red; green", "green; blue", "blue, dark"], ",")
    "labels are separated by ',', but 2 of 3 cells hold ';'; the option label_separator names another"
    """
    used = _uses(cells, dict.fromkeys([*SEPARATORS, *([] if mark is None else [mark])]))
    other = max(SEPARATORS, key=lambda each: used[each])
    if 2 * used[other] <= len(cells) or (mark is not None and used[other] <= used[mark]):
        return None
    if mark is None and len({name for cell in cells for name in split_cell(cell, other)}) >= len(set(cells)):
        return None  # names have this mark in them, such as a comma
    how = "each cell is one label" if mark is None else f"labels are separated by {shown_mark(mark)}"
    problem = f"{used[other]:,} of {len(cells):,} cells hold {shown_mark(other)}"
    return f"{how}, but {problem}; the option label_separator names another"


def shown_mark(mark: str) -> str:
    """Return a separator for a message."""
    return SHOWN.get(mark, repr(mark))


def _uses(cells: Sequence[str], marks: Iterable[str]) -> dict[str, int]:
    """Return for each mark the number of cells that it splits."""
    used = {mark: sum(len(split_cell(cell, mark)) > 1 for cell in cells) for mark in marks}
    used["><"] = sum(cell.strip().startswith("<") and cell.strip().endswith(">") for cell in cells if "><" in cell)
    return used


def _known_share(cells: Sequence[str], mark: str | None, is_known: IsKnown) -> float:
    """Return the share of known names among those that a separator gives."""
    names = [name for cell in cells for name in split_cell(cell, mark)]
    return sum(map(is_known, names)) / max(len(names), 1)


def _comma(cells: Sequence[str], path: str | Path) -> str | None:
    listed = [cell.strip() for cell in cells if len(split_cell(cell, ",")) > 1]
    wholes = {cell.strip() for cell in cells}
    names = [name for cell in cells for name in split_cell(cell, ",")]
    parts, n_lists = set(names), len(set(listed))
    if len(parts) < len(wholes) or (n_lists > _UNIQUE * len(listed) and len(names) > _TIMES_PARTS * len(parts)):
        return ","
    if len(listed) >= _TIMES_USED * n_lists and len(parts) > _TIMES_PARTS * len(wholes):
        return None
    problem = f"{len(listed):,} of {len(cells):,} cells have a comma, such as {listed[0][:60]!r}"
    remedy = "which may separate two labels or belong to one; write label_separator=',' or label_separator='none'"
    rule = f"what separates the labels of {path} must be clear"
    raise DataError(f"{rule}, but {problem}, {remedy}", options=["label_separator"])
