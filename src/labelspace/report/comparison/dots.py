"""Dot plots: the figures of one metric, the best first, on an axis that starts near them; differences to the best."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from labelspace.report.comparison.scales import FAR, Axis
from labelspace.report.comparison.svg import circle, line, svg, text
from labelspace.report.comparison.view import ComparisonView, bounds, by_seed, deviation, figure, ordered, title_of

TRACK = 24.0  # pixels of a line
MIDDLE = TRACK / 2


def dot_plots(view: ComparisonView) -> str:
    """A panel per main metric."""
    seeds = " Ticks are single seeds." if any("runs" in row for row in view.rows) else ""
    said = (
        f"Each axis starts near the data. Lines are 95 % intervals over the test documents.{seeds} "
        "Methods less than half as good as the best lie beyond the axis, to the left (◂)."
    )
    panels = "".join(_panel(view, key) for key in view.main_metrics)
    return f"<section><h2>Accuracy</h2><p>{escape(said)}</p><div class='panels'>{panels}</div></section>"


def _panel(view: ComparisonView, key: str) -> str:
    rows = ordered(view.rows, key)
    extremes = [value for row in rows for value in (*bounds(row, key), *by_seed(row, key))]
    axis = Axis.near([row[key] for row in rows], extremes)
    ticks = [(axis.percent(value), said) for value, said in axis.ticks]
    lines = "".join(
        _line(view, row, _track(ticks, _marks(row, key, axis)), _value(view, row, key)) for row in rows
    )  # fmt: skip
    below = svg("".join(text(at, 14, said, "tick middle") for at, said in ticks), 20, "track")
    return (
        f"<figure class='dots'><figcaption>{escape(title_of(key))}, %</figcaption>{lines}"
        f"<span></span>{below}<span></span></figure>"
    )


def _line(view: ComparisonView, row: Mapping[str, Any], track: str, value: str) -> str:
    index = view.rows.index(row)
    attributes = f"data-method='{index}' style='--c:{view.color(row)}'"
    name = f"<span class='method dots-name' {attributes}>{escape(row['method'])}</span>"
    value = f"<span class='method dots-value' data-method='{index}'>{value}</span>"
    return f"{name}<span class='method' {attributes}>{track}</span>{value}"


def _track(ticks: Sequence[tuple[float, str]], marks: str) -> str:
    return svg("".join(line(at, 0, at, TRACK, "grid") for at, _ in ticks) + marks, TRACK, "track")


def _marks(row: Mapping[str, Any], key: str, axis: Axis) -> str:
    if not axis.holds(row[key]):
        return text(0, MIDDLE + 5, "◂", "beyond")
    interval, seeds = bounds(row, key), by_seed(row, key)
    said = f"{row['method']}: {row[key]:.2f} %"
    marks = ""
    if interval:
        marks += line(axis.percent(interval[0]), MIDDLE, axis.percent(interval[1]), MIDDLE, "interval")
        said += f", 95 % interval {interval[0]:.2f} to {interval[1]:.2f}"
    marks += "".join(line(axis.percent(value), 3, axis.percent(value), TRACK - 3, "seed") for value in seeds)
    return marks + circle(axis.percent(row[key]), MIDDLE, 5, "point filled", said)


def _value(view: ComparisonView, row: Mapping[str, Any], key: str) -> str:
    around = deviation(row, key)
    small = f" <small>{around}</small>" if around else ""
    return f"{figure(row, key)}{view.star(key, row['method']).strip()}{small}"


def difference_track(found: Mapping[str, Any], axis: Axis) -> str:
    """How far a method is from the best, with the interval of that, on an axis with 0."""
    zero, (low, high) = axis.percent(0.0), found["interval"]
    marks = line(zero, 0, zero, TRACK, "zero")
    if not axis.holds(-found["difference"]):
        return svg(marks + text(0, MIDDLE + 5, "◂", "beyond"), TRACK, "track")
    marks += line(axis.percent(-high), MIDDLE, axis.percent(-low), MIDDLE, "interval")
    kind = "point filled" if found["significant"] else "point"
    return svg(marks + circle(axis.percent(-found["difference"]), MIDDLE, 4.5, kind), TRACK, "track")


def difference_axis(others: Sequence[Mapping[str, Any]], best: float) -> Axis:
    """An axis for differences to the best figure, with 0; those of methods less than half as good lie beyond it.

    >>> axis = difference_axis([{"difference": 1.0, "interval": [0.5, 2.0]}, {"difference": 60.0}], best=70.0)
    >>> axis.low, axis.high
    (-2.1, 0.1)
    """
    near = [found for found in others if found["difference"] <= FAR * best]
    ends = [0.0, *(-bound for found in near for bound in found["interval"])]
    room = 0.05 * (max(ends) - min(ends)) or 1.0
    return Axis(min(ends) - room, max(ends) + room)
