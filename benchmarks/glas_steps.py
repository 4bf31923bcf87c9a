"""CPU time of a training step of glas, peak memory of training, recall and latency, as labels and features grow.

    python benchmarks/glas_steps.py [--labels 10000,100000,1000000] [--documents 200000] [--set KEY=VALUE ...]

Planted data: all labels are equally frequent, and there are as many features as labels. Each size runs in a child
process, so that its peak memory can be measured, and prints a line of JSON. ``step_cpu_ms`` is the median of single
steps; mining hard negatives between epochs is measured apart. ``peak_over_parameters`` is the peak memory that training
added, over the size of the feature and label embeddings in float32. ``recall@5`` is that of the label index on held-out
documents, against exact search in the trained float32 vectors. Latencies are of single documents, ``predict_ms`` from
features to labels, ``search_ms`` of the index alone: the least of five medians, since the machine may have other work.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from read_xmc import status

from labelspace import store
from labelspace.cli.recipes import parse_settings
from labelspace.data.synthetic import planted
from labelspace.index import Exact, Index, choose
from labelspace.index.choice import recall
from labelspace.models.glas.model import Glas
from labelspace.models.glas.network import append_bias
from labelspace.types import Csr, Dataset, Floats, Ints, Progress, TopK

HELD_OUT = 1000
MEASURED = 300  # held-out documents that recall is measured on
TIMED = 60  # that are timed one by one
ROUNDS = 5


def least_median_ms(search: Callable[[int], object]) -> float:
    """The least of some medians of single calls."""
    medians = []
    for _ in range(ROUNDS):
        times = []
        for row in range(TIMED):
            start = time.perf_counter()
            search(row)
            times.append(time.perf_counter() - start)
        medians.append(float(np.median(times)))
    return round(1e3 * min(medians), 3)


def queries_of(model: Glas, X: Csr) -> Floats:
    """What the index is asked for documents."""
    return append_bias(model.embed(model._rows(X)), model.bias_scale_)


def fit_and_keep_truth(model: Glas, train: Dataset, documents: Csr, progress: Progress) -> TopK:
    """Fit, and return the exact results for some documents, computed when the model chooses its index."""
    truth: list[TopK] = []

    def choose_and_keep(vectors: Floats, ids: Ints, queries: Floats, **options: Any) -> Index:  # noqa: ANN401
        truth.append(Exact(vectors, ids).search(queries_of(model, documents), 5))
        return choose(vectors, ids, queries, **options)

    assert train.X is not None
    with patch("labelspace.index.choose", choose_and_keep):
        model.fit(train.X, train.Y, progress=progress)
    return truth[0]


def of_the_index(model: Glas, test: Dataset, truth: TopK) -> dict[str, Any]:
    """Recall, latencies and size of the label index."""
    X = test.X
    assert X is not None
    queries, index = queries_of(model, X[:MEASURED]), model.index_
    rows = [X[row : row + 1] for row in range(TIMED)]
    with tempfile.TemporaryDirectory() as folder:
        store.save(folder, {}, {"index": index}, None)
        size = store.folder_bytes(folder)
    return {
        "index_labels": len(index),
        "recall@5": round(recall(index.search(queries, 5), truth), 4),
        "search_ms": least_median_ms(lambda row: index.search(queries[row : row + 1], 5)),
        "predict_ms": least_median_ms(lambda row: model.predict_topk(rows[row], 5)),
        "index_MB": round(size / 1e6, 1),
        **{f"index_{key}": index.report.get(key, "") for key in ("kind", "storage", "shortlist", "effort", "recall")},
    }


def measure(labels: int, documents: int, settings: list[str]) -> dict[str, Any]:
    """Train at one size in this process; kernels are compiled on small data first."""
    params = {"all_labels": False, "epochs": 2, **parse_settings(settings)}
    small = planted(n=600, d=500, l=400, seed=1)
    assert small.X is not None
    Glas(**params).fit(small.X, small.Y).predict_topk(small.X[:3], 5)
    data = planted(n=documents + HELD_OUT, d=labels, l=labels, zipf=0.0, seed=0)
    train, test = data.rows(range(documents)), data.rows(range(documents, documents + HELD_OUT))
    del data
    steps: list[float] = []
    spent = {"mining hard negatives": 0.0, "all": -time.process_time()}
    before = status("VmRSS") / 2**20
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak, which making the data set
    last_time = [time.process_time()]

    def on_progress(step: str, done: int, total: int) -> None:
        now = time.process_time()
        if step == "batches":
            steps.append(now - last_time[0])
        elif step in spent:
            spent[step] += now - last_time[0]
        last_time[0] = now

    model = Glas(**params)
    assert train.X is not None
    assert test.X is not None
    truth = fit_and_keep_truth(model, train, test.X[:MEASURED], on_progress)
    spent["all"] += time.process_time()
    peak = status("VmHWM") / 2**20
    parameters = 4 * model.embedding_dim * (labels + train.X.shape[1]) / 2**20
    first = model.predict_topk(test.inputs, 5).labels[:, 0]
    return {
        "labels": labels,
        "features": train.X.shape[1],
        "documents": documents,
        "embedding_dim": model.embedding_dim,
        "step_cpu_ms": round(1e3 * float(np.median(steps)), 1),
        "hard_negatives_cpu_s": round(spent["mining hard negatives"], 1),
        "train_cpu_s": round(spent["all"], 1),
        "parameters_MB": round(parameters),
        "data_rss_MB": round(before),
        "peak_rss_MB": round(peak),
        "peak_over_parameters": round((peak - before) / parameters, 2),
        "P@1": round(100 * float(test.Y[np.arange(HELD_OUT), first].mean()), 2),
        **of_the_index(model, test, truth),
    }


def main() -> None:
    """One child process per size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", default="10000,100000,1000000")
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument(
        "--one", type=int, default=0, help="measure this number of labels in this process (used by this script)"
    )
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.one, args.documents, args.set)))
        return
    for labels in map(int, args.labels.split(",")):
        command = [sys.executable, __file__, "--one", str(labels), "--documents", str(args.documents)]
        command += [part for setting in args.set for part in ("--set", setting)]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
