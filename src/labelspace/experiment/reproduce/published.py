"""Published results: the tables of papers, as printed, with the method that makes each row and the known slips.

The tables are data (``published.json``): a table has columns (a metric on a split) and rows; a row has the parameters
of our method and, for each data set, one printed value per column. Paper, table, row and column identify each value.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any, Self

from labelspace.errors import ParameterError

GAP = "train - test"  # a split of a column: the difference of the two
SCALES = {"percent": 1.0, "fraction": 100.0}  # of a table's unit, to percent
BYTES = {"M": 1.0, "G": 1000.0}  # of a printed model size, to megabytes


@dataclass(frozen=True)
class Column:
    """A column of a table: a metric (a key of ``experiment.evaluate``, or a path to one) on a split."""

    metric: str
    split: str = "test"
    title: str | None = None  # as printed, if it differs from the metric

    @property
    def key(self) -> str:
        """The name of the column in results.

        >>> Column("P@1").key, Column("P@1", "train").key
        ('P@1', 'P@1 train')
        """
        return self.title or (self.metric if self.split == "test" else f"{self.metric} {self.split}")


@dataclass(frozen=True)
class Slip:
    """A printed value that is wrong or in doubt, and the right value if it is known."""

    row: str
    dataset: str
    metric: str
    why: str
    split: str = "test"
    corrected: str | None = None


@dataclass(frozen=True)
class Row:
    """A row of a table: its printed label, and the method and parameters that make it here."""

    label: str
    method: str | None  # None if labelspace does not have it
    published: Mapping[str, Sequence[str | None]]  # by data set, a value per column
    preset: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    by_dataset: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # parameters of one data set
    note: str | None = None


@dataclass(frozen=True)
class PublishedTable:
    """A table, or a figure, of a paper."""

    name: str
    paper: Mapping[str, Any]  # authors, year, title
    place: str  # table and section
    shows: str
    unit: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    slips: tuple[Slip, ...] = ()
    note: str | None = None
    propensity_from: str = "train"
    sizes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of data sets, as printed

    @classmethod
    def from_json(cls, name: str, table: Mapping[str, Any], papers: Mapping[str, Any], sets: Mapping[str, Any]) -> Self:
        """Return the table of an entry of ``published.json``."""
        parts = {
            "paper": papers[table["paper"]],
            "columns": tuple(Column(**column) for column in table["columns"]),
            "rows": tuple(Row(**row) for row in table["rows"]),
            "slips": tuple(Slip(**slip) for slip in table.get("slips", ())),
            "sizes": {key: of["sizes"][table["paper"]] for key, of in sets.items() if table["paper"] in of["sizes"]},
        }
        return cls(name, **{**table, **parts})

    @property
    def source(self) -> str:
        """Paper and table, in a few words."""
        year = f" {self.paper['year']}" if self.paper["year"] else ""
        return f"{self.paper['authors']}{year}, {self.place}"

    @property
    def datasets(self) -> list[str]:
        """The data sets with values."""
        return list(dict.fromkeys(dataset for row in self.rows for dataset in row.published))

    def value(self, row: Row, column: Column, dataset: str) -> dict[str, Any]:
        """Return a printed value, its number (percent, or megabytes) after correction, and the slip, if any.

        >>> table = published_table("glas-table4")
        >>> value = table.value(table.rows[1], table.columns[1], "EURLex-4K")
        >>> value["printed"], value["value"], value["slip"]
        ('38.35', 39.83, "The paper prints the repository's PSnDCG@3.")
        """
        printed = row.published.get(dataset, [None] * len(self.columns))[self.columns.index(column)]
        wanted = (row.label, dataset, column.metric, column.split)
        slip = next((s for s in self.slips if (s.row, s.dataset, s.metric, s.split) == wanted), None)
        meant = printed if slip is None or slip.corrected is None else slip.corrected
        about = {} if slip is None else {"corrected": slip.corrected, "slip": slip.why}
        return {"printed": printed, "value": None if meant is None else self._number(meant), **about}

    def _number(self, printed: str) -> float:
        if printed[-1] in BYTES:
            return float(printed[:-1]) * BYTES[printed[-1]]
        return round(float(printed) * SCALES[self.unit], 6)


@cache
def _read() -> dict[str, Any]:
    text = files("labelspace.experiment.reproduce").joinpath("published.json").read_text(encoding="utf-8")
    return json.loads(text)  # type: ignore[no-any-return]


@cache
def published_tables() -> dict[str, PublishedTable]:
    """Return all tables by name."""
    entries = _read()
    made = PublishedTable.from_json
    return {name: made(name, t, entries["papers"], entries["datasets"]) for name, t in entries["tables"].items()}


def published_table(name: str) -> PublishedTable:
    """Return a table by name; raise ParameterError if there is none."""
    tables = published_tables()
    if name not in tables:
        close = get_close_matches(name, tables, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise ParameterError(f"there is no published table {name!r}; {hint}the tables are: {', '.join(tables)}")
    return tables[name]


def published_dataset(table: PublishedTable, name: str) -> str | None:
    """Return the data set of a table by its name or alias, without regard to case and punctuation; None if unknown.

    >>> published_dataset(published_table("hyp-table5"), "wiki10")
    'Wiki10-31K'
    """
    aliases = {d: [d, *_read()["datasets"].get(d, {}).get("aliases", ())] for d in table.datasets}
    return next((d for d, names in aliases.items() if _letters(name) in map(_letters, names)), None)


def propensity_preset(dataset: str | None) -> str:
    """Return the name of the propensity constants of a data set."""
    return str(_read()["datasets"].get(dataset, {}).get("propensity", "default"))


def _letters(name: str) -> str:
    return "".join(c for c in name.casefold() if c.isalnum())
