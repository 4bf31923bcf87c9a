"""Marks of plots as SVG whose x is a percentage of its width and whose y is in pixels: it is responsive by itself."""

from html import escape


def svg(marks: str, height: float, kind: str) -> str:
    """A picture as wide as its place; what it says stands elsewhere."""
    return f"<svg class='{kind}' height='{height:g}' aria-hidden='true'>{marks}</svg>"


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """A line; x in percent."""
    return f"<line class='{kind}' x1='{x1:g}%' y1='{y1:g}' x2='{x2:g}%' y2='{y2:g}'/>"


def circle(x: float, y: float, radius: float, kind: str, said: str = "") -> str:
    """A point, with a title that is shown where the pointer rests."""
    title = f"<title>{escape(said)}</title>" if said else ""
    return f"<circle class='{kind}' cx='{x:g}%' cy='{y:g}' r='{radius:g}'>{title}</circle>"


def text(x: float, y: float, said: str, kind: str) -> str:
    """A text."""
    return f"<text class='{kind}' x='{x:g}%' y='{y:g}'>{escape(said)}</text>"


def group(marks: str, index: int, color: str) -> str:
    """The marks of one method."""
    return f"<g class='method' data-method='{index}' style='--c:{color}'>{marks}</g>"
