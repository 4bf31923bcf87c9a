"""Figures of frequent and rare labels: a line per method from head to tail."""

from collections.abc import Mapping
from html import escape
from typing import Any

from labelspace.report.comparison.frame import Frame, beside, y_pixel
from labelspace.report.comparison.scales import FAR, Axis
from labelspace.report.comparison.svg import circle, line
from labelspace.report.comparison.view import ComparisonView

GROUPS = {"head": "> 100", "torso": "26–100", "tail": "≤ 25"}
FIGURES = {"recall": "Recall", "precision": "Precision", "macro_f1": "Macro F1"}
POSITIONS = (12.0, 50.0, 88.0)  # of the groups, in percent


def by_frequency(view: ComparisonView) -> str:
    """A plot for each figure of head, torso and tail labels; a list chooses which is shown."""
    rows = [row for row in view.rows if set(GROUPS) <= set(row.get("by_frequency", {}))]
    keys = [key for key in FIGURES if rows and all(key in row["by_frequency"]["head"] for row in rows)]
    if not keys:
        return ""
    rank = max((int(key.split("@")[1]) for key in view.metrics if "@" in key), default=1)
    said = (
        f"Labels by their number of training documents; those among the first {rank} predicted count. A method that "
        "finds rare labels too stays high to the right."
    )
    options = "".join(f"<option value='{key}'>{FIGURES[key]}</option>" for key in keys)
    choice = f"<label>Figure <select data-shows='frequency'>{options}</select></label>"
    blocks = "".join(
        f"<div class='block' data-block='frequency' data-key='{key}'>{_plot(view, rows, key)}</div>" for key in keys
    )
    return (
        f"<section><h2>Frequent and rare labels</h2><p>{escape(said)}</p>"
        f"<div class='choices needs-script'>{choice}</div>{blocks}</section>"
    )


def _plot(view: ComparisonView, rows: list[Mapping[str, Any]], key: str) -> str:
    values = [[row["by_frequency"][group][key] for group in GROUPS] for row in rows]
    reach = FAR * max(map(sum, values))
    axis = Axis.around([value for three in values if sum(three) >= reach for value in three])
    sizes = rows[0]["by_frequency"]
    ticks = [(at, f"{words}") for at, words in zip(POSITIONS, GROUPS.values(), strict=True)]
    frame = Frame(
        _x_title(sizes), f"{FIGURES[key]}, %", ticks, [(axis.percent(v), said) for v, said in axis.ticks],
        f"{FIGURES[key]} of head, torso and tail labels by method",
    )  # fmt: skip
    methods = []
    for row, three in zip(rows, values, strict=True):
        heights = [y_pixel(axis.percent(value)) for value in three]
        name = beside(row["method"], None if axis.holds(three[-1]) else three[-1])
        marks = _marks(row, key, heights, axis)
        methods.append((view.rows.index(row), name, view.color(row), marks, (POSITIONS[-1], heights[-1])))
    frame.add_methods(methods)
    return frame.html()


def _x_title(sizes: Mapping[str, Any]) -> str:
    if not all("n_labels" in sizes[group] for group in GROUPS):
        return "training documents of a label"
    counts = ", ".join(f"{sizes[group]['n_labels']:,}" for group in GROUPS)
    return f"training documents of a label ({counts} labels)"


def _marks(row: Mapping[str, Any], key: str, heights: list[float], axis: Axis) -> str:
    marks = ""
    for i in range(len(POSITIONS) - 1):
        marks += line(POSITIONS[i], heights[i], POSITIONS[i + 1], heights[i + 1], "curve")
    for group, x, y in zip(GROUPS, POSITIONS, heights, strict=True):
        found = row["by_frequency"][group]
        around = found.get(f"{key}_std")
        if around:
            ends = [y_pixel(axis.percent(found[key] + sign * around)) for sign in (-1, 1)]
            marks += line(x, ends[0], x, ends[1], "interval")
        marks += circle(x, y, 4, "point filled", f"{row['method']}, {group} labels: {found[key]:.2f} %")
    return marks
