"""All labels of a model on the Poincaré disk, as one HTML page that works offline.

The folder ``disk`` has the page, its style and its scripts, which are joined. Labels are stored in polar coordinates:
the hyperbolic distance from the center can be rounded, while a norm near 1 would be rounded to the boundary.
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import isnan
from string import Template
from typing import Any

import numpy as np
import numpy.typing as npt

from labelspace.errors import DataError
from labelspace.labels.statistics import spearman
from labelspace.report.page import asset
from labelspace.report.terminal import json_text, printable
from labelspace.types import Bools, Doubles, LabelSpace

# In order of dependence.
SCRIPTS = "geometry pixels labels theme drawing names navigation info_panel search chart events".split()
ANGLE_DIGITS = 7  # decimals
DISTANCE_DIGITS = 5
NORM_DIGITS = 6
MAX_NORM = 1 - 2**-24  # the largest float32 below 1


def map_page(points: npt.ArrayLike, labels: LabelSpace, title: str) -> str:
    """Return the page of points (n_labels, dimension) in the Poincaré ball; labels whose row is NaN are left out.

    >>> page = map_page([[0.1, 0.2], [0.5, 0.0]], LabelSpace(["cat", "dog"]), "pets")
    >>> "<title>pets</title>" in page and '"names":["cat","dog"]' in page
    True
    """
    table, drawn = checked_points(points, labels)
    data, spearmans = map_data(table, labels), norm_against_frequency(table, labels)
    correlation = f"Spearman's rank correlation {spearmans:+.3f}".replace("-", "\N{MINUS SIGN}")
    if isnan(spearmans):
        correlation = "No rank correlation: norms or frequencies are all equal."
    values = {
        "title": escape(title),
        "summary": escape(_summary(labels, drawn, table.shape[1])),
        "correlation": escape(correlation),
        # Safe in a script element: only ``<`` could end it.
        "data": json_text(data, separators=(",", ":")).replace("<", "\\u003c"),
        "style": asset("disk/page.css"),
        "script": "\n".join(asset(f"disk/{name}.js") for name in SCRIPTS),
    }
    return Template(asset("disk/page.html")).substitute(values)


def map_data(points: npt.ArrayLike, labels: LabelSpace) -> dict[str, Any]:
    """Return the data of the page: name, angle, distance from the center and training documents per label; edges."""
    table, drawn = checked_points(points, labels)
    x, y = on_disk(table[drawn]).T
    norms = np.minimum(np.hypot(x, y), MAX_NORM)
    new_id = np.cumsum(drawn) - 1
    edges = np.zeros((0, 2), np.int32) if labels.hierarchy is None else labels.hierarchy.edges
    edges = new_id[edges[drawn[edges].all(axis=1)]]  # edges of labels without a point are dropped
    return {
        "names": [name for name, is_drawn in zip(labels.names, drawn.tolist(), strict=True) if is_drawn],
        "angle": np.round(np.arctan2(y, x), ANGLE_DIGITS).tolist(),
        "distance": np.round(2 * np.arctanh(norms), DISTANCE_DIGITS).tolist(),
        "counts": None if labels.counts is None else labels.counts[drawn].tolist(),
        "children": edges[:, 0].tolist(),
        "parents": edges[:, 1].tolist(),
    }


def on_disk(points: npt.ArrayLike) -> Doubles:
    """Project points of the Poincaré ball (n, dimension) to the disk (n, 2); norms are preserved.

    With two dimensions, points are returned unchanged. With more, they are mapped to the tangent space at the center,
    and projected on its two principal axes, which gives the direction.

    >>> on_disk([[0.0, 0.6, 0.0], [0.0, -0.6, 0.0]]).round(6).tolist()
    [[0.6, 0.0], [-0.6, 0.0]]
    """
    table = np.asarray(points, dtype=np.float64)
    if table.shape[1] == 2:
        return table
    if table.shape[1] == 1:
        return np.concatenate([table, np.zeros_like(table)], axis=1)
    norms = np.linalg.norm(table, axis=1, keepdims=True)  # (n, 1)
    lengths = np.arctanh(np.minimum(norms, MAX_NORM))
    tangents = table * np.divide(lengths, norms, out=np.ones_like(norms), where=norms > 0)
    projected = tangents @ _principal_axes(tangents)  # (n, 2)
    is_zero = np.linalg.norm(projected, axis=1, keepdims=True) <= 1e-12 * lengths
    projected = np.where(is_zero, [1.0, 0.0], projected)  # orthogonal to both axes: no direction
    return np.asarray(norms * projected / np.linalg.norm(projected, axis=1, keepdims=True))


def norm_against_frequency(points: npt.ArrayLike, labels: LabelSpace) -> float:
    """Return Spearman's correlation of norms and training documents of the labels; NaN if it is undefined."""
    if labels.counts is None:
        return float("nan")
    table, drawn = checked_points(points, labels)
    return spearman(np.linalg.norm(table[drawn], axis=1), labels.counts[drawn])


def map_summary(points: npt.ArrayLike, labels: LabelSpace) -> dict[str, Any]:
    """Count labels drawn and left out, and correlate norm and frequency (None if undefined)."""
    drawn = checked_points(points, labels)[1]
    correlation = norm_against_frequency(points, labels)
    rounded = None if isnan(correlation) else round(correlation, 6)
    return {"n_labels": int(drawn.sum()), "n_left_out": int((~drawn).sum()), "spearman": rounded}


def norm_table(points: npt.ArrayLike, labels: LabelSpace) -> list[dict[str, Any]]:
    """Return label, norm of its point and training documents, the smallest norm first, without labels without point.

    >>> norm_table([[0.5, 0.0], [0.0, 0.1]], LabelSpace(["cat", "dog"], counts=np.array([1, 4])))
    [{'label': 'dog', 'norm': 0.1, 'frequency': 4}, {'label': 'cat', 'norm': 0.5, 'frequency': 1}]
    """
    table, has_point = checked_points(points, labels)
    norms, drawn = np.linalg.norm(table, axis=1), np.flatnonzero(has_point)
    counts = None if labels.counts is None else labels.counts.tolist()
    return [
        {
            "label": labels.names[i],
            "norm": round(float(norms[i]), NORM_DIGITS),
            "frequency": None if counts is None else counts[i],
        }
        for i in drawn[np.argsort(norms[drawn], kind="stable")].tolist()
    ]


def norm_tsv(table: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    r"""Yield the lines of a norm table as TSV, a header first; control characters in names are escaped.

    >>> list(norm_tsv([{"label": "cat\n", "norm": 0.5, "frequency": 1}]))[1]
    'cat\\n\t0.500000\t1\n'
    """
    yield "label\tnorm\tfrequency\n"
    for row in table:
        frequency = "" if row["frequency"] is None else row["frequency"]
        yield f"{printable(row['label'])}\t{row['norm']:.{NORM_DIGITS}f}\t{frequency}\n"


def checked_points(points: npt.ArrayLike, labels: LabelSpace) -> tuple[Doubles, Bools]:
    """Return the points with one row per label, and which labels in use have a point (n_labels,): all without NaN.

    Raise DataError unless all points are inside the ball.
    """
    table = np.asarray(points, dtype=np.float64)
    if table.ndim != 2 or len(table) != len(labels) or table.shape[1] < 1:
        rule = f"there must be one point per label, as ({len(labels)}, dimension), but the shape is {table.shape}"
        raise DataError(f"{rule}; pass the points and the labels of one model")
    has_point = np.isfinite(table).all(axis=1)
    norms = np.linalg.norm(table[has_point], axis=1)
    if len(norms) and norms.max() > 1:
        raise DataError(f"points must be inside the unit ball, but one has norm {norms.max():.6g}; train again")
    return table, np.asarray(has_point & labels.in_use)


def _principal_axes(tangents: Doubles) -> Doubles:
    """Return the two axes of largest variance, as columns; the largest component of each is positive."""
    centered = tangents - tangents.mean(axis=0) if len(tangents) else tangents
    axes = np.linalg.eigh(centered.T @ centered)[1][:, :-3:-1]  # (dimension, 2), the largest variance first
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=0)[None, :], axis=0)
    return np.asarray(axes * np.where(largest < 0, -1.0, 1.0))


def _summary(labels: LabelSpace, drawn: Bools, dimension: int) -> str:
    n, left_out = int(drawn.sum()), int((~drawn).sum())
    sentences = [f"{n:,} label{'' if n == 1 else 's'}"]
    sentences[0] += f" of {labels.n_documents:,} training documents." if labels.n_documents else "."
    if left_out:
        sentences.append(f"{left_out:,} without training documents {'is' if left_out == 1 else 'are'} not shown.")
    if dimension > 2:
        how = "distances from the center are exact, directions are projected on its two principal axes"
        sentences.append(f"The model has {dimension} dimensions: {how}.")
    return " ".join(sentences)
