"""The rows of a comparison as the page shows them: which metrics and costs, with their names and bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from labelspace.report.comparison.terminal import COSTS, mark

SHOWN = ("P", "nDCG", "PSP", "R", "coverage")
F1 = {"micro_f1": "micro F1", "macro_f1": "macro F1"}  # at the best threshold
N_COLORS = 8


@dataclass(frozen=True)
class ComparisonView:
    """The results of ``experiment.compare``, and what is asked of them."""

    results: Mapping[str, Any]

    @cached_property
    def rows(self) -> list[Mapping[str, Any]]:
        """The methods that ran."""
        return [row for row in self.results["rows"] if "error" not in row]

    @cached_property
    def failed(self) -> list[Mapping[str, Any]]:
        """The methods that failed."""
        return [row for row in self.results["rows"] if "error" in row]

    @cached_property
    def metrics(self) -> list[str]:
        """The metrics of the table, in its order."""
        measured = dict.fromkeys(key for row in self.rows for key in row if is_metric(key))
        return [*measured, *(key for key in F1 if any(key in row for row in self.rows))]

    @cached_property
    def costs(self) -> list[str]:
        """The costs of the table, in its order."""
        return [key for key in COSTS if any(key in row for row in self.rows)]

    @cached_property
    def main_metrics(self) -> list[str]:
        """The metrics that are drawn: the first P, and the last of each kind; micro F1."""
        kinds = ("P", "nDCG", "PSP", "R")
        of_kind = {kind: [key for key in self.metrics if key.split("@")[0] == kind] for kind in kinds}
        first = of_kind["P"][:1]
        return list(dict.fromkeys([*first, *(keys[-1] for keys in of_kind.values() if keys)])) + [
            key for key in ("micro_f1",) if key in self.metrics
        ]

    def color(self, row: Mapping[str, Any]) -> str:
        """The color of a method, the same in all plots."""
        return f"var(--c{self.rows.index(row) % N_COLORS})"

    def star(self, key: str, method: str) -> str:
        """A star for the best method of a metric, and those that are not significantly worse; a space for others."""
        return mark(self.results, key, method)

    @property
    def tests(self) -> Mapping[str, Any]:
        """The paired tests by metric; empty where there are none."""
        found: Mapping[str, Any] = self.results.get("paired_test", {}).get("metrics", {})
        return found


def is_metric(key: str) -> bool:
    """Whether a key of a row is a metric of the table; nDCG@1 is not, since it is P@1."""
    kind, at, rank = key.partition("@")
    return kind in SHOWN and bool(at) and rank.isdigit() and key != "nDCG@1"


def title_of(key: str) -> str:
    """The heading of a metric or of a cost."""
    return (F1 | COSTS).get(key, key)


def bounds(row: Mapping[str, Any], key: str) -> list[float]:
    """The 95 % interval over the test documents, where there is one."""
    return list(row.get("ci", {}).get(key, ()))


def by_seed(row: Mapping[str, Any], key: str) -> list[float]:
    """The figures of the single seeds, where there are several."""
    return [run[key] for run in row.get("runs", ()) if run.get(key) is not None]


def digits(key: str, value: float) -> int:
    """The decimals that a figure is worth: two of a percentage, fewer of a large cost."""
    if key not in COSTS or value == 0:
        return 2
    return 0 if abs(value) >= 200 else 2 if abs(value) >= 1 else 3


def figure(row: Mapping[str, Any], key: str) -> str:
    """A figure of a method.

    >>> row = {"P@1": 0.411, "train_cpu_seconds": 0.135, "peak_memory_mb": 1243.0}
    >>> [figure(row, key) for key in row]
    ['0.41', '0.135', '1,243']
    """
    return f"{row[key]:,.{digits(key, row[key])}f}"


def deviation(row: Mapping[str, Any], key: str) -> str:
    """Its standard deviation over the seeds, with as many decimals; empty where there is none.

    >>> deviation({"P@1": 72.82, "P@1_std": 0.1503}, "P@1")
    '±0.15'
    """
    found = row.get(f"{key}_std")
    return "" if found is None else f"±{found:,.{digits(key, row[key])}f}"


def ordered(rows: Sequence[Mapping[str, Any]], key: str) -> list[Mapping[str, Any]]:
    """The rows that have a figure, the largest first."""
    return sorted((row for row in rows if row.get(key) is not None), key=lambda row: -row[key])
