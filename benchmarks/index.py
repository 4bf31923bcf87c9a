"""Which index is chosen for a number of label vectors, with its recall, latency, size and build time.

    python benchmarks/index.py [--labels 10000,100000,1000000,2000000] [--dimension 256] [--vectors clustered,even]
                               [--kind auto] [--target 0.99] [--json]

Vectors: ``clustered`` have Gaussian centers, one per 50 labels, plus 0.7 of Gaussian noise, like trained label vectors
of topics; ``even`` are Gaussian without structure, the hardest case. Both are scaled to length 1 and then by a
lognormal factor (sigma 0.1), as with a bias. A query is a label's vector plus Gaussian noise of 0.8 of its length. The
index is chosen on 300 queries and measured on 300 others against exact search, after saving and loading.
``build_cpu_s`` is the build of the chosen index (0 for an exact one), ``choose_cpu_s`` the choice in total: exact
search, candidates, measurements. Each size runs in a child process, for its own peak memory, which includes the
vectors in float32.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

from labelspace import store
from labelspace.index import Exact, Index, choose, index_class
from labelspace.index.choice import recall
from labelspace.types import Floats

QUERIES = 300
K = 5
COLUMNS = (
    "labels", "dimension", "vectors", "kind", "storage", "effort", "shortlist", "recall@5", "p50_ms", "p99_ms",
    "rows_per_s", "float32_p50_ms", "build_cpu_s", "choose_cpu_s", "load_ms", "MB", "peak_rss_MB",
)  # fmt: skip


def planted(n: int, d: int, vectors: str, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Label vectors (n, d) and queries (2 x QUERIES, d)."""
    table = rng.standard_normal((n, d), np.float32)
    if vectors == "clustered":
        table *= np.float32(0.7)
        centers = rng.standard_normal((max(n // 50, 1), d), np.float32)
        center_of = rng.integers(0, len(centers), n)
        for start in range(0, n, 65_536):
            table[start : start + 65_536] += centers[center_of[start : start + 65_536]]
    for start in range(0, n, 65_536):
        rows = table[start : start + 65_536]
        rows *= (rng.lognormal(0, 0.1, len(rows)) / np.linalg.norm(rows, axis=1)).astype(np.float32)[:, None]
    near = table[rng.integers(0, n, 2 * QUERIES)]
    noise = rng.standard_normal(near.shape, np.float32) * np.float32(0.8 / d**0.5)
    return table, near + noise


def latencies(index: Index, queries: Floats) -> list[float]:
    """Milliseconds of single queries."""
    times = []
    for row in range(len(queries)):
        start = time.perf_counter()
        index.search(queries[row : row + 1], K)
        times.append(1e3 * (time.perf_counter() - start))
    return times


def measure(n: int, d: int, vectors: str, kind: str, target: float) -> dict[str, float | str]:
    """Choose and measure once, in this process."""
    Exact(np.eye(4), range(4), "int8+float32").search(np.eye(4))  # compiles
    table, queries = planted(n, d, vectors, np.random.default_rng(0))
    ids = np.arange(n)
    marks = [("", time.process_time())]  # CPU time at each progress call
    index = choose(
        table, ids, queries[:QUERIES], K, target, kind,
        progress=lambda step, done, total: marks.append((step, time.process_time())),
    )  # fmt: skip
    choose_cpu = time.process_time() - marks[0][1]
    builds = [i for i, (step, _) in enumerate(marks) if f"({index.kind})" in step]
    build_cpu = marks[builds[-1]][1] - marks[builds[0] - 1][1] if builds else 0.0
    exact = Exact(table, ids)
    others = queries[QUERIES:]
    truth = exact.search(others, K)
    float32_times = latencies(exact, others[:50])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with tempfile.TemporaryDirectory() as folder:
        store.save(folder, {}, {"index": index}, None)
        size = store.folder_bytes(folder)
        start = time.perf_counter()
        index = store.load_part(folder, store.read_manifest(folder), "index", index_class, verify=False)
        load_time = time.perf_counter() - start
        top = index.search(others, K)
        start = time.perf_counter()
        index.search(others, K)
        batch = time.perf_counter() - start
        single = latencies(index, others)
    return {
        "labels": n,
        "dimension": d,
        "vectors": vectors,
        "kind": index.kind,
        "storage": index.storage,
        "effort": index.report.get("effort", ""),
        "shortlist": index.report.get("shortlist", ""),
        "recall@5": round(recall(top, truth), 4),
        "p50_ms": round(float(np.percentile(single, 50)), 3),
        "p99_ms": round(float(np.percentile(single, 99)), 3),
        "rows_per_s": round(QUERIES / batch),
        "float32_p50_ms": round(float(np.median(float32_times)), 2),
        "build_cpu_s": round(build_cpu, 1),
        "choose_cpu_s": round(choose_cpu, 1),
        "load_ms": round(1e3 * load_time, 1),
        "MB": round(size / 1e6, 1),
        "peak_rss_MB": round(peak),
    }


def main() -> None:
    """One child process per size and kind of vectors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", default="10000,100000,1000000,2000000")
    parser.add_argument("--dimension", type=int, default=256)
    parser.add_argument("--vectors", default="clustered,even")
    parser.add_argument("--kind", default="auto")
    parser.add_argument("--target", type=float, default=0.99)
    parser.add_argument("--json", action="store_true", help="print one line of JSON per measurement, not a table")
    parser.add_argument("--one", action="store_true", help="measure here (used by this script)")
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(int(args.labels), args.dimension, args.vectors, args.kind, args.target)))
        return
    if not args.json:
        print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    for vectors in args.vectors.split(","):
        for labels in args.labels.split(","):
            command = [sys.executable, __file__, "--one", "--labels", labels, "--vectors", vectors]
            command += ["--dimension", str(args.dimension), "--kind", args.kind, "--target", str(args.target)]
            line = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            row = json.loads(line)
            print(line.strip() if args.json else f"| {' | '.join(str(row[c]) for c in COLUMNS)} |", flush=True)


if __name__ == "__main__":
    main()
