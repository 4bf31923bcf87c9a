"""Which index: the recall of each is measured on real queries against the exact answer, and its time for one query.

1. Few numbers: exact in float32, and nothing is measured.
2. Find the exact answer to a sample of the queries.
3. Up to ``BYTES_UP_TO`` numbers all are read: in bytes if that reaches the target, else in bytes and float32. Nothing
   is timed, so the choice is the same on every machine.
4. Beyond, raise the effort of IVF until its recall reaches the target, then time single queries; unless they take less
   than ``QUICK``, time exact search in bytes and float32 too. The faster is taken; exact in float32 where neither
   reaches the target. A graph (HNSW) is built on request only: it takes three times as long to build, and where IVF
   did not reach the target, HNSW did not either.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from labelspace.errors import DataError, ParameterError
from labelspace.index.approximate import Approximate
from labelspace.index.base import Index, check_one_id_a_vector, checked_ids, checked_table
from labelspace.index.exact import Exact
from labelspace.types import Floats, Ints, Progress, TopK

KINDS = ("auto", "exact", "ivf", "hnsw")
FLOATS_UP_TO = 100_000  # numbers (labels x dimensions) that are read in float32 in no time
BYTES_UP_TO = 8_000_000  # that are read in bytes under QUICK
QUICK = 1.0  # milliseconds for one query that nobody needs to better
SAMPLE = 300  # queries that recall is measured on
TIMED = 50  # queries that are timed one by one
LIST_SHARE = 4  # at most one list in so many is read: beyond, exact in bytes is faster
GRAPH_EFFORT = 512

Candidate = Callable[[], Index]


def choose(
    vectors: npt.ArrayLike,
    ids: npt.ArrayLike,
    queries: npt.ArrayLike,
    k: int = 5,
    recall_target: float = 0.99,
    kind: str = "auto",
    seed: int = 0,
    progress: Progress | None = None,
) -> Index:
    """An index of the vectors (n, d) that finds at least ``recall_target`` of the k best; its ``report`` says how.

    ``kind`` other than auto tries that kind alone. Which kind auto takes for many numbers depends on measured times.

    >>> index = choose(np.eye(3), [0, 1, 2], queries=np.eye(3))
    >>> index.report["kind"], index.report["storage"], index.report["recall"]
    ('exact', 'float32', 1.0)
    """
    if kind not in KINDS:
        raise ParameterError(f"kind must be one of {', '.join(KINDS)}, but is {kind!r}; set it so")
    if not 0 < recall_target <= 1:
        raise ParameterError(f"recall_target must be above 0 and at most 1, but is {recall_target}; set it so")
    table, labels = checked_table(vectors, "vectors"), checked_ids(ids)
    check_one_id_a_vector(labels, table)
    asked = checked_table(queries, "queries", table.shape[1])
    exact = Exact(table, labels)
    exact.report |= {"recall": 1.0, "recall_at": k, "recall_target": recall_target}
    if kind in ("auto", "exact") and table.size <= FLOATS_UP_TO:  # step 1
        return exact
    if not len(table) or not len(asked):
        raise DataError(
            f"an index must be measured on labels and queries, but there are {len(table)} and {len(asked)}; "
            "give some, or kind='exact' for few labels"
        )
    asked = asked[np.sort(np.random.default_rng(seed).permutation(len(asked))[:SAMPLE])]
    truth = exact.search(asked, k)  # step 2
    if progress is not None:
        progress("finding the exact answers", len(asked), len(asked))
    best: Index | None = None
    tried: list[dict[str, Any]] = []
    for candidate in _candidates(kind, table, labels, seed, progress):
        index = candidate()
        tried.append(index.report)
        if not _reach(index, asked, truth, recall_target):
            continue
        if table.size <= BYTES_UP_TO and kind in ("auto", "exact"):  # step 3
            best = index
            break
        index.report["one_row_ms"] = one_row_ms(index, asked, k)
        if best is None or index.report["one_row_ms"] < best.report["one_row_ms"]:
            best = index
        if best.report["one_row_ms"] < QUICK:
            break
    if best is None:
        best = exact
        best.report["one_row_ms"] = one_row_ms(exact, asked, k)
        best.report["why"] = "no faster index reached the recall target"
    others = [dict(report) for report in tried if report is not best.report]
    best.report |= {"recall_at": k, "recall_target": recall_target, "tried": others}
    return best


def _candidates(kind: str, vectors: Floats, ids: Ints, seed: int, progress: Progress | None) -> Iterator[Candidate]:
    """What to try, in this order; each is built when it is called."""
    quantize_int8, in_both = (partial(Exact, vectors, ids, storage) for storage in ("int8", "int8+float32"))

    def approximate(kind: str) -> Candidate:
        told = None if progress is None else partial(progress, f"building the index ({kind})")
        return partial(Approximate, vectors, ids, kind, seed=seed, progress=told)

    if kind in KINDS[2:]:
        yield approximate(kind)
    elif kind == "exact" or vectors.size <= BYTES_UP_TO:
        yield quantize_int8
        yield in_both
    else:
        yield approximate("ivf")
        yield in_both


def _reach(index: Index, queries: Floats, truth: TopK, target: float) -> bool:
    """Raise the effort until the recall reaches the target; whether it did. Effort and recall are reported."""
    efforts: Sequence[int] = (0,)
    if isinstance(index, Approximate):
        efforts = _efforts(index.lists // LIST_SHARE if index.kind == "ivf" else GRAPH_EFFORT)
    for effort in efforts:
        if isinstance(index, Approximate):
            index.effort = effort
        index.report["recall"] = round(recall(index.search(queries, truth.k), truth), 4)
        if index.report["recall"] >= target:
            return True
    return False


def _efforts(largest: int) -> list[int]:
    """1, 2, 3, 4, 6, 8, 12, ... up to the largest.

    >>> _efforts(10)
    [1, 2, 3, 4, 6, 8, 10]
    """
    steps = [1] + [step for power in range(1, 31) for step in (2**power, 3 * 2 ** (power - 1))]
    return [step for step in steps if step < largest] + [max(largest, 1)]


def recall(found: TopK, truth: TopK) -> float:
    """The share of the true labels that were found, over all rows.

    >>> recall(TopK.from_scores([[3, 2, 1]], k=2), TopK.from_scores([[3, 1, 2]], k=2))
    0.5
    """
    true = truth.labels >= 0
    hits = (truth.labels[:, :, None] == found.labels[:, None, :]).any(axis=2) & true
    return float(hits.sum() / max(true.sum(), 1))


def one_row_ms(index: Index, queries: Floats, k: int) -> float:
    """The median time of single queries, in milliseconds."""
    index.search(queries[:1], k)  # loads what is loaded once
    taken = []
    for row in range(min(TIMED, len(queries))):
        start = time.perf_counter()
        index.search(queries[row : row + 1], k)
        taken.append(time.perf_counter() - start)
    return round(1e3 * float(np.median(taken)), 4)
