"""The runs of ``scaling.py`` as a Markdown table: each cost by number of labels, and how fast it grows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from peers import Figures

PEER = "PECOS"
COSTS = {
    "train_cpu_s": "train, CPU s",
    "train_peak_MB": "peak memory, MB",
    "model_MB": "model, MB",
    "lat_ms_p50": "one row, ms",
}
UNSUITED = {"lexical": "reads label names"}  # which the synthetic labels do not have
MISSING = "-"

Runs = Mapping[tuple[str, int], Figures]
"""By method and number of labels."""


def table(runs: Runs, methods: Sequence[str], sizes: Sequence[int]) -> list[str]:
    """The lines of the table: a row for each method, a cell for each cost with its values by number of labels."""
    peer = [runs.get((PEER, size), {}) for size in sizes]
    grown = len(sizes) > 1
    heads = [head for name in COSTS.values() for head in ([name, "growth"] if grown else [name])]
    lines = ["| method | " + " | ".join([*heads, f"CPU s, {PEER} = 1", "P@1"]) + " |"]
    lines.append("|---" * (len(heads) + 3) + "|")
    for method in methods:
        if method in UNSUITED:
            lines.append(f"| {method} | {UNSUITED[method]} |" + " |" * (len(heads) + 1))
            continue
        row = [runs.get((method, size), {}) for size in sizes]
        lines.append(f"| {method} | " + " | ".join(_cells(row, peer, sizes)) + " |")
    return lines


def _cells(row: Sequence[Figures], peer: Sequence[Figures], sizes: Sequence[int]) -> list[str]:
    cells = []
    for key in COSTS:
        values = [run.get(key) for run in row]
        shown = [MISSING if value is None else short(value) for value in values]
        if key == "train_cpu_s":
            shown = [why_missing(run) or text for run, text in zip(row, shown, strict=True)]
        cells.append(" / ".join(shown))
        if len(sizes) > 1:
            cells.append(" / ".join(MISSING if g is None else f"{g:.2f}" for g in growth(values, sizes)))
    pairs = [(mine.get("train_cpu_s"), other.get("train_cpu_s")) for mine, other in zip(row, peer, strict=True)]
    cells.append(" / ".join(short(a / b) if a is not None and b else MISSING for a, b in pairs))
    cells.append(" / ".join(f"{run['P@1']:.1f}" if "P@1" in run else MISSING for run in row))
    return cells


def why_missing(run: Figures) -> str | None:
    """What to write in place of figures, where a run has none: the limit that it was over."""
    if "stopped" in run:
        return f"over {run['minutes']:g} CPU min" if run["stopped"] == "minutes" else f"over {run['gigabytes']:g} GB"
    return "failed" if "failed" in run else None


def growth(costs: Sequence[float | None], sizes: Sequence[int]) -> list[float | None]:
    """From each size to the next the exponent e where cost grows as labels to the power of e.

    >>> growth([2.0, 20.0, 2000.0, None], [10, 100, 1000, 10000])
    [1.0, 2.0, None]
    """
    exponents: list[float | None] = []
    for at in range(len(sizes) - 1):
        before, after = costs[at], costs[at + 1]
        known = before and after  # a cost of 0 has no logarithm
        exponents.append(math.log(after / before) / math.log(sizes[at + 1] / sizes[at]) if known else None)  # type: ignore[operator]
    return exponents


def short(value: float) -> str:
    """About two digits.

    >>> [short(value) for value in (0, 0.01234, 0.5, 1.25, 12.5, 1234.5)]
    ['0', '0.012', '0.50', '1.2', '12', '1,234']
    """
    if value == 0:
        return "0"
    digits = max(0, 1 - math.floor(math.log10(value)))
    return f"{value:,.{digits}f}"


def failures(runs: Runs) -> list[str]:
    """A line for each run that failed, with its error."""
    return [f"{method}, {size:,} labels: {run['failed']}" for (method, size), run in runs.items() if "failed" in run]
