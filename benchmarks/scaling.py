"""Training cost of label_tree against the number of labels, on planted data of several sizes.

    python benchmarks/scaling.py [--labels 10000,100000,1000000] [--documents-per-label 1] [--set KEY=VALUE ...]

Each size runs in a child process, for its peak memory, and prints a line of JSON. ``us_per_unit`` is the training CPU
time over documents x non-zeros x log2(labels): constant where the cost grows as in the papers.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time

import numpy as np

from labelspace.cli.options import make_recipe
from labelspace.data.synthetic import planted
from labelspace.experiment.timing import latency, timed
from labelspace.models.registry import create

HELD_OUT = 2000


def measure(labels: int, documents: int, settings: list[str]) -> dict[str, float]:
    """Train and predict once at one size, in this process, after compiling kernels on a small set."""
    model = make_recipe("label_tree", settings, "tfidf", 0).tagger().model
    small = planted(n=3000, d=2000, l=3000, seed=1)
    assert small.X is not None
    create("label_tree", **model.get_params()).fit(small.X, small.Y).predict_topk(small.X[:3], 5)
    data = planted(n=documents + HELD_OUT, d=max(10_000, labels // 4), l=labels, seed=0)
    train, test = data.rows(range(documents)), data.rows(range(documents, documents + HELD_OUT))
    assert train.X is not None
    inputs = test.inputs
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with timed() as training:
        model.fit(train.X, train.Y)
    with timed() as batch:
        first = model.predict_topk(inputs, 5).labels[:, 0]
    nonzeros = train.X.nnz / documents
    return {
        "labels": labels,
        "documents": documents,
        "nonzeros_per_document": round(nonzeros, 1),
        "train_s": round(training.wall, 1),
        "train_cpu_s": round(training.cpu, 1),
        "cpu_ms_per_document": round(1e3 * training.cpu / documents, 3),
        "us_per_unit": round(1e6 * training.cpu / (train.X.nnz * math.log2(labels)), 3),
        "predict_ms_per_document": round(1e3 * batch.wall / HELD_OUT, 3),
        "latency_ms_p50": latency(lambda one: model.predict_topk(one, 5), inputs)["latency_ms_p50"],
        "data_rss_MB": round(before),
        "peak_rss_MB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "weights": int(model.weights_.nnz),  # type: ignore[attr-defined]
        "P@1": round(100 * float(test.Y[np.arange(HELD_OUT), first].mean()), 2),
    }


def main() -> None:
    """One child process per size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", default="10000,100000,1000000")
    parser.add_argument("--documents-per-label", type=float, default=1.0)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--one", type=int, default=0, help="labels to measure in this process (used by this script)")
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.one, round(args.one * args.documents_per_label), args.set)))
        return
    for labels in map(int, args.labels.split(",")):
        command = [sys.executable, __file__, "--one", str(labels)]
        command += ["--documents-per-label", str(args.documents_per_label)]
        command += [part for setting in args.set for part in ("--set", setting)]
        subprocess.run(command, check=True)
        time.sleep(1)


if __name__ == "__main__":
    main()
