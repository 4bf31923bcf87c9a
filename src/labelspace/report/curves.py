"""The reliability diagram and the precision-coverage curve of an evaluation, as SVG that works offline.

Colors are those of the page, so that they follow its light or dark theme; both axes are in percent.
"""

from collections.abc import Mapping, Sequence
from html import escape
from math import sqrt
from typing import Any

LEFT, TOP, WIDTH, HEIGHT = 56, 16, 390, 300  # of the area that is drawn on, in a picture of 480 pixels
BARS = 44  # pixels of the highest bar of counts
Z = 1.96  # of 95 %


def reliability_svg(bins: Sequence[Mapping[str, Any]]) -> str:
    """Accuracy against probability by bin, with 95 % intervals, and the number of predictions of each bin below.

    >>> reliability_svg([{"n": 0}, {"n": 4, "probability": 80.0, "accuracy": 75.0}]).count("<circle")
    1
    """
    most, width = max((row["n"] for row in bins), default=0), WIDTH / max(len(bins), 1)
    base = TOP + HEIGHT + 38 + BARS
    marks = _line(_x(0), _y(0), _x(100), _y(100), "dashed")
    for i, row in enumerate(bins):
        x = LEFT + i * width
        if row["n"]:
            marks += _bin(row, x, width)
            height = max(BARS * row["n"] / most, 1)
            marks += _rect(x + 1, base - height, width - 2, height, "count")
        marks += _text(x + width / 2, base + 13, compact(row["n"]), "soft small middle")
    marks += _text(LEFT + WIDTH / 2, base + 32, "number of predictions in each bin", "soft middle")
    return _picture(marks, base + 42, "probability of a label, %", "of these right, %", "reliability diagram")


def precision_coverage_svg(points: Sequence[Sequence[float]], marked: Mapping[int, float]) -> str:
    """Precision against coverage; points are (threshold, precision, coverage), ``marked`` the coverage at a precision.

    >>> svg = precision_coverage_svg([[0.9, 100.0, 50.0], [0.5, 67.0, 100.0]], {90: 50.0, 95: 0.0})
    >>> svg.count("<circle"), "50.0 % at 90 %" in svg
    (1, True)
    """
    path = " ".join(f"{_x(coverage):.1f},{_y(precision):.1f}" for _, precision, coverage in points)
    marks = f"<polyline class='curve' points='{path}'/>" if points else ""
    labels = ""  # above all lines
    for precision, coverage in marked.items():
        if coverage:
            x, y = _x(coverage), _y(precision)
            label, is_left = f"{coverage:.1f} % at {precision} % precision", coverage < 55  # beside the curve
            marks += _line(LEFT, y, x, y, "dashed") + _line(x, y, x, _y(0), "dashed")
            marks += f"<circle class='point' cx='{x:.1f}' cy='{y:.1f}' r='4'/>"
            labels += _text(x + 8, y - 5, label, "halo") if is_left else _text(x - 8, y + 13, label, "halo end")
    height = TOP + HEIGHT + 42
    return _picture(
        marks + labels, height, "coverage: right labels that are kept, %", "of what is kept right, %", "curve"
    )


def compact(n: int) -> str:
    """A count in at most four characters.

    >>> compact(999), compact(1234), compact(12345), compact(2500000)
    ('999', '1.2k', '12k', '2.5M')
    """
    for size, letter in ((10**6, "M"), (10**3, "k")):
        if n >= size:
            return f"{n / size:.1f}{letter}" if n < 9.95 * size else f"{n / size:.0f}{letter}"
    return str(n)


def wilson(share: float, n: int) -> tuple[float, float]:
    """The 95 % interval of a share of n (Wilson, 1927), as fractions.

    >>> [round(bound, 4) for bound in wilson(0.5, 100)]
    [0.4038, 0.5962]
    """
    center = (share + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z / (1 + Z * Z / n) * sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    return center - half, center + half


def _bin(row: Mapping[str, Any], x: float, width: float) -> str:
    """One bin: a bar up to the accuracy, its interval, and a point at the mean probability."""
    low, high = wilson(row["accuracy"] / 100, row["n"])
    said = f"{row['n']:,} predictions of probability {row['probability']:.1f} %: {row['accuracy']:.1f} % right"
    y, center = _y(row["accuracy"]), _x(row["probability"])
    return (
        f"<g><title>{escape(said)}</title>{_rect(x + 1, y, width - 2, _y(0) - y, 'bar')}"
        f"{_line(center, _y(100 * low), center, _y(100 * high), 'range')}"
        f"<circle class='point' cx='{center:.1f}' cy='{y:.1f}' r='4'/></g>"
    )


def _picture(marks: str, height: float, across: str, up: str, name: str) -> str:
    """Axes and grid from 0 to 100 percent around the marks."""
    grid = ""
    for percent in range(0, 101, 20):
        grid += _line(_x(percent), _y(0), _x(percent), _y(100)) + _line(_x(0), _y(percent), _x(100), _y(percent))
        grid += _text(_x(percent), TOP + HEIGHT + 15, str(percent), "soft middle")
        grid += _text(LEFT - 7, _y(percent) + 4, str(percent), "soft end")
    middle = TOP + HEIGHT / 2
    grid += _text(LEFT + WIDTH / 2, TOP + HEIGHT + 32, across, "soft middle")
    grid += f"<text class='soft middle' transform='rotate(-90 16 {middle})' x='16' y='{middle}'>{escape(up)}</text>"
    size = f"width='480' height='{height:.0f}' viewBox='0 0 480 {height:.0f}'"
    return f"<svg role='img' aria-label='{escape(name)}' {size}>{grid}{marks}</svg>"


def _x(percent: float) -> float:
    return LEFT + WIDTH * percent / 100


def _y(percent: float) -> float:
    return TOP + HEIGHT * (1 - percent / 100)


def _line(x1: float, y1: float, x2: float, y2: float, kind: str = "grid") -> str:
    return f"<line class='{kind}' x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}'/>"


def _rect(x: float, y: float, width: float, height: float, kind: str) -> str:
    return f"<rect class='{kind}' x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' height='{height:.1f}'/>"


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f"<text class='{kind}' x='{x:.1f}' y='{y:.1f}'>{escape(text)}</text>"
