"""All labels of a model on the Poincaré disk, as one HTML page that opens offline.

The folder ``disk`` has the page, its look and its scripts, which are put into one. Labels come as polar coordinates:
the hyperbolic distance from the center can be rounded, while a norm near 1 would be rounded to the rim.
"""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from math import isnan
from string import Template
from typing import Any

import numpy as np
import numpy.typing as npt

from labelspace.errors import DataError
from labelspace.labels.rank_correlation import spearman
from labelspace.types import Bools, Doubles, LabelSpace

# In the order in which one needs another.
SCRIPTS = ("geometry", "pixels", "labels", "theme", "drawing", "navigation", "info_panel", "search", "chart", "events")
ANGLE_DIGITS = 7  # behind the point
DISTANCE_DIGITS = 5
LARGEST_NORM = 1 - 2**-24  # the largest float32 below 1


def map_page(points: npt.ArrayLike, labels: LabelSpace, title: str) -> str:
    """The page of points (n_labels, dimension) in the Poincaré ball; labels whose row is NaN are left out.

    >>> page = map_page([[0.1, 0.2], [0.5, 0.0]], LabelSpace(["cat", "dog"]), "pets")
    >>> "<title>pets</title>" in page and '"names":["cat","dog"]' in page
    True
    """
    table = checked_points(points, labels)
    placed = has_place(table)
    told = {
        "title": escape(title),
        "summary": escape(_summary(labels, placed, table.shape[1])),
        "correlation": escape(_in_words(norm_against_frequency(table, labels))),
        "data": _as_json(map_data(table, labels)),
        "style": _part("page.css"),
        "script": "\n".join(_part(f"{name}.js") for name in SCRIPTS),
    }
    return Template(_part("page.html")).substitute(told)


def map_data(points: npt.ArrayLike, labels: LabelSpace) -> dict[str, Any]:
    """What the page draws: for each label its name, angle, distance from the center and training documents; edges."""
    table = checked_points(points, labels)
    placed = has_place(table)
    x, y = on_disk(table[placed]).T
    norms = np.minimum(np.hypot(x, y), LARGEST_NORM)
    new_id = np.cumsum(placed) - 1
    edges = np.zeros((0, 2), np.int32) if labels.hierarchy is None else labels.hierarchy.edges
    edges = new_id[edges[placed[edges].all(axis=1)]]  # a label without a place takes its edges with it
    return {
        "names": [name for name, there in zip(labels.names, placed.tolist(), strict=True) if there],
        "angle": np.round(np.arctan2(y, x), ANGLE_DIGITS).tolist(),
        "distance": np.round(2 * np.arctanh(norms), DISTANCE_DIGITS).tolist(),
        "counts": None if labels.counts is None else labels.counts[placed].tolist(),
        "children": edges[:, 0].tolist(),
        "parents": edges[:, 1].tolist(),
    }


def on_disk(points: npt.ArrayLike) -> Doubles:
    """Points of the Poincaré ball (n, dimension) on its disk (n, 2); every norm stays exactly what it is.

    Points of two dimensions stay as they are. Of more, each is taken to the tangent space of the center, and its
    direction is that of its part along the two principal axes there.

    >>> on_disk([[0.0, 0.6, 0.0], [0.0, -0.6, 0.0]]).round(6).tolist()
    [[0.6, 0.0], [-0.6, 0.0]]
    """
    table = np.asarray(points, dtype=np.float64)
    if table.shape[1] == 2:
        return table
    if table.shape[1] == 1:
        return np.concatenate([table, np.zeros_like(table)], axis=1)
    norms = np.linalg.norm(table, axis=1, keepdims=True)  # (n, 1)
    reach = np.arctanh(np.minimum(norms, LARGEST_NORM))
    tangents = table * np.divide(reach, norms, out=np.ones_like(norms), where=norms > 0)
    flat = tangents @ _principal_axes(tangents)  # (n, 2)
    lengths = np.linalg.norm(flat, axis=1, keepdims=True)
    flat = np.where(lengths > 1e-12 * reach, flat, [1.0, 0.0])  # a point off both axes has no direction: take the first
    return np.asarray(norms * flat / np.linalg.norm(flat, axis=1, keepdims=True))


def norm_against_frequency(points: npt.ArrayLike, labels: LabelSpace) -> float:
    """Spearman's correlation of the labels' norms with their training documents; NaN where there is none to tell."""
    if labels.counts is None:
        return float("nan")
    table = checked_points(points, labels)
    placed = has_place(table)
    return spearman(np.linalg.norm(table[placed], axis=1), labels.counts[placed])


def map_summary(points: npt.ArrayLike, labels: LabelSpace) -> dict[str, Any]:
    """What a map shows in three figures: labels drawn, labels left out, norm against frequency (None where unknown)."""
    placed = has_place(points)
    correlation = norm_against_frequency(points, labels)
    return {
        "n_labels": int(placed.sum()),
        "n_left_out": int((~placed).sum()),
        "spearman": None if isnan(correlation) else round(correlation, 6),
    }


def has_place(points: npt.ArrayLike) -> Bools:
    """Which labels have a point: those whose row holds no NaN. Shape (n_labels,)."""
    return np.asarray(np.isfinite(np.asarray(points)).all(axis=1))


def checked_points(points: npt.ArrayLike, labels: LabelSpace) -> Doubles:
    """The points as a table with one row a label, all inside the ball."""
    table = np.asarray(points, dtype=np.float64)
    if table.ndim != 2 or len(table) != len(labels) or table.shape[1] < 1:
        raise DataError(
            f"there must be one point a label, so a table ({len(labels)}, dimension), but it has shape {table.shape}; "
            "give the points and the labels of one model"
        )
    norms = np.linalg.norm(table[has_place(table)], axis=1)
    if len(norms) and norms.max() > 1:
        raise DataError(f"points must lie inside the unit ball, but one has norm {norms.max():.6g}; train again")
    return table


def _principal_axes(tangents: Doubles) -> Doubles:
    """The two axes along which the vectors differ most, as columns; the largest part of each is positive."""
    centered = tangents - tangents.mean(axis=0) if len(tangents) else tangents
    axes = np.linalg.eigh(centered.T @ centered)[1][:, :-3:-1]  # (dimension, 2), the longest first
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=0)[None, :], axis=0)
    return np.asarray(axes * np.where(largest < 0, -1.0, 1.0))


def _summary(labels: LabelSpace, placed: Bools, dimension: int) -> str:
    n, left_out = int(placed.sum()), int((~placed).sum())
    words = [f"{n:,} label{'' if n == 1 else 's'}"]
    words[0] += f" of {labels.n_documents:,} training documents." if labels.n_documents else "."
    if left_out:
        words.append(f"{left_out:,} without a training document {'has' if left_out == 1 else 'have'} no place here.")
    if dimension > 2:
        words.append(
            f"The model has {dimension} dimensions: distances from the center are exact, directions are those along "
            "its two principal axes."
        )
    return " ".join(words)


def _in_words(correlation: float) -> str:
    if isnan(correlation):
        return "No rank correlation: norms or frequencies are all equal."
    return f"Spearman's rank correlation {correlation:+.3f}".replace("-", "\N{MINUS SIGN}")


def _as_json(data: dict[str, Any]) -> str:
    """As JSON that no name can break out of: inside a script element only ``<`` could end it."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _part(name: str) -> str:
    return files(__package__).joinpath("disk", name).read_text(encoding="utf-8")
