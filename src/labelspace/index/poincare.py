"""Nearest points under the Poincaré distance, or the Euclidean one.

d(x, y) = arcosh(1 + 2|x-y|^2 / ((1-|x|^2)(1-|y|^2))). Where points are few, all distances are computed, and the result
is that of brute force in float64, up to the boundary.

Where points are many, distances are estimated from 4 bits per number, rounded as in ``Quantized``, and only the
distances of a shortlist are computed. The points lie in inverted lists (``points.py``), and a query reads the most
promising lists. The share of the points to read, and the length of the shortlist, are what it takes to find the
neighbors of a sample of queries; if that share would be above a half, all points are read.

With ``clusters``, the points of a few clusters are searched, as in Gerald and Baskiotis (2019, section 2.6):

1. ``clusters`` points drawn at random are the centers, by default one per 3000 points.
2. A point belongs to the cluster of its nearest center; the points of a cluster are stored together.
3. A query searches the ``probes`` clusters whose centers are nearest to it.
"""

import math
from numbers import Integral

import numpy as np
import numpy.typing as npt

from labelspace.estimator import learned
from labelspace.estimator.parameter_constraints import either, integer, one_of, optional, real
from labelspace.estimator.state_constraints import must, offsets, part, plain
from labelspace.index import points as point_functions
from labelspace.index.base import Index, checked_ids, checked_vectors
from labelspace.index.choice import recall
from labelspace.index.inverted_lists import InvertedLists
from labelspace.index.points import GEOMETRIES, extended_queries, point_weights, to_points
from labelspace.index.quantized import MAX_READ_SHARE, MIN_READ, SELF_QUERIES
from labelspace.kernels import hyperbolic_search as kernels
from labelspace.kernels.bit_planes import BLOCK
from labelspace.kernels.hyperbolic_search import BLOCK_SIZE, CODE_BITS, PointCodes, Points
from labelspace.kernels.sparse_layers import dense_forward
from labelspace.kernels.threads import run_blocks
from labelspace.types import Doubles, Floats, Ints, Longs, TopK

CLUSTER_SIZE = 3000  # points per center, as in the paper
QUERY_BLOCK = 32  # queries per task, which share a block of points in the cache
N_SAMPLED = 200  # queries that recall is measured on; fewer are faster, and the recall less certain
RECALL_AT = 10  # neighbors that the recall of a search in clusters is about
MAX_EXACT_SIZE = 2_500_000  # numbers (points x dimensions) up to which all distances are computed in half a millisecond
SHORTLISTS = (2, 4, 8, 16)  # candidates per requested neighbor, the fastest first
SHORTLIST_RECALL_AT = 100  # more neighbors than are usually requested; the first of them are found more often
MIN_NEIGHBORS = 32  # a request for fewer neighbors counts as one for 32, so that its shortlist is long enough
CLUSTERS, PROBES = optional(either(one_of("auto"), integer(1))), optional(integer(1))
MAX_SHORTLIST_SHARE = 1 / 16  # of all points: with longer shortlists, to compute all distances is as fast


class PointIndex(Index):
    """Points by id; scores are negative distances, and equal distances (in float64) go to the smaller id.

    Results do not depend on the batch or the number of threads. ``recall_target`` is the share of the 100 nearest
    neighbors of a sample of ``queries`` (m, d) that must be found where points are many, or None for an exact search
    whatever their number; without ``queries``, some of the points stand for them. ``clusters`` is None, a number or
    "auto"; ``report`` then has the recall of ten neighbors, and the share of all points that a query is compared with.
    An index that is exact when it is built stays exact, however many points are added.

    >>> index = PointIndex([[0.0, 0.0], [0.5, 0.0], [0.999, 0.0]], ids=[10, 20, 30])
    >>> topk = index.search([[0.7, 0.0]], k=2)
    >>> topk.labels.tolist(), [f"{score:.3f}" for score in topk.scores[0]]
    ([[20, 10]], ['-0.636', '-1.735'])
    """

    name = "ball"

    geometry: str = learned(plain(one_of(*GEOMETRIES)))
    clusters: int | str | None = learned(plain(CLUSTERS))
    seed: int = learned(plain(integer(0)))
    max_probes: int | None = learned(plain(PROBES))
    points_: Points = learned(part(Points, n="n", dimension="dimension"))
    centers_: Points = learned(part(Points, n="n_centers", dimension="dimension"))  # empty if all points are searched
    starts_: Longs = learned(offsets("n_clusters", into="n"))  # row offsets of the clusters
    shortlist: int | None = learned(plain(optional(integer(1))), default=None)  # None without codes
    codes_: PointCodes | None = learned(part(PointCodes, optional=True, n="n", dimension="dimension"), default=None)
    share_read: float | None = learned(plain(optional(real(above=0, at_most=1))), default=None)  # None without lists
    lists_: InvertedLists | None = learned(
        part(InvertedLists, optional=True, n="n", dimension="extended"), default=None
    )

    def check_state(self) -> None:
        """Check that the points come in whole blocks, cluster by cluster, and that codes and lists fit them."""
        for points in (self.points_, self.centers_):
            must(len(points.blocks) == -(-len(points.ids) // BLOCK_SIZE), f"blocks of {BLOCK_SIZE} points")
        must((self.centers_.ids == np.arange(self.n_clusters)).all(), "centers that are numbered")
        must(len(self.starts_) == max(1, self.n_clusters) + 1, "a start per cluster")
        must((self.codes_ is None) == (self.shortlist is None), "both codes and a shortlist, or neither")
        if self.codes_ is not None:
            (n_blocks, n_words, _), width = self.codes_.planes.shape, self.codes_.query_map.shape[1]
            must(n_blocks == len(self.points_.blocks) and not self.n_clusters, "codes of its points, without clusters")
            whole = width > 0 and width % BLOCK == 0
            must(whole and n_words == CODE_BITS * width // BLOCK, f"codes of {CODE_BITS} bits in whole words")
        must((self.lists_ is None) == (self.share_read is None), "both lists and how much to read of them, or neither")
        if self.lists_ is not None:
            must(self.codes_ is not None, "codes of the points that lie in lists")
            must(len(self.lists_.means) == self.dimension + 1, "lists of its points")

    def __init__(
        self,
        points: npt.ArrayLike,
        ids: npt.ArrayLike,
        geometry: str = "poincare",
        clusters: int | str | None = None,
        probes: int | None = None,
        seed: int = 0,
        recall_target: float | None = 0.99,
        queries: npt.ArrayLike | None = None,
    ) -> None:
        one_of(*GEOMETRIES).check("geometry", geometry)
        CLUSTERS.check("clusters", clusters)
        PROBES.check("probes", probes)
        optional(real(above=0, at_most=1)).check("recall_target", recall_target)
        rows = checked_vectors(points, "points")
        new = checked_ids(ids, rows)
        super().__init__("ball", "float32", rows.shape[1])
        self.geometry, self.seed, self.max_probes = geometry, seed, probes
        self.clusters = int(clusters) if isinstance(clusters, Integral) else clusters
        point_weights(rows, geometry, "points")  # checks the norms; the error names the caller's row
        given = checked_vectors(rows[:0] if queries is None else queries, "queries", rows.shape[1])
        point_weights(given, geometry, "queries")
        self.centers_ = to_points(rows[:0], new[:0], geometry)
        self.codes_ = self.shortlist = self.lists_ = self.share_read = None
        self._build(rows, new)
        self.report["geometry"] = geometry
        if self.n_clusters:
            self._report_recall()
        elif recall_target is not None and rows.size > MAX_EXACT_SIZE:
            self._choose_search(recall_target, given)

    @property
    def ids(self) -> Ints:
        """Return the ids in the index. Shape (n,)."""
        return self.points_.ids

    @property
    def points(self) -> Floats:
        """Return the points, in the order of ``ids``. Shape (n, dimension)."""
        return kernels.from_blocks(self.points_.blocks, len(self))

    @property
    def n_clusters(self) -> int:
        """Return the number of clusters; 0 if all points are searched."""
        return len(self.centers_.ids)

    @property
    def probes(self) -> int:
        """Return the number of clusters that a query searches."""
        return min(self.n_clusters, self.max_probes or math.ceil(self.n_clusters**0.5))

    def _build(self, rows: Floats, ids: Ints, list_of: Ints | None = None) -> None:
        """Sort the points by cluster (steps 1 and 2) or by list, then by id."""
        order = np.argsort(ids)
        if self.clusters is not None and not self.n_clusters and len(ids):
            n_clusters = max(1, round(len(ids) / CLUSTER_SIZE)) if self.clusters == "auto" else int(self.clusters)
            drawn = np.random.default_rng(self.seed).permutation(order)[:n_clusters]
            self.centers_ = to_points(rows[drawn], np.arange(len(drawn), dtype=np.int32), self.geometry)
        sizes = np.array([len(ids)])
        if self.n_clusters:
            cluster = self._nearest(rows, self.centers_, 1)[0][:, 0]
            order, sizes = np.lexsort([ids, cluster]), np.bincount(cluster, minlength=self.n_clusters)
        elif self.lists_ is not None and list_of is not None:
            order, self.lists_ = np.lexsort([ids, list_of]), self.lists_.regrouped(list_of)
        self.points_ = to_points(rows[order], ids[order], self.geometry)
        self.starts_ = np.concatenate([[0], np.cumsum(sizes)])
        if not len(ids):
            self.codes_ = self.shortlist = None
            self._drop_lists()
        elif self.codes_ is not None:
            self.codes_ = point_functions.encode_points(self.points_, self.seed)

    def _drop_lists(self) -> None:
        """Read all points from now on."""
        if self.lists_ is not None:
            self.lists_ = self.share_read = None
            self.report.pop("share_read", None)

    def _nearest(self, queries: Floats, points: Points, k: int, clusters: Ints | None = None) -> tuple[Ints, Doubles]:
        """Return ids and negative keys a|x-y|^2 of the k nearest points, within the given clusters if any."""
        labels, scores = kernels.empty_results(len(queries), k)

        def search_block(start: int, stop: int) -> None:
            block, out = queries[start:stop], (labels[start:stop], scores[start:stop])
            if clusters is None:
                kernels.nearest_points(block, points, *out)
            else:
                kernels.nearest_in_clusters(block, points, self.starts_, clusters[start:stop], *out)

        run_blocks(search_block, len(queries), QUERY_BLOCK)
        return labels, scores

    def _search(self, queries: Floats, k: int) -> TopK:
        weights = point_weights(queries, self.geometry, "queries")
        size = (self.shortlist or 0) * max(k, MIN_NEIGHBORS)
        if self.codes_ is not None and size <= MAX_SHORTLIST_SHARE * len(self):
            labels, scores = self._nearest_by_codes(queries, self.codes_, k, size)
        else:
            clusters = self._nearest_clusters(queries) if self.n_clusters else None  # step 3
            labels, scores = self._nearest(queries, self.points_, k, clusters)
        return TopK(labels, -point_functions.distances(-scores, weights[:, None], self.geometry).astype(np.float32))

    def _nearest_by_codes(self, queries: Floats, codes: PointCodes, k: int, size: int) -> tuple[Ints, Doubles]:
        """Return what ``_nearest`` does, among the ``size`` points of smallest estimated key that are read."""
        labels, scores = kernels.empty_results(len(queries), k)
        zeros, n_read = np.zeros(codes.query_map.shape[1], np.float32), self._n_read(k, size)
        lists = self.lists_ if n_read <= MAX_READ_SHARE * len(self) else None

        def search_block(start: int, stop: int) -> None:
            block, mapped = queries[start:stop], np.empty((stop - start, len(zeros)), np.float32)
            dense_forward(block, codes.query_map, zeros, mapped)
            rows, estimates = np.empty((stop - start, size), np.int32), np.empty((stop - start, size), np.float32)
            if lists is None:
                kernels.shortlist_points(block, mapped, codes, rows, estimates)
            else:
                read = lists.to_read(extended_queries(block, self.geometry), n_read)
                kernels.shortlist_points_in_lists(block, mapped, codes, lists.starts, read, rows, estimates)
            kernels.nearest_in_rows(block, self.points_, rows, labels[start:stop], scores[start:stop])

        run_blocks(search_block, len(queries), QUERY_BLOCK)
        return labels, scores

    def _n_read(self, k: int, size: int) -> int:
        """Return how many points a query reads from lists, for k neighbors by a shortlist of this size."""
        share = (self.share_read or 0.0) * max(1.0, k / SHORTLIST_RECALL_AT)  # grows with k beyond what was measured
        return max(math.ceil(share * len(self)), MIN_READ * size)

    def _nearest_clusters(self, queries: Floats) -> Ints:
        """Return the clusters that each query searches, the nearest first. Shape (m, probes)."""
        return self._nearest(queries, self.centers_, self.probes)[0]

    def _vectors(self, at: Longs) -> Floats:
        return np.ascontiguousarray(self.points_.blocks[at // BLOCK_SIZE, :, at % BLOCK_SIZE])

    def _add(self, ids: Ints, vectors: Floats) -> None:
        point_weights(vectors, self.geometry, "vectors")
        list_of = None
        if not point_functions.can_be_listed(vectors):
            self._drop_lists()
        if self.lists_ is not None:
            added = self.lists_.nearest(
                point_functions.extended_points(vectors, self.geometry)
            )  # the lists with the nearest centers
            list_of = np.concatenate([self.lists_.list_of(), added])
        self._build(np.concatenate([self.points, vectors]), np.concatenate([self.ids, ids]), list_of)

    def _remove(self, ids: Ints) -> None:
        keep = ~np.isin(self.ids, ids)
        self._build(self.points[keep], self.ids[keep], None if self.lists_ is None else self.lists_.list_of()[keep])

    def _sample(self, k: int, queries: Floats | None = None) -> tuple[Floats, TopK]:
        """Return some queries and their k nearest neighbors; without queries, some points, with -1 for themselves."""
        n, stand_in = (len(self), True) if queries is None or not len(queries) else (len(queries), False)
        sample = np.sort(np.random.default_rng(self.seed).permutation(n)[:N_SAMPLED])
        rows = self._vectors(sample) if queries is None or stand_in else queries[sample]
        labels, scores = self._nearest(rows, self.points_, k + stand_in)
        own = self.ids[sample] if stand_in else np.full(len(sample), -1, np.int32)
        return rows, TopK(np.where(labels == own[:, None], -1, labels), scores.astype(np.float32))

    def _report_recall(self) -> None:
        """Report the recall of a sample of points' nearest neighbors, and the share of all points that are read."""
        rows, truth = self._sample(RECALL_AT)
        topk = self.search(rows, RECALL_AT + 1)
        share_read = np.diff(self.starts_)[self._nearest_clusters(rows)].sum(axis=1).mean() / len(self)
        self.report |= {
            "clusters": self.n_clusters,
            "probes": self.probes,
            "recall": round(recall(topk, truth), 4),
            "recall_at": RECALL_AT,
            "share_read": round(float(share_read), 4),
        }

    def _choose_search(self, recall_target: float, queries: Floats) -> None:
        """Read some lists if that reaches the target, else all codes; if neither does, the search is exact."""
        rows, truth = self._sample(SHORTLIST_RECALL_AT, queries)
        self.report |= {"recall_at": SHORTLIST_RECALL_AT, "recall_target": recall_target}
        listed = self._choose_lists(rows, truth, recall_target, queries)
        if listed and self._choose_shortlist(rows, truth, recall_target):
            self.report["share_read"] = round(self.share_read or 0.0, 4)
            return
        if self.lists_ is not None:
            self._drop_lists()
            self._build(self.points, self.ids)  # by id again
        if not self._choose_shortlist(rows, truth, recall_target):
            self.report |= {"recall": 1.0, "why": "no shortlist reached the recall target"}

    def _choose_lists(self, rows: Floats, truth: TopK, recall_target: float, queries: Floats) -> bool:
        """Sort points by list, if a query must read at most half of them; lists may miss half of what may be missed."""
        points = self.points
        if not point_functions.can_be_listed(points):
            return False
        given = queries if len(queries) else points[::SELF_QUERIES]
        self.lists_, list_of = point_functions.build_point_lists(points, given, self.geometry, self.seed)
        self._build(points, self.ids, list_of)
        coverage = (1 + recall_target) / 2
        self.share_read = point_functions.share_to_read(self.lists_, rows, self.ids, truth, coverage, self.geometry)
        return self.share_read <= MAX_READ_SHARE

    def _choose_shortlist(self, rows: Floats, truth: TopK, recall_target: float) -> bool:
        """Take the shortest shortlist that reaches the target; return whether one does."""
        codes = point_functions.encode_points(self.points_, self.seed)
        for shortlist in SHORTLISTS:
            labels, keys = self._nearest_by_codes(rows, codes, truth.k, shortlist * truth.k)
            found = recall(TopK(labels, keys.astype(np.float32)), truth)
            if found >= recall_target:
                self.codes_, self.shortlist = codes, shortlist
                self.report |= {"shortlist": shortlist, "recall": round(found, 4)}
                return True
        return False
