"""Points in the Poincaré ball or in Euclidean space: distances as inner products, codes of few bits, inverted lists.

d(x, y) = arcosh(1 + 2|x-y|^2 / ((1-|x|^2)(1-|y|^2))) grows with the key a|x-y|^2, a = 1/(1-|y|^2); with a = 1 the key
is the squared Euclidean distance. The key of a point is an inner product of extended vectors, up to a term that all
points share, so ``InvertedLists`` of extended points serve, with two differences:

1. The queries' second moments are taken to the power 1/4 instead of 3/8.
2. A query reads the lists whose centers, the means of their points, have the smallest keys. The mean of the keys would
   be large for a list with a single point near the boundary, where a is large.

Share of the points to read for .995 of the neighbors of unseen documents: of the 100 nearest labels and 80 nearest
documents of two trained models, and of 100 planted points near the boundary.

| k-means, lists ranked by | 100,000 labels | 73,191 documents | 670,091 labels | 490,449 documents | 150,000 planted |
|---|---|---|---|---|---|
| extended points, power 1/4, key of the center | .119 | .083 | .029 | .046 | .205 |
| the same, mean key | .133 | .168 | .038 | .047 | .278 |
| extended points, power 3/8, key of the center | .139 | .094 | .048 | .058 | .207 |
| the points themselves, key of the center | .382 | .458 | | | |
"""

import numpy as np

from labelspace.errors import DataError
from labelspace.index.inverted_lists import InvertedLists, grouped, list_means
from labelspace.index.quantized import Quantized
from labelspace.kernels import hyperbolic_search as kernels
from labelspace.kernels.hyperbolic_search import CODE_BITS, PointCodes, Points
from labelspace.kernels.normalize import row_norms
from labelspace.types import Doubles, Floats, Ints, TopK

GEOMETRIES = ("poincare", "euclidean")
MIN_GAP = 2.0**-52  # between |y|^2 and 1: with a smaller gap the norm is 1 in float64
MAX_NORM = 1e18  # whose square fits float32


def point_weights(rows: Floats, geometry: str, name: str) -> Doubles:
    """Return the weight a = 1/(1-|y|^2) of each row, or 1 in Euclidean space; refuse a norm that is out of range."""
    if geometry == "euclidean":
        norms = np.sqrt(kernels.squared_row_norms(rows))
        if len(rows) and norms.max() > MAX_NORM:
            rule = f"{name} must have norms of at most {MAX_NORM:g}"
            raise DataError(f"{rule}, but one is {norms.max():g}; scale them down")
        return np.ones(len(rows))
    gaps = kernels.one_minus_squared_norms(rows)
    if len(rows) and gaps.min() < MIN_GAP:
        row = int(gaps.argmin())
        problem = f"{name} must have norms below 1, but row {row} has {(1 - gaps[row]) ** 0.5:.9g}"
        raise DataError(f"{problem}; scale it into the ball, or set geometry='euclidean'")
    return 1 / gaps


def to_points(rows: Floats, ids: Ints, geometry: str) -> Points:
    """Arrange rows as the kernels of ``hyperbolic_search`` read them."""
    return Points(
        kernels.to_blocks(rows), kernels.squared_row_norms(rows), point_weights(rows, geometry, "points"), ids
    )


def distances(keys: Doubles, weights: Doubles, geometry: str) -> Doubles:
    """Return the distances of keys a|x-y|^2, given the weights of the queries."""
    if geometry == "euclidean":
        return np.sqrt(keys)
    excess = 2 * weights * keys  # arcosh(1 + excess), without the rounding error of adding 1
    return np.log1p(excess + np.sqrt(excess * (excess + 2)))


def extended_points(rows: Floats, geometry: str) -> Floats:
    """Return (a|y|^2, a y) of each point; its key is |x|^2 minus the product with an extended query. (n, d + 1)."""
    weights = point_weights(rows, geometry, "points")[:, None]
    return np.hstack([weights * kernels.squared_row_norms(rows)[:, None], weights * rows]).astype(np.float32)


def extended_queries(rows: Floats, geometry: str) -> Floats:
    """Return (-(1 + |x|^2), 2x) of each query, or (-1, 2x) in Euclidean space. Shape (m, d + 1).

    >>> x, y = np.array([[0.1, 0.2]], np.float32), np.array([[0.5, 0.5]], np.float32)
    >>> key = (x**2).sum() - (extended_queries(x, "poincare") @ extended_points(y, "poincare").T).item()
    >>> round(float(key), 4), round(float(((x - y) ** 2).sum() / (1 - (y**2).sum())), 4)
    (0.5, 0.5)
    """
    squares = kernels.squared_row_norms(rows)[:, None] if geometry == "poincare" else np.zeros((len(rows), 1))
    return np.hstack([-1 - squares, 2 * rows]).astype(np.float32)


def encode_points(points: Points, seed: int) -> PointCodes:
    """Return the codes of one or more points in few bits, with the maps and levels of ``Quantized``."""
    rows, a = kernels.from_blocks(points.blocks, len(points.ids)), points.weights
    scale = max(float(rows.max()), -float(rows.min())) or 1.0  # second moments of large numbers would overflow
    coded = Quantized(rows / np.float32(scale), np.arange(len(rows)), CODE_BITS, seed=seed)
    slopes = (2 * a * scale * coded.scales_).astype(np.float32)
    weights, offsets = a.astype(np.float32), (a * points.squares).astype(np.float32)
    return PointCodes(coded.planes_, slopes, weights, offsets, coded.center_ * np.float32(scale), coded.query_map_)


POWER = 1 / 4  # of the second moments of the extended queries: the table above says what 3/8 costs
MAX_LISTED = 1e6  # largest coordinate: the squares of squares of larger ones do not fit float32 in k-means
MAX_CENTER_NORM = 1 - 1e-6  # in the ball: the mean of points near the boundary is rounded, and must stay inside


def build_point_lists(rows: Floats, queries: Floats, geometry: str, seed: int) -> tuple[InvertedLists, Ints]:
    """Build lists, none of them empty, and return the list of each point."""
    _, groups = InvertedLists.build(extended_points(rows, geometry), extended_queries(queries, geometry), seed, POWER)
    filled, inverse = np.unique(groups, return_inverse=True)  # an empty one would be at the origin, near everything
    list_of = inverse.astype(np.int32)
    order, starts = grouped(list_of, len(filled))
    centers = np.ascontiguousarray(list_means(rows, order, starts).T)
    if geometry == "poincare":
        centers *= np.minimum(1, MAX_CENTER_NORM / row_norms(centers))[:, None]
    return InvertedLists(np.ascontiguousarray(extended_points(centers, geometry).T), starts), list_of


def can_be_listed(rows: Floats) -> bool:
    """Return whether no coordinate is too large for lists."""
    return max(float(rows.max(initial=0)), -float(rows.min(initial=0))) <= MAX_LISTED


def share_to_read(
    lists: InvertedLists, queries: Floats, ids: Ints, truth: TopK, coverage: float, geometry: str
) -> float:
    """Return the share of rows that a query reads to find this ``coverage`` of neighbors; ``ids`` are of the rows."""
    needed = lists.rows_needed(extended_queries(queries, geometry), ids, truth)
    return float(np.quantile(needed, coverage, method="higher") / len(ids))
