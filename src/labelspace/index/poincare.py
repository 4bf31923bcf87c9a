"""Nearest points under the Poincaré distance, or the Euclidean one.

d(x, y) = arcosh(1 + 2|x-y|^2 / ((1-|x|^2)(1-|y|^2))). All points are searched, and the result is that of brute
force in float64, up to the boundary; or, as in Gerald and Baskiotis (2019, section 2.6), those of a few clusters only:

1. ``clusters`` points drawn at random are the centers, by default one per 3000 points.
2. A point belongs to the cluster of its nearest center; the points of a cluster are stored together.
3. A query searches the ``probes`` clusters whose centers are nearest to it.
"""

import math

import numpy as np
import numpy.typing as npt

from labelspace.errors import DataError, ParameterError
from labelspace.estimator import learned
from labelspace.index.base import Index, checked_ids, checked_vectors
from labelspace.index.choice import recall
from labelspace.kernels.hyperbolic_search import (
    BLOCK_SIZE,
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
from labelspace.parameter_constraints import either, integer, one_of, optional
from labelspace.state_constraints import must, offsets, part, plain
from labelspace.types import Doubles, Floats, Ints, Longs, TopK

GEOMETRIES = ("poincare", "euclidean")
CLUSTER_SIZE = 3000  # points per center, as in the paper
QUERY_BLOCK = 32  # queries per task, which share a block of points in the cache
MIN_GAP = 2.0**-52  # between |y|^2 and 1: below, the norm is 1 in float64
MAX_NORM = 1e18  # whose square fits float32
N_SAMPLED = 200  # points that recall is measured on
RECALL_AT = 10


class PointIndex(Index):
    """Points by id; scores are negative distances, and equal distances (in float64) go to the smaller id.

    Results do not depend on the batch or the number of threads. ``clusters`` is None to search all points, a number or
    "auto"; ``report`` then has the recall of the ten nearest neighbors of a sample of the points, and the share of all
    points that a query is compared with.

    >>> index = PointIndex([[0.0, 0.0], [0.5, 0.0], [0.999, 0.0]], ids=[10, 20, 30])
    >>> topk = index.search([[0.7, 0.0]], k=2)
    >>> topk.labels.tolist(), [f"{score:.3f}" for score in topk.scores[0]]
    ([[20, 10]], ['-0.636', '-1.735'])
    """

    name = "ball"

    geometry: str = learned(plain(one_of(*GEOMETRIES)))
    clusters: int | str | None = learned(plain(optional(either(one_of("auto"), integer(1)))))
    seed: int = learned(plain(integer(0)))
    max_probes: int | None = learned(plain(optional(integer(1))))
    points_: Points = learned(part(Points, n="n", dimension="dimension"))
    centers_: Points = learned(part(Points, n="n_centers", dimension="dimension"))  # empty where all are searched
    starts_: Longs = learned(offsets("n_clusters", into="n"))  # row offsets of the clusters

    def check_state(self) -> None:
        """The points come in whole blocks, cluster by cluster."""
        for points in (self.points_, self.centers_):
            must(len(points.blocks) == -(-len(points.ids) // BLOCK_SIZE), f"blocks of {BLOCK_SIZE} points")
        must((self.centers_.ids == np.arange(self.n_clusters)).all(), "centers that are numbered")
        must(len(self.starts_) == max(1, self.n_clusters) + 1, "a start per cluster")

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
            raise ParameterError(f"geometry must be one of {', '.join(GEOMETRIES)}, but is {geometry!r}; set one")
        if not (clusters is None or clusters == "auto" or isinstance(clusters, int)):
            raise ParameterError(f"clusters must be an integer, 'auto' or None, but is {clusters!r}; set one of them")
        for name, value in (("clusters", clusters), ("probes", probes)):
            if isinstance(value, int) and value < 1:
                raise ParameterError(f"{name} must be at least 1, but is {value}; set 1 or more")
        rows = checked_vectors(points, "points")
        new = checked_ids(ids, rows)
        super().__init__("ball", "float32", rows.shape[1])
        self.geometry, self.clusters, self.seed, self.max_probes = geometry, clusters, seed, probes
        self._weights(rows, "points")  # checks the norms; the error names the caller's row
        self.centers_ = self._points(rows[:0], new[:0])
        self._build(rows, new)
        self.report["geometry"] = geometry
        if self.n_clusters:
            self._report_recall()

    @property
    def ids(self) -> Ints:
        """The ids in the index. Shape (n,)."""
        return self.points_.ids

    @property
    def points(self) -> Floats:
        """The points, in the order of ``ids``. Shape (n, dimension)."""
        return from_blocks(self.points_.blocks, len(self))

    @property
    def n_clusters(self) -> int:
        """Number of clusters; 0 where all points are searched."""
        return len(self.centers_.ids)

    @property
    def probes(self) -> int:
        """Number of clusters that a query searches."""
        return min(self.n_clusters, self.max_probes or math.ceil(self.n_clusters**0.5))

    def _build(self, rows: Floats, ids: Ints) -> None:
        """Sort the points by cluster, then by id; steps 1 and 2."""
        order = np.argsort(ids)
        if self.clusters is not None and not self.n_clusters and len(ids):
            n_clusters = self.clusters if isinstance(self.clusters, int) else max(1, round(len(ids) / CLUSTER_SIZE))
            drawn = np.random.default_rng(self.seed).permutation(order)[:n_clusters]
            self.centers_ = self._points(rows[drawn], np.arange(len(drawn), dtype=np.int32))
        sizes = np.array([len(ids)])
        if self.n_clusters:
            cluster = self._nearest(rows, self.centers_, 1)[0][:, 0]
            order, sizes = np.lexsort([ids, cluster]), np.bincount(cluster, minlength=self.n_clusters)
        self.points_ = self._points(rows[order], ids[order])
        self.starts_ = np.concatenate([[0], np.cumsum(sizes)])

    def _points(self, rows: Floats, ids: Ints) -> Points:
        return Points(to_blocks(rows), squared_row_norms(rows), self._weights(rows, "points"), ids)

    def _weights(self, rows: Floats, name: str) -> Doubles:
        """The weight a = 1/(1-|y|^2) of each row, or 1 in Euclidean space; a norm out of range is an error."""
        if self.geometry == "euclidean":
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

    def _nearest(self, queries: Floats, points: Points, k: int, clusters: Ints | None = None) -> tuple[Ints, Doubles]:
        """Ids and negative keys a|x-y|^2 of the k nearest points, within the given clusters if any."""
        labels, scores = empty_results(len(queries), k)

        def search_block(start: int, stop: int) -> None:
            block, out = queries[start:stop], (labels[start:stop], scores[start:stop])
            if clusters is None:
                nearest_points(block, points, *out)
            else:
                nearest_in_clusters(block, points, self.starts_, clusters[start:stop], *out)

        run_blocks(search_block, len(queries), QUERY_BLOCK)
        return labels, scores

    def _search(self, queries: Floats, k: int) -> TopK:
        weights = self._weights(queries, "queries")
        clusters = self._nearest_clusters(queries) if self.n_clusters else None  # step 3
        labels, scores = self._nearest(queries, self.points_, k, clusters)
        return TopK(labels, -self._distances(-scores, weights[:, None]).astype(np.float32))

    def _nearest_clusters(self, queries: Floats) -> Ints:
        """The clusters that each query searches, the nearest first. Shape (m, probes)."""
        return self._nearest(queries, self.centers_, self.probes)[0]

    def _distances(self, keys: Doubles, weights: Doubles) -> Doubles:
        """The distances of keys a|x-y|^2, given the weights of the queries."""
        if self.geometry == "euclidean":
            return np.sqrt(keys)
        excess = 2 * weights * keys  # arcosh(1 + excess), without the rounding error of adding 1
        return np.log1p(excess + np.sqrt(excess * (excess + 2)))

    def _vectors(self, at: Longs) -> Floats:
        return np.ascontiguousarray(self.points_.blocks[at // BLOCK_SIZE, :, at % BLOCK_SIZE])

    def _add(self, ids: Ints, vectors: Floats) -> None:
        self._weights(vectors, "vectors")
        self._build(np.concatenate([self.points, vectors]), np.concatenate([self.ids, ids]))

    def _remove(self, ids: Ints) -> None:
        keep = ~np.isin(self.ids, ids)
        self._build(self.points[keep], self.ids[keep])

    def _report_recall(self) -> None:
        """Recall of the nearest neighbors of a sample of points, and the share of all points it is compared with."""
        sample = np.sort(np.random.default_rng(self.seed).permutation(len(self))[:N_SAMPLED])
        rows, ids = self.points[sample], self.ids[sample]
        labels, scores = self._nearest(rows, self.points_, RECALL_AT + 1)
        truth = TopK(np.where(labels == ids[:, None], -1, labels), scores.astype(np.float32))
        topk = self.search(rows, RECALL_AT + 1)
        share_read = np.diff(self.starts_)[self._nearest_clusters(rows)].sum(axis=1).mean() / len(self)
        self.report |= {
            "clusters": self.n_clusters, "probes": self.probes, "recall": round(recall(topk, truth), 4),
            "recall_at": RECALL_AT, "share_read": round(float(share_read), 4),
        }  # fmt: skip
