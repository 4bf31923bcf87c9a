"""What the cells of a column hold, so that texts are not read as labels, and errors can say what was seen.

Labels recur from row to row, texts do not. A column holds texts if its cells have at least two words on average, and
hardly any of them recurs, neither as a whole nor split at one of the separators of labels. Cells are lists, and no
texts, if most hold a separator that hardly occurs in texts.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from labelspace.data.archives import without_compression
from labelspace.data.cells import cell_values
from labelspace.data.label_separator import SEPARATORS
from labelspace.data.records import is_json, split_cell
from labelspace.errors import DataError

JUDGED_ROWS = 2_000
_SHOWN_COLUMNS = 12  # in an error
_MARKS = ("|", ";", "><")  # that separate labels, and are rare in texts
_MIN_CELLS = 10  # fewer do not show whether values recur
_MIN_WORDS = 2  # codes and single words may be labels that occur once
# Share of the characters in names that recur, below which cells are texts. Texts stay below it even if all begin or end
# with the same words; labels are far above it, unless nearly all are of one document.
_RECURRING = 0.2


@dataclass(frozen=True)
class ColumnValues:
    """What was seen in a column: the cells that are not empty, and the names in them."""

    name: str
    n_cells: int
    n_names: int  # that differ
    n_words: float  # mean per name
    recurring: float  # share of the characters that are in names of several cells
    are_numbers: bool
    are_lists: bool

    @property
    def is_text(self) -> bool:
        """Whether the cells are texts, and no labels."""
        return (
            not self.are_lists
            and self.n_cells >= _MIN_CELLS
            and self.n_words >= _MIN_WORDS
            and self.recurring < _RECURRING
        )

    def __str__(self) -> str:
        if not self.n_cells:
            return self.name
        return f"{self.name} ({self.n_names:,} values in {self.n_cells:,} cells, {self.n_words:.1f} words each)"


def column_values(name: str, cells: Sequence[object]) -> ColumnValues:
    """Return what is in the cells of a column, split at the separator with which most recurs.

    >>> str(column_values("category", ["tea; milk", "milk", "tea; bread", "bread"]))
    'category (3 values in 4 cells, 1.0 words each)'
    """
    values = [found for cell in cells if (found := cell_values(cell))]
    if any(isinstance(cell, (list, dict)) or is_json(str(cell)) for cell in cells):
        return replace(_of_names(name, values), are_lists=True)  # they say themselves what their labels are
    split = (
        [[part for value in row for part in split_cell(value, mark)] for row in values] for mark in (None, *SEPARATORS)
    )
    best = max((_of_names(name, names) for names in split), key=lambda found: found.recurring)
    most = max(sum(any(mark in value for value in row) for row in values) for mark in _MARKS)
    return replace(best, are_lists=2 * most > len(values))


def _of_names(name: str, rows: Sequence[Sequence[str]]) -> ColumnValues:
    counts = Counter(value for row in rows for value in set(row))
    characters = {value: count * len(value) for value, count in counts.items()}
    several = sum(characters[value] for value, count in counts.items() if count > 1)
    recurring = several / max(sum(characters.values()), 1)
    n_words = sum(len(value.split()) * count for value, count in counts.items()) / max(counts.total(), 1)
    are_numbers = all(value.replace(".", "", 1).replace(",", "", 1).lstrip("-").isdigit() for value in counts)
    return ColumnValues(name, len(rows), len(counts), n_words, recurring, are_numbers, are_lists=False)


def likely_labels(columns: Sequence[ColumnValues]) -> str | None:
    """Return the column that is most likely the one of the labels: of those that recur most, the fewest names."""
    possible = [column for column in columns if not column.is_text and not column.are_numbers]
    best = min(possible, key=lambda column: (-round(column.recurring, 1), column.n_names), default=None)
    return None if best is None or not (best.recurring or not best.n_cells) else best.name


def unclear_labels(path: str | Path, columns: Sequence[ColumnValues], possible: Collection[str]) -> DataError:
    """Return the error for a file of which one or several columns may hold the labels."""
    likely = likely_labels([column for column in columns if column.name in possible]) or next(iter(possible))
    rule = "the column with the labels must be clear"
    return DataError(f"{rule}, but {_seen(path, columns)}; name it: labels={likely!r}", options=["labels="])


def unclear_text(path: str | Path, columns: Sequence[ColumnValues], labels: Collection[str]) -> DataError:
    """Return the error for a file of which no column, or one of many, may hold the texts."""
    others = [column for column in columns if column.name not in labels]
    # The likely one has the most words, and several.
    best = max(others, key=lambda column: column.n_words * (1 - column.recurring), default=None)
    likely = "COLUMN" if best is None or best.n_words < _MIN_WORDS else best.name
    remedy = f"name it: text={likely!r}, or several: text='title,description'"
    if without_compression(str(path).lower()).endswith((".csv", ".tsv", ".tab")):
        remedy += "; the first line must be a header"
    rule = "the column with the texts must be known"
    return DataError(f"{rule}, but {_seen(path, columns)}; {remedy}", options=["text="])


def _seen(path: str | Path, columns: Sequence[ColumnValues]) -> str:
    """Describe what was seen in the columns of a file."""
    listed = ", ".join(map(str, columns[:_SHOWN_COLUMNS]))
    more = f" and {len(columns) - _SHOWN_COLUMNS} more columns" if len(columns) > _SHOWN_COLUMNS else ""
    return f"{path} has: {listed}{more}"
