"""The cost of training and of prediction from raw text, ours and a peer's, in one run.

    python benchmarks/cost.py DATA [DATA ...] --python PEER_VENV/bin/python [--peer pecos-default] [--method blend]
        [--set KEY=VALUE] [--repeat N] [--threads 1] [--bar 8] [--json FILE]

The peer is scikit-learn's TfidfVectorizer (single words, sublinear, min_df 2) and a library of the harness
``../shared/peers/bench.py``, with its settings there; its environment needs scikit-learn. Ours is what ``labelspace
train`` does. Data with ready-made features (XMC format) give both sides those. Each run is a process of its own, the
sides alternate, and of ``--repeat`` runs the one that trained in the fewest CPU seconds counts.

Training is what happens between parsed texts, with their labels as a matrix, and the trained model in memory.

- In: features of the texts, everything that is learned, ours with loading compiled kernels from disk.
- Out, on both sides: the start of Python and imports (but those that a library puts off until it trains), reading and
  parsing the files, saving and loading the model.
- Out, ours: compiling kernels, once per machine. A training on a few documents compiles them ahead; a run in which some
  were still compiled is repeated.
- Out, the peer's: bringing ready-made features to length one. Ours does that in training.
- Validation documents (``dev.*``): ours uses them as ``labelspace train`` does (blend learns its stacking from them),
  read ahead, their features in. The peer has no use for any, and trains on the training documents alone.

CPU seconds are user and system time of the process and its children. Peak memory is that of the process at the end of
training, with the parsed documents. MB is the saved model with its vectorizer. Prediction is of the loaded model and
from raw text: all test documents at once (documents per CPU second), and up to 1,000 of them one at a time. Accuracy is
computed here for both, by ``labelspace.metrics.evaluate``. The last column is ours over the peer's; for accuracy, ours
minus the peer's. With ``--bar`` the exit code is 1 if a ratio of training CPU seconds is above it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from peers import HARNESS, Figures, best_runs, child

from labelspace import metrics
from labelspace.data.source import open_source
from labelspace.types import Dataset, TopK

SIDES = Path(__file__).with_name("cost_sides.py")
COSTS = {
    "train_cpu_s": "train, CPU s",
    "train_s": "train, wall s",
    "train_peak_MB": "peak memory, MB",
    "model_MB": "model, MB",
    "lat_ms_p50": "one document, ms (p50)",
    "lat_ms_p99": "one document, ms (p99)",
    "predict_per_cpu_s": "documents per CPU s",
}
ACCURACY = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@5")


def write_inputs(documents: Dataset, folder: Path, split: str) -> None:
    """Write features, or else texts, for the peer."""
    if documents.X is not None:
        sp.save_npz(folder / f"{split}.npz", documents.X)
        return
    with (folder / f"{split}.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(text) + "\n" for text in documents.texts or [])


def accuracy(answers: Path, test: Dataset, train: Dataset) -> dict[str, float]:
    """The figures of label ids that a side wrote."""
    labels = np.load(answers)
    ranks = np.broadcast_to(-np.arange(labels.shape[1], dtype=np.float32), labels.shape)
    top = TopK(labels, np.where(labels < 0, -np.inf, ranks))
    counts = np.bincount(train.Y.indices, minlength=test.Y.shape[1])
    figures = metrics.evaluate(test.Y, top, counts, len(train))
    return {key: round(figures[key], 2) for key in ACCURACY}


def commands(data: str, folder: Path, args: argparse.Namespace) -> tuple[list[str], list[str]]:
    """The command of each side."""
    ours = [sys.executable, str(SIDES), "ours", str(folder), "--data", data, "--method", args.method]
    ours += [part for setting in args.set for part in ("--set", setting)]
    theirs = [args.python, str(SIDES), "peer", str(folder), "--peer", args.peer, "--harness", str(args.harness)]
    return ours, theirs


def compare(data: str, args: argparse.Namespace) -> dict[str, Figures]:
    """Cost and accuracy of both sides on one data set."""
    source = open_source(data)
    train = source.train()
    test = source.test(train.labels)
    if test is None:
        sys.exit(f"DATA must have test.*, but {data} has none; give another folder")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(train, folder, "train")
        write_inputs(test, folder, "test")
        sp.save_npz(folder / "labels.npz", train.Y)
        ours, theirs = commands(data, folder, args)
        child([*ours, "--few"], args.threads)
        best = best_runs({"ours": ours, "peer": theirs}, args.repeat, args.threads)
        if best["ours"]["compile_s"]:
            best |= best_runs({"ours": ours}, 1, args.threads)
        return {side: {**best[side], **accuracy(folder / f"{side}.npy", test, train)} for side in best}


def table(data: str, best: dict[str, Figures]) -> list[str]:
    """The rows of one data set: name, figure, ours, the peer's, and their ratio, or difference of accuracy."""
    ours, peer = best["ours"], best["peer"]
    name = Path(data).resolve().name
    rows = [(COSTS[key], ours[key], peer[key], f"{ours[key] / peer[key]:.2f}") for key in COSTS]
    rows += [(key, ours[key], peer[key], f"{ours[key] - peer[key]:+.2f}") for key in ACCURACY]
    return [f"| {name} | {figure} | {mine:,} | {other:,} | {last} |" for figure, mine, other, last in rows]


def main() -> None:
    """Measure each data set, and print its rows when they are there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--python", required=True, help="the Python of the peer's environment")
    parser.add_argument("--peer", default="pecos-default")
    parser.add_argument("--harness", type=Path, default=HARNESS)
    parser.add_argument("--method", default="blend")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--bar", type=float, help="the largest ratio of training CPU seconds")
    parser.add_argument("--json", type=Path, help="also write all figures here")
    args = parser.parse_args()
    measured: dict[str, dict[str, Figures]] = {}
    print(f"| data | figure | {args.method} | {args.peer} | ratio |\n|---|---|---|---|---|")
    for data in args.data:
        measured[data] = compare(data, args)
        print("\n".join(table(data, measured[data])), flush=True)
        if args.json:
            args.json.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    ratios = {data: best["ours"]["train_cpu_s"] / best["peer"]["train_cpu_s"] for data, best in measured.items()}
    above = [f"{Path(data).name} {ratio:.2f}" for data, ratio in ratios.items() if args.bar and ratio > args.bar]
    if above:
        sys.exit(
            f"training CPU seconds over the peer's must be at most {args.bar:g}, but are above: {', '.join(above)}"
        )


if __name__ == "__main__":
    main()
