"""Reliability of the methods that are calibrated: how often a label of a given probability is right."""

from collections.abc import Mapping
from html import escape
from typing import Any

from labelspace.report.comparison.frame import Frame, beside, y_pixel
from labelspace.report.comparison.svg import circle, line
from labelspace.report.comparison.view import ComparisonView

FEW = 20  # predictions; bins with fewer say little, and are not drawn
TICKS = [(float(percent), str(percent)) for percent in range(0, 101, 20)]


def reliability(view: ComparisonView) -> str:
    """One plot with a curve per calibrated method; nothing where there is none."""
    rows = [row for row in view.rows if len(_bins(row)) > 1]
    if not rows:
        return ""
    errors = ", ".join(f"{row['method']} {row[_ece(row)]:.2f} %" for row in rows)
    said = (
        "Methods whose scores are probabilities. On the dashed line a label of probability 70 % is right in 70 of 100 "
        f"cases; below it, the method is too sure. Mean distance ({_ece(rows[0])}): {errors}. Bins with fewer than "
        f"{FEW} predictions are left out."
    )
    frame = Frame(
        "probability of a label, %", "of these right, %", TICKS, TICKS, "Reliability of the calibrated methods",
        behind=line(0, y_pixel(0), 100, y_pixel(100), "dashed"),
    )  # fmt: skip
    frame.add_methods([_method(view, row) for row in rows])
    return f"<section><h2>Are the probabilities right?</h2><p>{escape(said)}</p>{frame.html()}</section>"


def _bins(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [found for found in row.get("reliability", ()) if found["n"] >= FEW]


def _ece(row: Mapping[str, Any]) -> str:
    return next(key for key in row if key.startswith("ECE@"))


def _method(view: ComparisonView, row: Mapping[str, Any]) -> tuple[int, str, str, str, tuple[float, float]]:
    bins = _bins(row)
    points = [(round(found["probability"], 2), y_pixel(found["accuracy"])) for found in bins]
    marks = "".join(line(*one, *other, "curve") for one, other in zip(points, points[1:], strict=False))
    for found, point in zip(bins, points, strict=True):
        said = f"{row['method']}: {found['n']:,} predictions of probability {found['probability']:.1f} %"
        marks += circle(*point, 4, "point filled", f"{said}, {found['accuracy']:.1f} % right")
    return view.rows.index(row), beside(row["method"], None), view.color(row), marks, points[-1]
