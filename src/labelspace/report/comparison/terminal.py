"""A comparison as a table for the terminal, and the marks and headings that the page shares with it."""

from collections.abc import Mapping
from typing import Any

from rich.console import Group
from rich.text import Text

from labelspace.report.tables import cell, plain, plain_table, titled

COSTS = {
    "train_cpu_seconds": "train CPU s",
    "predict_seconds": "predict s",
    "latency_ms_p50": "ms per document",
    "model_mb": "model MB",
    "peak_memory_mb": "peak memory MB",
}
"""The costs that a comparison shows, with their headings."""


def compare_table(results: Mapping[str, Any]) -> Group:
    """One line per method: accuracy, time, size; the best figure of each column in bold.

    A star has the best method of a metric, and those that are not significantly worse. Below a mean over several seeds
    stands its standard deviation.
    """
    rows = results["rows"]
    measured = dict.fromkeys(key for row in rows for key in row if "@" in key and not key.endswith("_std"))
    last = max((int(key.split("@")[1]) for key in measured), default=0)
    columns = [key for key in measured if key.startswith(("P@", "PSP@")) or key == f"nDCG@{last}"]
    columns += [key for key in COSTS if any(key in row for row in rows)]
    table = plain_table("method", *(COSTS.get(key, key) for key in columns))
    best = {}
    for key in columns:
        values = [row[key] for row in rows if row.get(key) is not None]
        best[key] = max(values) if "@" in key else min(values)
    for row in rows:
        if "error" in row:
            table.add_row(plain(row["method"]), plain("failed, see below", "red"))
            continue
        marks = {key: mark(results, key, row["method"]) for key in columns}
        cells = (_compared(row, key, marks[key], row.get(key) == best[key]) for key in columns)
        table.add_row(plain(row["method"]), *cells)
    sizes = f"{results['n_train']:,} train, {results['n_test']:,} test, {results['n_labels']:,} labels"
    caption = [plain(star_caption(results))] if _paired(results) else []
    if any("runs" in row for row in rows):
        caption.append(plain("±: standard deviation over the seeds"))
    return Group(titled(f"{results['data']}: {sizes}", table), *caption)


def _compared(row: Mapping[str, Any], key: str, star: str, is_best: bool) -> Text:
    """A figure of a method, with its standard deviation on a second line where there is one."""
    if row.get(key) is None:
        return Text()
    shown, deviation = cell(row[key]), row.get(f"{key}_std")
    figure = plain(shown + star, "bold" if is_best else "")
    if deviation is None:
        return figure
    decimals = len(shown.partition(".")[2])
    return Text.assemble(figure, "\n", (f"±{deviation:.{decimals}f}{' ' * len(star)}", "dim"))


def mark(results: Mapping[str, Any], metric: str, method: str) -> str:
    """A star for the best method of a metric and for those not significantly worse; a space for the others."""
    test = _paired(results).get(metric)
    if test is None:
        return ""
    return " " if test["others"].get(method, {"significant": False})["significant"] else "*"


def star_caption(results: Mapping[str, Any]) -> str:
    """What the star says."""
    level = f"{100 * results['paired_test']['significance']:g} %"
    return f"* the best, or not significantly worse (paired bootstrap over the test documents, Holm, {level})"


def _paired(results: Mapping[str, Any]) -> Mapping[str, Any]:
    """The paired tests by metric; empty where there are none."""
    tests: Mapping[str, Any] = results.get("paired_test", {}).get("metrics", {})
    return tests
