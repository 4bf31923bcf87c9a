"""Ball: the points nearest to a query under the Poincaré distance, or the Euclidean one.

d(x, y) = arcosh(1 + 2|x-y|^2 / ((1-|x|^2)(1-|y|^2))). All points are read, and the answer is that of brute force in
float64, up to the boundary; or, as in Gerald and Baskiotis (2019, section 2.6), those of a few clusters only:

1. ``clusters`` points drawn at random are the centers, a point for 3000 by default.
2. A point belongs to its nearest center, and stands beside the others of that cluster.
3. A query reads the ``probes`` clusters whose centers are nearest to it, and finds the nearest points there.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from labelspace.errors import DataError, ParameterError
from labelspace.estimator import learned
from labelspace.index.base import Index, check_one_id_a_vector, checked_ids, checked_table
from labelspace.index.choice import recall
from labelspace.kernels.hyperbolic_search import (
    Points,
    empty_results,
    from_blocks,
    nearest_in_clusters,
    nearest_points,
    one_minus_squared_norms,
    squared_row_norms,
    to_blocks,
)  # fmt: skip
from labelspace.kernels.threads import run_blocks
from labelspace.types import Doubles, Floats, Ints, Longs, TopK

GEOMETRIES = ("poincare", "euclidean")
CLUSTER_SIZE = 3000  # points for one center, as in the paper
QUERY_BLOCK = 32  # queries a task: a block of points in the cache serves them all
LEAST_GAP = 2.0**-52  # between |y|^2 and 1: below, the norm is 1 in float64
LARGEST_NORM = 1e18  # whose square float32 can hold
SAMPLE = 200  # points that recall is measured on
RECALL_AT = 10


class Ball(Index):
    """Points by id; scores are distances below zero, and equal distances (in float64) go to the smaller id.

    The answer does not depend on the batch or the number of threads. ``clusters`` is None to read all points, a number
    or "auto"; ``report`` then has the recall of a sample of the points, each asked for its ten nearest others, and the
    share of all points that they read.

    >>> index = Ball([[0.0, 0.0], [0.5, 0.0], [0.999, 0.0]], ids=[10, 20, 30])
    >>> found = index.search([[0.7, 0.0]], k=2)
    >>> found.labels.tolist(), [f"{score:.3f}" for score in found.scores[0]]
    ([[20, 10]], ['-0.636', '-1.735'])
    """

    name = "ball"

    geometry: str = learned()
    clusters: int | str | None = learned()
    seed: int = learned()
    max_probes: int | None = learned()
    points_: Points = learned(Points)
    centers_: Points = learned(Points)  # none where all points are read
    starts_: Longs = learned()  # where each cluster starts, and where the last ends

    def __init__(
        self,
        points: npt.ArrayLike,
        ids: npt.ArrayLike,
        geometry: str = "poincare",
        clusters: int | str | None = None,
        probes: int | None = None,
        seed: int = 0,
    ) -> None:
        if geometry not in GEOMETRIES:
            raise ParameterError(f"geometry must be one of {', '.join(GEOMETRIES)}, but is {geometry!r}; set it so")
        if not (clusters is None or clusters == "auto" or isinstance(clusters, int)):
            raise ParameterError(f"clusters must be a whole number, 'auto' or None, but is {clusters!r}; set it so")
        for name, value in (("clusters", clusters), ("probes", probes)):
            if isinstance(value, int) and value < 1:
                raise ParameterError(f"{name} must be at least 1, but is {value}; set it so")
        rows, new = checked_table(points, "points"), checked_ids(ids)
        check_one_id_a_vector(new, rows)
        super().__init__("ball", "float32", rows.shape[1])
        self.geometry, self.clusters, self.seed = geometry, clusters, seed
        self.max_probes = probes
        self._weights(rows, "points")  # refuses some, by the row that the caller knows
        self.centers_ = self._measured(rows[:0], new[:0])
        self._arrange(rows, new)
        self.report["geometry"] = geometry
        if self.n_clusters:
            self._report_recall()

    @property
    def ids(self) -> Ints:
        """The ids held. Shape (n,)."""
        return self.points_.ids

    @property
    def points(self) -> Floats:
        """The points held, in the order of ``ids``. Shape (n, dimension)."""
        return from_blocks(self.points_.blocks, len(self))

    @property
    def n_clusters(self) -> int:
        """Clusters that the points are parted into; 0 where all are read."""
        return len(self.centers_.ids)

    @property
    def probes(self) -> int:
        """Clusters that a query reads."""
        return min(self.n_clusters, self.max_probes or math.ceil(self.n_clusters**0.5))

    def _arrange(self, rows: Floats, ids: Ints) -> None:
        """Put the points in the order of their clusters, then of their ids; steps 1 and 2."""
        order = np.argsort(ids)
        if self.clusters is not None and not self.n_clusters and len(ids):
            wanted = self.clusters if isinstance(self.clusters, int) else max(1, round(len(ids) / CLUSTER_SIZE))
            drawn = np.random.default_rng(self.seed).permutation(order)[:wanted]
            self.centers_ = self._measured(rows[drawn], np.arange(len(drawn), dtype=np.int32))
        sizes = np.array([len(ids)])
        if self.n_clusters:
            cluster = self._nearest(rows, self.centers_, 1)[0][:, 0]
            order, sizes = np.lexsort([ids, cluster]), np.bincount(cluster, minlength=self.n_clusters)
        self.points_ = self._measured(rows[order], ids[order])
        self.starts_ = np.concatenate([[0], np.cumsum(sizes)])

    def _measured(self, rows: Floats, ids: Ints) -> Points:
        return Points(to_blocks(rows), squared_row_norms(rows), self._weights(rows, "points"), ids)

    def _weights(self, rows: Floats, name: str) -> Doubles:
        """The weight a = 1/(1-|y|^2) of each row, or 1 in flat space; a row where the geometry ends is refused."""
        if self.geometry == "euclidean":
            norms = np.sqrt(squared_row_norms(rows))
            if len(rows) and norms.max() > LARGEST_NORM:
                raise DataError(
                    f"{name} must have norms of at most {LARGEST_NORM:g}, but one is {norms.max():g}; scale them down"
                )
            return np.ones(len(rows))
        gaps = one_minus_squared_norms(rows)
        if len(rows) and gaps.min() < LEAST_GAP:
            at = int(gaps.argmin())
            raise DataError(
                f"{name} must have norms below 1, but row {at} has {(1 - gaps[at]) ** 0.5:.9g}; "
                "scale it into the ball, or set geometry='euclidean'"
            )
        return 1 / gaps

    def _nearest(self, queries: Floats, points: Points, k: int, parts: Ints | None = None) -> tuple[Ints, Doubles]:
        """Ids and keys below zero of the k nearest points, of those parts only where given."""
        labels, scores = empty_results(len(queries), k)

        def find(start: int, stop: int) -> None:
            asked, out = queries[start:stop], (labels[start:stop], scores[start:stop])
            if parts is None:
                nearest_points(asked, points, *out)
            else:
                nearest_in_clusters(asked, points, self.starts_, parts[start:stop], *out)

        run_blocks(find, len(queries), QUERY_BLOCK)
        return labels, scores

    def _search(self, queries: Floats, k: int) -> TopK:
        weights = self._weights(queries, "queries")
        parts = self._parts(queries) if self.n_clusters else None  # step 3
        labels, scores = self._nearest(queries, self.points_, k, parts)
        return TopK(labels, -self._distances(-scores, weights[:, None]).astype(np.float32))

    def _parts(self, queries: Floats) -> Ints:
        """The clusters that each query reads, the nearest first. Shape (m, probes)."""
        return self._nearest(queries, self.centers_, self.probes)[0]

    def _distances(self, keys: Doubles, weights: Doubles) -> Doubles:
        """The distances of keys a|x-y|^2, given the weights of the queries."""
        if self.geometry == "euclidean":
            return np.sqrt(keys)
        over = 2 * weights * keys  # arcosh(1 + over), without the loss of adding 1
        return np.log1p(over + np.sqrt(over * (over + 2)))

    def _add(self, ids: Ints, vectors: Floats) -> None:
        self._weights(vectors, "vectors")
        rows = np.concatenate([self.points, vectors])
        self._arrange(rows, np.concatenate([self.ids, ids]))

    def _remove(self, ids: Ints) -> None:
        keep = ~np.isin(self.ids, ids)
        self._arrange(self.points[keep], self.ids[keep])

    def _report_recall(self) -> None:
        """The share of their nearest others that a sample of points finds, and the share of all points it reads."""
        at = np.sort(np.random.default_rng(self.seed).permutation(len(self))[:SAMPLE])
        rows, own = self.points[at], self.ids[at]
        labels, scores = self._nearest(rows, self.points_, RECALL_AT + 1)
        truth = TopK(np.where(labels == own[:, None], -1, labels), scores.astype(np.float32))
        found = self.search(rows, RECALL_AT + 1)
        read = np.diff(self.starts_)[self._parts(rows)].sum(axis=1).mean() / len(self)
        self.report |= {
            "clusters": self.n_clusters, "probes": self.probes, "recall": round(recall(found, truth), 4),
            "recall_at": RECALL_AT, "share_read": round(float(read), 4),
        }  # fmt: skip
