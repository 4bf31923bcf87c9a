"""Nearest points in the Poincaré ball: one query and a batch, beside NumPy and faiss on the extended vectors.

    LABELSPACE_THREADS=1 python benchmarks/ball_index.py [--points 10000,100000,670000] [--dimension 50] [--k 10]
                                                         [--probes 1,2,4] [--geometry poincare] [--json]
    LABELSPACE_THREADS=1 python benchmarks/ball_index.py --trained labels [--points 10000,100000,670000] ...

The directions of the points are clustered around Gaussian centers, one per 100 points (noise of half a center's
length); their norms are 1 - 10^u, u uniform in ``--depth`` (-3,-0.5). Queries are drawn in the same way. Or they are
the points of labels or documents of a ``poincare`` model, trained for two epochs on planted data with as many documents
and labels (those without a document have no point); queries are documents that it was not trained on. NumPy and
faiss (IndexFlatIP) compute the inner product of (|x|^2, -2x, 1) and -(a, y a, |y|^2 a) in float32. ``recall`` is
against float64, which ``PointIndex`` with ``recall_target=None`` equals. LABELSPACE_THREADS sets the threads of all but
NumPy, whose BLAS has its own setting.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from functools import partial

import faiss
import numpy as np

from labelspace.data import synthetic
from labelspace.index import PointIndex
from labelspace.index.choice import recall
from labelspace.index.poincare import MAX_EXACT_SIZE
from labelspace.kernels.threads import n_threads
from labelspace.models.poincare import Poincare
from labelspace.models.poincare.training import embed_documents
from labelspace.types import Floats, TopK

N_TIMED = 100  # queries timed one by one
BATCH = 640
COLUMNS = ("points", "search", "p50_ms", "p99_ms", "rows_per_s", "recall", "share_read", "build_s")

Search = Callable[[Floats, int], TopK]


def planted(n: int, d: int, depth: tuple[float, float], rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Points (n, d) and queries (BATCH, d)."""
    centers = rng.standard_normal((max(n // 100, 1), d))
    rows = centers[rng.integers(0, len(centers), n + BATCH)] + 0.5 * rng.standard_normal((n + BATCH, d))
    rows *= (1 - 10 ** rng.uniform(*depth, (n + BATCH, 1))) / np.linalg.norm(rows, axis=1, keepdims=True)
    return rows[:n].astype(np.float32), rows[n:].astype(np.float32)


def trained(n: int, d: int, of: str) -> tuple[Floats, Floats]:
    """The points of labels or documents of a trained model, and BATCH documents as queries."""
    data = synthetic.planted(n + BATCH, max(n // 7, 100), n, labels_per_document=4, zipf=0.5)
    # Votes have no part in this: their weights are given, and not chosen.
    model = Poincare(embedding_dim=d, epochs=2, n_neighbors=40, sharpness=4.0, label_weight=1.0)
    seen, unseen = data.rows(range(n)), data.rows(range(n, n + BATCH))
    model.fit(seen.X, seen.Y)
    index = (model.label_indexes_ if of == "labels" else model.document_indexes_)[0]
    return index.points, embed_documents(
        model.scaled(unseen.X), model.theta_[0], model.theta_scales_[0], model.manifold
    )


def extended_points(points: Floats, geometry: str) -> Floats:
    """-(a, y a, |y|^2 a), so that the largest product is the nearest point."""
    squares = (points.astype(np.float64) ** 2).sum(axis=1, keepdims=True)
    a = 1 / (1 - squares) if geometry == "poincare" else np.ones_like(squares)
    return -np.hstack([a, points * a, squares * a]).astype(np.float32)


def extended_queries(queries: Floats) -> Floats:
    """(|x|^2, -2x, 1)."""
    squares = (queries**2).sum(axis=1, keepdims=True)
    return np.hstack([squares, -2 * queries, np.ones_like(squares)])


def by_numpy(table: Floats, queries: Floats, k: int) -> TopK:
    """All products, then the k largest; 32 queries at a time."""
    labels = np.empty((len(queries), k), np.int32)
    for start in range(0, len(queries), 32):
        keys = -(extended_queries(queries[start : start + 32]) @ table.T)
        top = np.argpartition(keys, k, axis=1)[:, :k]
        order = np.argsort(np.take_along_axis(keys, top, axis=1), axis=1)
        labels[start : start + 32] = np.take_along_axis(top, order, axis=1)
    return TopK(labels, np.zeros((len(queries), k), np.float32))


def by_faiss(index: faiss.IndexFlatIP, queries: Floats, k: int) -> TopK:
    """The same by faiss."""
    scores, labels = index.search(extended_queries(queries), k)
    return TopK(labels, scores)


def searches(points: Floats, geometry: str, probes: list[int]) -> Iterator[tuple[str, Search, float | str, float]]:
    """Name, search, share of the points searched, and build seconds."""
    ids = np.arange(len(points))
    PointIndex(points[:9], ids[:9], geometry, clusters=2).search(points[:1])  # compiles
    builds: list[Callable[[], PointIndex]] = [partial(PointIndex, points, ids, geometry, recall_target=None)]
    if points.size > MAX_EXACT_SIZE:
        builds.append(partial(PointIndex, points, ids, geometry))
    builds += [partial(PointIndex, points, ids, geometry, "auto", probe) for probe in (*probes, None)]
    for build in builds:
        start = time.perf_counter()
        index = build()
        built = time.perf_counter() - start
        name = f"shortlist {index.shortlist}{' of lists' if index.lists_ else ''}" if index.shortlist else "exact"
        name = f"{index.probes} of {index.n_clusters} clusters" if index.n_clusters else name
        yield name, index.search, index.report.get("share_read", ""), built
    table = extended_points(points, geometry)
    yield "NumPy", partial(by_numpy, table), "", 0.0
    faiss.omp_set_num_threads(n_threads())
    flat = faiss.IndexFlatIP(table.shape[1])
    flat.add(table)
    yield "faiss", partial(by_faiss, flat), "", 0.0


def measure(search: Search, queries: Floats, k: int) -> tuple[TopK, dict[str, float]]:
    """The results, and the times of single queries and of a batch."""
    search(queries[:1], k)
    times = []
    for row in range(N_TIMED):
        start = time.perf_counter()
        search(queries[row : row + 1], k)
        times.append(1e3 * (time.perf_counter() - start))
    start = time.perf_counter()
    top = search(queries, k)
    rate = len(queries) / (time.perf_counter() - start)
    p50, p99 = np.percentile(times, [50, 99])
    return top, {"p50_ms": round(float(p50), 3), "p99_ms": round(float(p99), 3), "rows_per_s": round(rate)}


def main() -> None:
    """A table, or one line of JSON per search."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", default="10000,100000,670000")
    parser.add_argument("--dimension", type=int, default=50)
    parser.add_argument("--depth", default="-3,-0.5")
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--probes", default="1,2,4")
    parser.add_argument("--geometry", default="poincare")
    parser.add_argument(
        "--trained", choices=("labels", "documents"), help="points of a trained model, not planted ones"
    )
    parser.add_argument("--json", action="store_true", help="print one line of JSON per search, not a table")
    args = parser.parse_args()
    low, high = (float(power) for power in args.depth.split(","))
    if not args.json:
        print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    for n in (int(count) for count in args.points.split(",")):
        if args.trained:
            points, queries = trained(n, args.dimension, args.trained)
        else:
            points, queries = planted(n, args.dimension, (low, high), np.random.default_rng(0))
        truth: TopK | None = None
        for name, search, share, built in searches(points, args.geometry, [int(p) for p in args.probes.split(",")]):
            top, times = measure(search, queries, args.k)
            truth = truth or top
            row = {"points": len(points), "search": name, **times, "recall": round(recall(top, truth), 4)}
            row |= {"share_read": share, "build_s": round(built, 2)}
            print(json.dumps(row) if args.json else f"| {' | '.join(str(row[c]) for c in COLUMNS)} |", flush=True)


if __name__ == "__main__":
    main()
