"""Choose an index by its recall, measured on real queries against exact search.

1. Up to ``MAX_FLOAT32_SIZE`` numbers: exact in float32, and nothing is measured.
2. Otherwise compute the exact results of a sample of the queries.
3. Up to ``MAX_INT8_SIZE`` numbers: exact in int8 if that reaches the recall target, else in int8+float32.
4. Beyond, try quantized search, the cheapest bits and shortlist first, until its recall reaches the target; exact
   search in int8+float32 if it never does. Above ``MIN_LISTED_SIZE`` numbers the labels are in inverted lists, and a
   query reads as many as it takes to miss half of what it may miss; all labels if that is most of them.
5. Exact in float32 if no other index reaches the target.

These steps time nothing and do not use faiss, so the choice is the same on every machine. IVF and HNSW, of the extra
``ann``, are built on request: the effort is raised until the recall reaches the target.
"""

import math
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from labelspace.errors import DataError
from labelspace.estimator.parameter_constraints import one_of, real
from labelspace.index import approximate
from labelspace.index.approximate import Approximate, require_faiss
from labelspace.index.base import Index, checked_ids, checked_vectors
from labelspace.index.exact import Exact
from labelspace.index.inverted_lists import InvertedLists
from labelspace.index.quantized import MAX_READ_SHARE, STEPS, Quantized
from labelspace.types import Floats, Ints, Progress, TopK, no_progress

BUILDING = "building the index (quantized)"  # a step of the progress
KINDS = ("auto", "exact", "quantized", *approximate.KINDS)
MAX_FLOAT32_SIZE = 100_000  # numbers (labels x dimensions) up to which exact search in float32 is fast
MAX_INT8_SIZE = 8_000_000  # up to which exact search in int8 takes less than a millisecond
MIN_LISTED_SIZE = 30_000_000  # from this size, to read all labels takes longer than to choose among their lists
N_SAMPLED = 300  # queries that recall is measured on; fewer are faster, and the recall less certain
N_TIMED = 50  # queries that are timed one by one
MAX_LISTS_DIVISOR = 4  # at most one list in four is read: beyond, exact search in int8 is faster
MAX_GRAPH_EFFORT = 512  # candidates of HNSW; if these do not reach the target, another index is taken
SHORTLISTS = (64, 128, 256, 512, 1024)  # labels to re-rank, the cheapest first
RERANKING_COST = 800  # words of a quantized index that are read in the time in which one label is re-ranked


def choose(
    vectors: npt.ArrayLike,
    ids: npt.ArrayLike,
    queries: npt.ArrayLike,
    k: int = 5,
    recall_target: float = 0.99,
    kind: str = "auto",
    seed: int = 0,
    progress: Progress | None = None,
    more_queries: npt.ArrayLike | None = None,
) -> Index:
    """Build an index of vectors (n, d) whose recall@k is at least ``recall_target``; its ``report`` has the figures.

    Recall is measured on ``queries``; a quantized index is fitted to ``more_queries``, which differ from these. A
    ``kind`` other than auto tries only that kind.

    >>> index = choose(np.eye(3), [0, 1, 2], queries=np.eye(3))
    >>> index.report["kind"], index.report["storage"], index.report["recall"]
    ('exact', 'float32', 1.0)
    """
    one_of(*KINDS).check("kind", kind)
    real(above=0, at_most=1).check("recall_target", recall_target)
    if kind in approximate.KINDS:
        require_faiss(kind)
    progress = progress or no_progress
    rows = checked_vectors(vectors, "vectors")
    labels = checked_ids(ids, rows)
    sample = checked_vectors(queries, "queries", rows.shape[1])
    exact = Exact(rows, labels)
    exact.report |= {"recall": 1.0, "recall_at": k, "recall_target": recall_target}
    if kind in ("auto", "exact") and rows.size <= MAX_FLOAT32_SIZE:  # step 1
        return exact
    if not len(rows) or not len(sample):
        problem = f"an index must be measured on labels and queries, but there are {len(rows)} and {len(sample)}"
        raise DataError(f"{problem}; pass some, or kind='exact' for few labels")
    sample = sample[np.sort(np.random.default_rng(seed).permutation(len(sample))[:N_SAMPLED])]
    truth = exact.search(sample, k)  # step 2
    progress("exact search", len(sample), len(sample))
    trials = _Trials(rows, labels, sample, truth, recall_target, seed, progress)
    best: Index | None = None
    if kind == "quantized" or (kind == "auto" and rows.size > MAX_INT8_SIZE):  # step 4
        best = trials.quantized(more_queries)
    if best is None and kind != "quantized":
        best = trials.approximate(kind) if kind in approximate.KINDS else trials.exact(kind)
    if best is None:
        best = exact
        best.report["why"] = "no faster index reached the recall target"
    others = [dict(report) for report in trials.reports if report is not best.report]
    best.report |= {"recall_at": k, "recall_target": recall_target, "tried": others}
    return best


@dataclass
class _Trials:
    """Builds indexes of the same vectors, and measures their recall on the same queries."""

    vectors: Floats
    ids: Ints
    queries: Floats
    truth: TopK  # the exact results of the queries
    target: float
    seed: int
    progress: Progress
    reports: list[dict[str, Any]] = field(default_factory=list)  # of the indexes that were tried

    def quantized(self, fitted_to: npt.ArrayLike | None) -> Index | None:
        """Return the cheapest quantized index that reaches the target, in lists if these help; None if none does."""
        vectors, ids = self.vectors, self.ids
        if not (ids[1:] > ids[:-1]).all():
            order = np.argsort(ids)
            vectors, ids = vectors[order], ids[order]
        for in_lists in (True, False) if vectors.size >= MIN_LISTED_SIZE else (False,):
            n_read = 1 if in_lists else None  # how many labels are read is set below
            first = Quantized(vectors, ids, min(STEPS), queries=fitted_to, seed=self.seed, n_read=n_read)
            self.progress(BUILDING, 1, len(STEPS))
            if first.lists_ is None or self._set_n_read(first, first.lists_):
                found = self._cheapest(first, vectors)
                if found is not None:
                    return found
        return None

    def _set_n_read(self, index: Quantized, lists: InvertedLists) -> bool:
        """Read so many labels that lists miss half of what may be missed; return False if these are most labels."""
        needed = np.sort(lists.rows_needed(self.queries, index.ids_, self.truth))
        n_read = int(needed[math.ceil(len(needed) * (1 + self.target) / 2) - 1])
        index.set_n_read(n_read)
        return n_read <= MAX_READ_SHARE * len(index)

    def _cheapest(self, first: Quantized, vectors: Floats) -> Quantized | None:
        """Return the cheapest bits and shortlist that reach the target, by the words that a query reads; or None."""
        indexes = {first.bits: first}
        words = (first.n_read or len(vectors)) * vectors.shape[1] // 64
        pairs = [(bits, shortlist) for bits in STEPS for shortlist in SHORTLISTS]
        for bits, shortlist in sorted(pairs, key=lambda pair: pair[0] * words + RERANKING_COST * pair[1]):
            if bits not in indexes:
                indexes[bits] = first.with_bits(bits, vectors)
                self.progress(BUILDING, len(indexes), len(STEPS))
            index = indexes[bits]
            index.set_shortlist(shortlist)
            if self._reaches_target(index):
                return index
            self.reports.append(dict(index.report))
        return None

    def exact(self, kind: str) -> Index | None:
        """Return an exact index in int8, or else one in int8+float32, if it reaches the target; None if none does."""
        with_int8 = kind == "exact" or self.vectors.size <= MAX_INT8_SIZE
        for storage in ("int8", "int8+float32") if with_int8 else ("int8+float32",):
            index = Exact(self.vectors, self.ids, storage)
            self.reports.append(index.report)
            if self._reaches_target(index):
                return index
        return None

    def approximate(self, kind: str) -> Index | None:
        """Raise the effort of an index of this kind until it reaches the target; return None if it never does."""
        report = partial(self.progress, f"building the index ({kind})")
        index = Approximate(self.vectors, self.ids, kind, seed=self.seed, progress=report)
        self.reports.append(index.report)
        for effort in _efforts(index.n_lists // MAX_LISTS_DIVISOR if kind == "ivf" else MAX_GRAPH_EFFORT):
            index.effort = effort
            if self._reaches_target(index):
                index.report["one_row_ms"] = one_row_ms(index, self.queries, self.truth.k)
                return index
        return None

    def _reaches_target(self, index: Index) -> bool:
        """Measure the recall, which goes to the report; return whether it reaches the target."""
        index.report["recall"] = round(recall(index.search(self.queries, self.truth.k), self.truth), 4)
        return bool(index.report["recall"] >= self.target)


def _efforts(largest: int) -> list[int]:
    """Return 1, 2, 3, 4, 6, 8, 12, ... up to the largest.

    >>> _efforts(10)
    [1, 2, 3, 4, 6, 8, 10]
    """
    steps = [1] + [step for power in range(1, 31) for step in (2**power, 3 * 2 ** (power - 1))]
    return [step for step in steps if step < largest] + [max(largest, 1)]


def recall(topk: TopK, truth: TopK) -> float:
    """Return the share of the true labels that are in ``topk``, over all rows.

    >>> recall(TopK.from_scores([[3, 2, 1]], k=2), TopK.from_scores([[3, 1, 2]], k=2))
    0.5
    """
    true = truth.labels >= 0
    hits = (truth.labels[:, :, None] == topk.labels[:, None, :]).any(axis=2) & true
    return float(hits.sum() / max(true.sum(), 1))


def one_row_ms(index: Index, queries: Floats, k: int) -> float:
    """Return the median time of single queries, in milliseconds."""
    index.search(queries[:1], k)  # the first search may compile kernels and read pages
    times = []
    for row in range(min(N_TIMED, len(queries))):
        start = time.perf_counter()
        index.search(queries[row : row + 1], k)
        times.append(time.perf_counter() - start)
    return round(1e3 * float(np.median(times)), 4)
