"""Inverted lists of points: a search under the Poincaré or Euclidean distance reads some of them.

The key a|x-y|^2 of a point is an inner product of extended vectors, up to what is the same for all points
(``point_geometry``), so ``Lists`` of extended points serve, with two differences:

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

from labelspace.index.kmeans import grouped
from labelspace.index.lists import Lists, list_means
from labelspace.index.point_geometry import extended_points, extended_queries
from labelspace.kernels.normalize import row_norms
from labelspace.types import Floats, Ints, TopK

POWER = 1 / 4  # of the second moments of the extended queries
MAX_LISTED = 1e6  # largest coordinate: the squares of squares of larger ones do not fit float32 in k-means
MAX_CENTER_NORM = 1 - 1e-6  # in the ball: the mean of points near the boundary is rounded, and must stay inside


def build_point_lists(rows: Floats, queries: Floats, geometry: str, seed: int) -> tuple[Lists, Ints]:
    """Lists, none of them empty, and the list of each point."""
    _, groups = Lists.build(extended_points(rows, geometry), extended_queries(queries, geometry), seed, POWER)
    filled, inverse = np.unique(groups, return_inverse=True)  # an empty one would be at the origin, near everything
    list_of = inverse.astype(np.int32)
    order, starts = grouped(list_of, len(filled))
    centers = np.ascontiguousarray(list_means(rows, order, starts).T)
    if geometry == "poincare":
        centers *= np.minimum(1, MAX_CENTER_NORM / row_norms(centers))[:, None]
    return Lists(np.ascontiguousarray(extended_points(centers, geometry).T), starts), list_of


def lists_of_new(lists: Lists, rows: Floats, geometry: str) -> Ints:
    """The list that each new point goes to: that of the nearest extended center."""
    return lists.nearest(extended_points(rows, geometry))


def can_be_listed(rows: Floats) -> bool:
    """Whether no coordinate is too large for lists."""
    return max(float(rows.max(initial=0)), -float(rows.min(initial=0))) <= MAX_LISTED


def share_to_read(lists: Lists, queries: Floats, ids: Ints, truth: TopK, coverage: float, geometry: str) -> float:
    """The share of the rows that a query reads to have read this share of its neighbors; ``ids`` are those of rows."""
    by_id = np.argsort(ids)
    rows = by_id[np.searchsorted(ids[by_id], np.maximum(truth.labels, ids[by_id[0]]))]
    needed = lists.rows_needed(extended_queries(queries, geometry), rows)[truth.labels >= 0]
    return float(np.quantile(needed, coverage, method="higher") / len(ids))
