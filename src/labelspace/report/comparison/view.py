"""A comparison as a table for the terminal; and its rows as the page shows them: metrics and costs, names, bounds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rich.console import Group
from rich.text import Text

from labelspace.report.tables import cell, plain, plain_table, titled

Row = Mapping[str, Any]
SHOWN = ("P", "nDCG", "PSP", "R", "coverage")
F1 = {"micro_f1": "micro F1", "macro_f1": "macro F1"}  # at the best threshold
N_COLORS = 8
# The costs that a comparison shows, with their headings.
COSTS = {
    "train_cpu_seconds": "train CPU s",
    "predict_seconds": "predict s",
    "latency_ms_p50": "ms per document",
    "model_mb": "model MB",
    "peak_memory_mb": "peak memory MB",
}


@dataclass(frozen=True)
class ComparisonView:
    """The results of ``experiment.compare`` as the table and the page show them."""

    results: Row

    @cached_property
    def rows(self) -> list[Row]:
        """The methods that ran."""
        return [row for row in self.results["rows"] if "error" not in row]

    @cached_property
    def failed(self) -> list[Row]:
        """The methods that failed."""
        return [row for row in self.results["rows"] if "error" in row]

    @cached_property
    def metrics(self) -> list[str]:
        """The metrics of the table, in its order."""
        measured = dict.fromkeys(key for row in self.rows for key in row if is_metric(key))
        return [*measured, *self._measured(F1)]

    @cached_property
    def costs(self) -> list[str]:
        """The costs of the table, in its order."""
        return self._measured(COSTS)

    def _measured(self, keys: Iterable[str]) -> list[str]:
        return [key for key in keys if any(key in row for row in self.rows)]

    @cached_property
    def main_metrics(self) -> list[str]:
        """The metrics that are drawn: the first P, and the last of each kind; micro F1."""
        of_kind = [[key for key in self.metrics if key.split("@")[0] == kind] for kind in ("P", "nDCG", "PSP", "R")]
        drawn = dict.fromkeys([*of_kind[0][:1], *(keys[-1] for keys in of_kind if keys)])
        return [*drawn, *(key for key in ("micro_f1",) if key in self.metrics)]

    def best(self, key: str) -> Row:
        """Return the row with the best figure of a column: the smallest cost, the largest value of a metric."""
        return ordered(self.rows, key)[-1 if key in COSTS else 0]

    @cached_property
    def has_seeds(self) -> bool:
        """True if figures are means over several seeds."""
        return any("runs" in row for row in self.rows)

    @property
    def tests(self) -> Mapping[str, Any]:
        """The paired tests by metric; empty if the differences were not tested."""
        found: Mapping[str, Any] = self.results.get("paired_test", {}).get("metrics", {})
        return found

    def color(self, row: Row) -> str:
        """Return the color of a method, which is the same in all plots."""
        return f"var(--c{self.rows.index(row) % N_COLORS})"

    def star(self, metric: str, method: str) -> str:
        """Return a star for the best method of a metric and those not significantly worse; a space for the others."""
        if metric not in self.tests:
            return ""
        other = self.tests[metric]["others"].get(method)
        return " " if other is not None and other["significant"] else "*"

    @property
    def star_caption(self) -> str:
        """The meaning of the star."""
        level = f"{100 * self.results['paired_test']['significance']:g} %"
        return f"* the best, or not significantly worse (paired bootstrap over the test documents, Holm, {level})"


def is_metric(key: str) -> bool:
    """Return whether a key of a row is a metric of the table; nDCG@1 is not, since it is P@1."""
    kind, at, rank = key.partition("@")
    return kind in SHOWN and bool(at) and rank.isdigit() and key != "nDCG@1"


def title_of(key: str) -> str:
    """Return the heading of a metric or of a cost."""
    return (F1 | COSTS).get(key, key)


def bounds(row: Row, key: str) -> list[float]:
    """Return the 95 % interval over the test documents, if any."""
    return list(row.get("ci", {}).get(key, ()))


def by_seed(row: Row, key: str) -> list[float]:
    """Return the figures of the single seeds, if there are several."""
    return [run[key] for run in row.get("runs", ()) if run.get(key) is not None]


def digits(key: str, value: float) -> int:
    """Return the decimals that a figure is worth: two of a percentage, fewer of a large cost."""
    if key not in COSTS or value == 0 or 1 <= abs(value) < 200:
        return 2
    return 0 if abs(value) >= 200 else 3


def figure(row: Row, key: str) -> str:
    """Return a figure of a method.

    >>> row = {"P@1": 0.411, "train_cpu_seconds": 0.135, "peak_memory_mb": 1243.0}
    >>> [figure(row, key) for key in row]
    ['0.41', '0.135', '1,243']
    """
    return f"{row[key]:,.{digits(key, row[key])}f}"


def deviation(row: Row, key: str) -> str:
    """Return the standard deviation of a figure over the seeds, with as many decimals; empty if there is none.

    >>> deviation({"P@1": 72.82, "P@1_std": 0.1503}, "P@1")
    '±0.15'
    """
    found = row.get(f"{key}_std")
    return "" if found is None else f"±{found:,.{digits(key, row[key])}f}"


def ordered(rows: Sequence[Row], key: str) -> list[Row]:
    """Return the rows that have a figure, the largest first."""
    return sorted((row for row in rows if row.get(key) is not None), key=lambda row: -row[key])


def compare_table(results: Row) -> Group:
    """Return a table with a line per method: accuracy, time, size; the best figure of each column in bold.

    A star has the best method of a metric, and those that are not significantly worse. Below a mean over several seeds
    stands its standard deviation.
    """
    view = ComparisonView(results)
    measured = dict.fromkeys(key for row in view.rows for key in row if "@" in key and not key.endswith("_std"))
    last = max((int(key.split("@")[1]) for key in measured), default=0)
    columns = [key for key in measured if key.startswith(("P@", "PSP@")) or key == f"nDCG@{last}"] + view.costs
    table = plain_table("method", *map(title_of, columns))
    for row in results["rows"]:
        if "error" in row:
            table.add_row(plain(row["method"]), plain("failed, see below", "red"))
            continue
        cells = (_compared(view, row, key) for key in columns)
        table.add_row(plain(row["method"]), *cells)
    sizes = f"{results['n_train']:,} train, {results['n_test']:,} test, {results['n_labels']:,} labels"
    caption = [plain(view.star_caption)] if view.tests else []
    if view.has_seeds:
        caption.append(plain("±: standard deviation over the seeds"))
    return Group(titled(f"{results['data']}: {sizes}", table), *caption)


def _compared(view: ComparisonView, row: Row, key: str) -> Text:
    """Return a figure of a method, with its standard deviation, if any, on a second line."""
    if row.get(key) is None:
        return Text()
    shown, star, deviation = cell(row[key]), view.star(key, row["method"]), row.get(f"{key}_std")
    figure = plain(shown + star, "bold" if row[key] == view.best(key)[key] else "")
    if deviation is None:
        return figure
    decimals = len(shown.partition(".")[2])
    return Text.assemble(figure, "\n", (f"±{deviation:.{decimals}f}{' ' * len(star)}", "dim"))
