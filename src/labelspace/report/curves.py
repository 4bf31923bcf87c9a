"""The reliability diagram and the precision-coverage curve of an evaluation, as SVG; both axes are in percent."""

from collections.abc import Mapping, Sequence
from html import escape
from math import sqrt
from typing import Any

from labelspace.report.plot import Axis, Picture, circle, line, polyline, rectangle, text

BARS = 44  # pixels of the highest bar of counts
Z = 1.96  # of 95 %


def reliability_svg(bins: Sequence[Mapping[str, Any]]) -> str:
    """Return accuracy against probability by bin, with 95 % intervals, above the number of predictions of each bin.

    >>> reliability_svg([{"n": 0}, {"n": 4, "probability": 80.0, "accuracy": 75.0}]).count("<circle")
    1
    """
    picture = _percentages("probability of a label, %", "of these right, %", below=BARS + 38)
    width = picture.WIDTH / max(len(bins), 1)
    most = max((row["n"] for row in bins), default=0)
    base = picture.bottom + 38 + BARS
    marks = line(picture.x(0), picture.y(0), picture.x(100), picture.y(100), "dashed")
    for i, row in enumerate(bins):
        x = picture.LEFT + i * width
        if row["n"]:
            marks += _bin(picture, row, x, width)
            height = max(BARS * row["n"] / most, 1)
            marks += rectangle(x + 1, base - height, width - 2, height, "count")
        marks += text(x + width / 2, base + 13, compact(row["n"]), "soft small middle")
    marks += text(picture.LEFT + picture.WIDTH / 2, base + 32, "number of predictions in each bin", "soft middle")
    return picture.svg(marks, "reliability diagram")


def precision_coverage_svg(points: Sequence[Sequence[float]], marked: Mapping[int, float]) -> str:
    """Return precision against coverage; points are (threshold, precision, coverage).

    ``marked`` has the coverage at each precision that is marked on the curve.

    >>> svg = precision_coverage_svg([[0.9, 100.0, 50.0], [0.5, 67.0, 100.0]], {90: 50.0, 95: 0.0})
    >>> svg.count("<circle"), "50.0 % at 90 %" in svg
    (1, True)
    """
    picture = _percentages("coverage: right labels that are kept, %", "of what is kept right, %")
    marks = polyline([(picture.x(coverage), picture.y(precision)) for _, precision, coverage in points])
    names = ""  # above all lines
    for precision, coverage in marked.items():
        if not coverage:
            continue
        x, y = picture.x(coverage), picture.y(precision)
        marks += line(picture.LEFT, y, x, y, "dashed") + line(x, y, x, picture.y(0), "dashed")
        marks += circle(x, y, 4, "point")
        name = f"{coverage:.1f} % at {precision} % precision"
        if coverage < 55:  # there is room at the right of the point
            names += text(x + 8, y - 5, name, "halo")
        else:
            names += text(x - 8, y + 13, name, "halo end")
    return picture.svg(marks + names, "precision-coverage curve")


def compact(n: int) -> str:
    """Return a count in at most four characters.

    >>> compact(999), compact(1234), compact(12345), compact(2500000)
    ('999', '1.2k', '12k', '2.5M')
    """
    for size, letter in ((10**6, "M"), (10**3, "k")):
        if n >= size:
            return f"{n / size:.1f}{letter}" if n < 9.95 * size else f"{n / size:.0f}{letter}"
    return str(n)


def wilson(share: float, n: int) -> tuple[float, float]:
    """Return the 95 % interval of a share of n (Wilson, 1927), as fractions.

    >>> [round(bound, 4) for bound in wilson(0.5, 100)]
    [0.4038, 0.5962]
    """
    center = (share + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z / (1 + Z * Z / n) * sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    return center - half, center + half


def _percentages(x_title: str, y_title: str, below: int = 0) -> Picture:
    return Picture(Axis(0, 100), Axis(0, 100), x_title, y_title, height=300, below=below)


def _bin(picture: Picture, row: Mapping[str, Any], x: float, width: float) -> str:
    """Return one bin: a bar up to the accuracy, its interval, and a point at the mean probability."""
    low, high = wilson(row["accuracy"] / 100, row["n"])
    title = f"{row['n']:,} predictions of probability {row['probability']:.1f} %: {row['accuracy']:.1f} % right"
    y, center = picture.y(row["accuracy"]), picture.x(row["probability"])
    bar = rectangle(x + 1, y, width - 2, picture.y(0) - y, "bar")
    interval = line(center, picture.y(100 * low), center, picture.y(100 * high), "range")
    return f"<g><title>{escape(title)}</title>{bar}{interval}{circle(center, y, 4, 'point')}</g>"
