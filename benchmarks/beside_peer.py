"""Compare a method with a peer library on one data set: ratios of cost, and accuracy of both.

    python benchmarks/beside_peer.py DATA --method one_vs_rest --peer sklearn-svc [--python PEER_VENV/bin/python]

The peer runs in the harness ``../shared/peers/bench.py`` (see its README for what to install), ours in a child process
here; both read the same files and use two threads. They run alternately, ``--repeat`` times; the best run counts.
Data with texts must be given as matrices (X_trn.npz ...) for the peer: ``--peer-data`` names that folder.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
from typing import Any

from peers import HARNESS, best_runs

FIGURES = ("P@1", "P@3", "P@5", "nDCG@5", "RP@5", "PSP@1", "PSP@3", "PSP@5")


def measure(data: str, method: str, settings: list[str]) -> dict[str, Any]:
    """Our figures, in this process; compiles on a few rows first, as in a user's second run."""
    from labelspace.cli.recipes import make_recipe
    from labelspace.data.source import open_source
    from labelspace.experiment import evaluate, megabytes, timed

    source = open_source(data)
    train = source.train()
    recipe = make_recipe(method, settings, None, 0)
    with timed() as compiling:
        warm = recipe.tagger().fit_dataset(train.rows(range(min(50, len(train)))))
        warm.predict_topk(train.rows(range(3)).inputs, 5)
    tagger = recipe.tagger()
    with timed() as training:
        tagger.fit_dataset(train, lambda: source.dev(train.labels))
    test = source.test(train.labels)
    assert test is not None
    figures = evaluate(tagger, test)
    with tempfile.TemporaryDirectory() as folder:
        tagger.save(f"{folder}/model")
        size = megabytes(f"{folder}/model")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        **{key: round(figures[key], 2) for key in FIGURES},
        "train_s": round(training.wall, 2),
        "train_cpu_s": round(training.cpu, 2),
        "compile_s": round(compiling.wall, 2),
        "predict_s": figures["predict_seconds"],
        "lat_ms_p50": figures["latency_ms_p50"],
        "model_MB": size,
        "peak_rss_MB": round(peak),
    }


def main() -> None:
    """Run ours and the peer alternately, and print cost and accuracy of both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--method", default="one_vs_rest")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--peer", default="sklearn-svc")
    parser.add_argument("--peer-data", default="")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--ours-only", action="store_true", help="print our JSON line (used by this script)")
    args = parser.parse_args()
    if args.ours_only:
        print(json.dumps(measure(args.data, args.method, args.set)))
        return
    ours = [sys.executable, __file__, args.data, "--method", args.method, "--ours-only"]
    ours += [part for setting in args.set for part in ("--set", setting)]
    theirs = [args.python, str(HARNESS), "--peer", args.peer, "--data", args.peer_data or args.data]
    best = best_runs({args.method: ours, args.peer: theirs}, args.repeat)
    for name, run in best.items():
        keys = ("train_cpu_s", "train_s", "predict_s", "lat_ms_p50", "model_MB", "peak_rss_MB", *FIGURES)
        print(json.dumps({"who": name, **{key: run.get(key) for key in keys}}))
    mine, peer = best[args.method], best[args.peer]
    ratios = {key: round(mine[key] / peer[key], 3) for key in ("train_cpu_s", "predict_s", "lat_ms_p50", "model_MB")}
    print(json.dumps({"ours over theirs": ratios}))


if __name__ == "__main__":
    main()
