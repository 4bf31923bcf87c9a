"""CPU time of a training step of glas, and peak memory of training, as labels and features grow.

    python benchmarks/glas_steps.py [--labels 10000,100000,1000000] [--documents 200000] [--set KEY=VALUE ...]

Planted data: all labels are equally frequent, and there are as many features as labels. Each size runs in a child
process, so that its peak memory can be measured, and prints a line of JSON. ``step_cpu_ms`` is the median of single
steps; mining hard negatives between epochs is measured apart. ``peak_over_parameters`` is the peak memory that training
added, over the size of the feature and label embeddings in float32.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from read_xmc import status

from labelspace.cli.options import parse_settings
from labelspace.data.synthetic import planted
from labelspace.experiment.timing import latency
from labelspace.models.glas.model import Glas

HELD_OUT = 1000


def measure(labels: int, documents: int, settings: list[str]) -> dict[str, float]:
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
    model.fit(train.X, train.Y, progress=on_progress)
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
        "latency_ms_p50": latency(lambda one: model.predict_topk(one, 5), test.inputs)["latency_ms_p50"],
        "P@1": round(100 * float(test.Y[np.arange(HELD_OUT), first].mean()), 2),
        **{f"index_{key}": model.index_.report.get(key, 0) for key in ("kind", "effort", "recall")},
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
