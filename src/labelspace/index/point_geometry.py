"""Points in the Poincaré ball or in Euclidean space: weights, distances, and distances as inner products.

d(x, y) = arcosh(1 + 2|x-y|^2 / ((1-|x|^2)(1-|y|^2))) grows with the key a|x-y|^2, a = 1/(1-|y|^2); with a = 1 the key
is the squared Euclidean distance.
"""

import numpy as np

from labelspace.errors import DataError
from labelspace.kernels.hyperbolic_search import Points, one_minus_squared_norms, squared_row_norms, to_blocks
from labelspace.types import Doubles, Floats, Ints

GEOMETRIES = ("poincare", "euclidean")
MIN_GAP = 2.0**-52  # between |y|^2 and 1: below, the norm is 1 in float64
MAX_NORM = 1e18  # whose square fits float32


def point_weights(rows: Floats, geometry: str, name: str) -> Doubles:
    """The weight a = 1/(1-|y|^2) of each row, or 1 in Euclidean space; a norm out of range is an error."""
    if geometry == "euclidean":
        norms = np.sqrt(squared_row_norms(rows))
        if len(rows) and norms.max() > MAX_NORM:
            rule = f"{name} must have norms of at most {MAX_NORM:g}"
            raise DataError(f"{rule}, but one is {norms.max():g}; scale them down")
        return np.ones(len(rows))
    gaps = one_minus_squared_norms(rows)
    if len(rows) and gaps.min() < MIN_GAP:
        row = int(gaps.argmin())
        raise DataError(
            f"{name} must have norms below 1, but row {row} has {(1 - gaps[row]) ** 0.5:.9g}; "
            "scale it into the ball, or set geometry='euclidean'"
        )
    return 1 / gaps


def to_points(rows: Floats, ids: Ints, geometry: str) -> Points:
    """The rows as the kernels of ``hyperbolic_search`` read them."""
    return Points(to_blocks(rows), squared_row_norms(rows), point_weights(rows, geometry, "points"), ids)


def distances(keys: Doubles, weights: Doubles, geometry: str) -> Doubles:
    """The distances of keys a|x-y|^2, given the weights of the queries."""
    if geometry == "euclidean":
        return np.sqrt(keys)
    excess = 2 * weights * keys  # arcosh(1 + excess), without the rounding error of adding 1
    return np.log1p(excess + np.sqrt(excess * (excess + 2)))


def extended_points(rows: Floats, geometry: str) -> Floats:
    """(a|y|^2, a y) of each point: its key is |x|^2 minus the product with ``extended_queries``. Shape (n, d + 1)."""
    weights = point_weights(rows, geometry, "points")[:, None]
    return np.hstack([weights * squared_row_norms(rows)[:, None], weights * rows]).astype(np.float32)


def extended_queries(rows: Floats, geometry: str) -> Floats:
    """(-(1 + |x|^2), 2x) of each query, or (-1, 2x) in Euclidean space. Shape (m, d + 1).

    >>> x, y = np.array([[0.1, 0.2]], np.float32), np.array([[0.5, 0.5]], np.float32)
    >>> key = (x**2).sum() - (extended_queries(x, "poincare") @ extended_points(y, "poincare").T).item()
    >>> round(float(key), 4), round(float(((x - y) ** 2).sum() / (1 - (y**2).sum())), 4)
    (0.5, 0.5)
    """
    squares = squared_row_norms(rows)[:, None] if geometry == "poincare" else np.zeros((len(rows), 1))
    return np.hstack([-1 - squares, 2 * rows]).astype(np.float32)
