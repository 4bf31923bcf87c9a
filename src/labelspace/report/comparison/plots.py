"""The plots of a comparison: accuracy by method, accuracy against cost, frequent and rare labels, reliability."""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any

from labelspace.report.comparison.view import ComparisonView, bounds, by_seed, deviation, figure, ordered, title_of
from labelspace.report.plot import (
    FAR,
    MAX_NAME,
    PERCENT,
    Axis,
    Frame,
    Series,
    choice,
    circle,
    drawing,
    line,
    name_at_point,
    name_heights,
    text,
    y_pixel,
)
from labelspace.report.terminal import shortened

Row = Mapping[str, Any]
TRACK = 24.0  # pixels of the line of a method
MIDDLE = TRACK / 2
BEYOND = text(0, MIDDLE + 5, "◂", "beyond", PERCENT)  # of a method less than half as good as the best
GROUPS = {"head": "> 100", "torso": "26–100", "tail": "≤ 25"}
FIGURES = {"recall": "Recall", "precision": "Precision", "macro_f1": "Macro F1"}
POSITIONS = (12.0, 50.0, 88.0)  # of the groups, in percent
MIN_BIN = 20  # predictions; bins with fewer say little, and are not drawn
TRADE_OFF = (
    "Up is better, left is cheaper. Filled points: no other method is both better and cheaper. Vertical lines are 95 % "
    "intervals over the test documents. ↓ marks methods less than half as good as the best, which lie below the axis."
)


def section(title: str, note: str, body: str, lists: str = "") -> str:
    """Return a section of the page: a title, a note, lists to choose from, and what they choose."""
    choices = f"<div class='choices needs-script'>{lists}</div>" if lists else ""
    return f"<section><h2>{title}</h2><p>{escape(note)}</p>{choices}{body}</section>"


def dot_plots(view: ComparisonView) -> str:
    """Return the section with a panel for each main metric: the methods by their figure, the best first."""
    seeds = " Ticks are single seeds." if view.has_seeds else ""
    note = (
        f"Each axis starts near the data. Lines are 95 % intervals over the test documents.{seeds} "
        "Methods less than half as good as the best lie beyond the axis, to the left (◂)."
    )
    panels = "".join(_panel(view, key) for key in view.main_metrics)
    return section("Accuracy", note, f"<div class='panels'>{panels}</div>")


def _panel(view: ComparisonView, key: str) -> str:
    rows = ordered(view.rows, key)
    extremes = [value for row in rows for value in (*bounds(row, key), *by_seed(row, key))]
    axis = Axis.near([row[key] for row in rows], extremes)
    ticks = axis.percent_ticks
    grid = "".join(line(at, 0, at, TRACK, unit=PERCENT) for at, _ in ticks)
    lines = "".join(_dots(view, row, key, grid + _dot_marks(row, key, axis)) for row in rows)
    below = drawing("".join(text(at, 14, words, "tick middle", PERCENT) for at, words in ticks), 20, "track")
    return (
        f"<figure class='dots'><figcaption>{escape(title_of(key))}, %</figcaption>{lines}"
        f"<span></span>{below}<span></span></figure>"
    )


def _dots(view: ComparisonView, row: Row, key: str, marks: str) -> str:
    """Return the name of a method, its line, and its figure."""
    index = view.rows.index(row)
    attributes = f"data-method='{index}' style='--c:{view.color(row)}'"
    around = deviation(row, key)
    small = f" <small>{around}</small>" if around else ""
    return (
        f"<span class='method dots-name' {attributes}>{escape(row['method'])}</span>"
        f"<span class='method' {attributes}>{drawing(marks, TRACK, 'track')}</span>"
        f"<span class='method dots-value' data-method='{index}'>"
        f"{figure(row, key)}{view.star(key, row['method']).strip()}{small}</span>"
    )


def _dot_marks(row: Row, key: str, axis: Axis) -> str:
    if not axis.holds(row[key]):
        return BEYOND
    interval = bounds(row, key)
    title = f"{row['method']}: {row[key]:.2f} %"
    marks = ""
    if interval:
        low, high = interval
        marks += line(axis.percent(low), MIDDLE, axis.percent(high), MIDDLE, "interval", PERCENT)
        title += f", 95 % interval {low:.2f} to {high:.2f}"
    for value in by_seed(row, key):
        marks += line(axis.percent(value), 3, axis.percent(value), TRACK - 3, "seed", PERCENT)
    return marks + circle(axis.percent(row[key]), MIDDLE, 5, "point filled", title, PERCENT)


def difference_track(found: Row, axis: Axis) -> str:
    """Return a drawing of how far a method is from the best, with its interval, on an axis with 0."""
    zero = axis.percent(0.0)
    low, high = found["interval"]
    marks = line(zero, 0, zero, TRACK, "zero", PERCENT)
    if not axis.holds(-found["difference"]):
        return drawing(marks + BEYOND, TRACK, "track")
    marks += line(axis.percent(-high), MIDDLE, axis.percent(-low), MIDDLE, "interval", PERCENT)
    kind = "point filled" if found["significant"] else "point"
    marks += circle(axis.percent(-found["difference"]), MIDDLE, 4.5, kind, unit=PERCENT)
    return drawing(marks, TRACK, "track")


def difference_axis(others: Sequence[Row], best: float) -> Axis:
    """Return an axis with 0 for differences to the best figure; methods less than half as good lie beyond it.

    >>> axis = difference_axis([{"difference": 1.0, "interval": [0.5, 2.0]}, {"difference": 60.0}], best=70.0)
    >>> axis.low, axis.high
    (-2.1, 0.1)
    """
    near = [found for found in others if found["difference"] <= FAR * best]
    ends = [0.0, *(-bound for found in near for bound in found["interval"])]
    room = 0.05 * (max(ends) - min(ends)) or 1.0
    return Axis(min(ends) - room, max(ends) + room)


def trade_off(view: ComparisonView) -> str:
    """Return the section with accuracy against cost, and two lists to choose its axes from."""
    metric = view.main_metrics[0]
    cost = view.costs[0]
    y = metric_places(view, metric)
    x = cost_places(view, cost)
    filled = on_front(view, metric, cost)
    frame = Frame(x["name"], y["name"], x["ticks"], y["ticks"], f"{y['name']} against {x['name']} of each method")
    for i, row in enumerate(view.rows):
        place = (x["at"][i], y["at"][i])
        low, high = y["bounds"][i] or (place[1], place[1])
        marks = line(place[0], low, place[0], high, "interval", PERCENT)
        marks += circle(*place, 6, "point filled" if filled[i] else "point", unit=PERCENT)
        frame.series.append(Series(i, y["names"][i], view.color(row), marks, place))
    metrics = {key: title_of(key) for key in (*view.main_metrics, *view.metrics)}  # the main ones first
    lists = choice("id='trade-off-y'", "Accuracy", metrics, metric)
    lists += choice("id='trade-off-x'", "Cost", {key: title_of(key) for key in view.costs}, cost)
    return section("Accuracy against cost", TRADE_OFF, frame.html("trade-off"), lists)


def trade_off_data(view: ComparisonView) -> dict[str, Any]:
    """Return the positions for every choice of axes, and which methods are filled for a metric and a cost."""
    metrics = [key for key in view.metrics if all(row.get(key) is not None for row in view.rows)]
    costs = [key for key in view.costs if all(row.get(key) is not None for row in view.rows)]
    return {
        "y": {key: metric_places(view, key) for key in metrics},
        "x": {key: cost_places(view, key) for key in costs},
        "filled": {f"{metric}|{cost}": on_front(view, metric, cost) for metric in metrics for cost in costs},
    }


def metric_places(view: ComparisonView, key: str) -> dict[str, Any]:
    """Return the ticks of a metric, and for each method the heights of its point, of its interval and of its name."""
    values = [row[key] for row in view.rows]
    axis = Axis.near(values, [bound for row in view.rows for bound in bounds(row, key)])
    at = [y_pixel(axis.percent(value)) for value in values]
    intervals = [bounds(row, key) if axis.holds(row[key]) else [] for row in view.rows]
    return {
        "name": f"{title_of(key)}, %",
        "ticks": axis.percent_ticks,
        "at": at,
        "bounds": [[y_pixel(axis.percent(bound)) for bound in ends] for ends in intervals],
        "heights": name_heights(at),
        "names": [name_at_point(axis, row["method"], row[key]) for row in view.rows],
    }


def cost_places(view: ComparisonView, key: str) -> dict[str, Any]:
    """Return the ticks of a cost, and for each method the position of its point."""
    values = [row[key] for row in view.rows]
    axis = Axis.of_costs(values)
    return {
        "name": title_of(key) + (" (logarithmic)" if axis.is_log else ""),
        "ticks": axis.percent_ticks,
        "at": [axis.percent(value) for value in values],
    }


def on_front(view: ComparisonView, metric: str, cost: str) -> list[bool]:
    """Return, for each method, whether no other one is as good and as cheap, and better or cheaper."""
    points = [(-row[metric], row[cost]) for row in view.rows]
    return [not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in points) for p in points]


def by_frequency(view: ComparisonView) -> str:
    """Return the section with a line per method from frequent to rare labels; a list chooses the figure."""
    rows = [row for row in view.rows if set(GROUPS) <= set(row.get("by_frequency", {}))]
    keys = [key for key in FIGURES if rows and all(key in row["by_frequency"]["head"] for row in rows)]
    if not keys:
        return ""
    rank = max((int(key.split("@")[1]) for key in view.metrics if "@" in key), default=1)
    note = (
        f"Labels by their number of training documents; predictions among the first {rank} count. The line of a method "
        "that finds rare labels too stays high to the right."
    )
    options = choice("data-shows='frequency'", "Figure", {key: FIGURES[key] for key in keys})
    blocks = ""
    for key in keys:
        plot = _frequency_plot(view, rows, key)
        blocks += f"<div class='block' data-block='frequency' data-key='{key}'>{plot}</div>"
    return section("Frequent and rare labels", note, blocks, options)


def _frequency_plot(view: ComparisonView, rows: list[Row], key: str) -> str:
    values = [[row["by_frequency"][group][key] for group in GROUPS] for row in rows]
    reach = FAR * max(map(sum, values))
    axis = Axis.around([value for three in values if sum(three) >= reach for value in three])
    groups = rows[0]["by_frequency"]
    x_title = "training documents of a label"
    if all("n_labels" in groups[group] for group in GROUPS):
        counts = ", ".join(f"{groups[group]['n_labels']:,}" for group in GROUPS)
        x_title += f" ({counts} labels)"
    ticks = list(zip(POSITIONS, GROUPS.values(), strict=True))
    about = f"{FIGURES[key]} of head, torso and tail labels by method"
    frame = Frame(x_title, f"{FIGURES[key]}, %", ticks, axis.percent_ticks, about)
    for row, three in zip(rows, values, strict=True):
        heights = [y_pixel(axis.percent(value)) for value in three]
        name = name_at_point(axis, row["method"], three[-1])
        marks = _curve(list(zip(POSITIONS, heights, strict=True)))
        for group, x, y in zip(GROUPS, POSITIONS, heights, strict=True):
            found = row["by_frequency"][group]
            around = found.get(f"{key}_std")
            if around:
                low, high = (y_pixel(axis.percent(found[key] + sign * around)) for sign in (-1, 1))
                marks += line(x, low, x, high, "interval", PERCENT)
            title = f"{row['method']}, {group} labels: {found[key]:.2f} %"
            marks += circle(x, y, 4, "point filled", title, PERCENT)
        frame.series.append(Series(view.rows.index(row), name, view.color(row), marks, (POSITIONS[-1], heights[-1])))
    return frame.html()


def reliability(view: ComparisonView) -> str:
    """Return the section with a reliability curve per calibrated method; nothing if there is none."""
    rows = [row for row in view.rows if len(_bins(row)) > 1]
    if not rows:
        return ""
    ece = [next(key for key in row if key.startswith("ECE@")) for row in rows]
    errors = ", ".join(f"{row['method']} {row[key]:.2f} %" for row, key in zip(rows, ece, strict=True))
    note = (
        "Methods whose scores are probabilities. On the dashed line a label of probability 70 % is right in 70 of 100 "
        f"cases; below it, the method is too sure. Mean distance ({ece[0]}): {errors}. Bins with fewer than "
        f"{MIN_BIN} predictions are left out."
    )
    ticks = [(float(percent), str(percent)) for percent in range(0, 101, 20)]
    about = "Reliability of the calibrated methods"
    exact = line(0, y_pixel(0), 100, y_pixel(100), "dashed", PERCENT)
    frame = Frame("probability of a label, %", "of these right, %", ticks, ticks, about, exact)
    for row in rows:
        points = [(round(found["probability"], 2), y_pixel(found["accuracy"])) for found in _bins(row)]
        marks = _curve(points)
        for found, point in zip(_bins(row), points, strict=True):
            about = f"{found['n']:,} predictions of probability {found['probability']:.1f} %"
            title = f"{row['method']}: {about}, {found['accuracy']:.1f} % right"
            marks += circle(*point, 4, "point filled", title, PERCENT)
        name = shortened(row["method"], MAX_NAME)
        frame.series.append(Series(view.rows.index(row), name, view.color(row), marks, points[-1]))
    return section("Are the probabilities right?", note, frame.html())


def _bins(row: Row) -> list[Row]:
    return [found for found in row.get("reliability", ()) if found["n"] >= MIN_BIN]


def _curve(points: Sequence[tuple[float, float]]) -> str:
    """Return lines from point to point: a polyline cannot have x in percent."""
    return "".join(line(*one, *other, "curve", PERCENT) for one, other in pairwise(points))
