"""Ablation of NeuralXC or HierarchicalXC: one parameter changed at a time.

    python benchmarks/autoencoder_parts.py neuralxc DATA [--seeds 3] [--only NAME ...] [--set key=value ...]
    python benchmarks/autoencoder_parts.py hierarchicalxc DATA

On documents that were not trained on: ``dev.*`` (2,000 of them), or else a fifth of train. For HierarchicalXC the last
rows go back to what the authors' programs do: ``yes or no`` follows every child with a probability of at least a half
and leaves the labels in the order of their ids; ``out of step`` gives the documents' codes in another order than their
labels.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from splits import Split, read

from labelspace import metrics
from labelspace.cli.options import parse_settings
from labelspace.models.base import Model
from labelspace.models.registry import create, method
from labelspace.types import TopK

DEEP: dict[str, Any] = {"input_layers": "1152,600,256", "regressor": "112", "output_layers": "96,32"}
TREE: dict[str, Any] = {"similarity": "counts", "ties": "order", "balance": "never"}
PAPER: dict[str, Any] = {**TREE, "training": "staged", "off_path": 0}
ROWS: dict[str, dict[str, dict[str, Any]]] = {
    "neuralxc": {
        "all of it": {},
        "without the input autoencoder": {"alpha": 0.0},
        "without the output autoencoder": {"beta": 0.0},
        "without both": {"alpha": 0.0, "beta": 0.0},
        "alpha 1": {"alpha": 1.0},
        "alpha 10": {"alpha": 10.0},
        "beta 10": {"beta": 10.0},
        "autoencoders first, then all": {"training": "pretrained"},
        "autoencoders first, then f alone": {"training": "staged"},
        "biases start at 0": {"prior_bias": False},
        "losses are means": {"reduction": "mean"},
        "codes of 32 through tanh": {"output_layers": 32, "output_code": "tanh"},
        "the paper's layers": {**DEEP, "input_code": "linear", "output_code": "linear"},
        "and codes through tanh": {**DEEP, "input_code": "linear", "output_code": "tanh"},
        "and biases start at 0": {**DEEP, "input_code": "linear", "output_code": "tanh", "prior_bias": False},
    },
    "hierarchicalxc": {
        "all of it": {},
        "on the features": {"input": "features"},
        "no off-path documents": {"off_path": 0},
        "without the autoencoder": {"alpha": 0.0},
        "autoencoder first, then all": {"training": "pretrained"},
        "autoencoder first, then classifiers": {"training": "staged"},
        "counts": {"similarity": "counts"},
        "counts, ties in order (a chain)": TREE,
        "the same, rebalanced": {**TREE, "balance": "always"},
        "follow one half": {"follow_threshold": 0.5},
        "the paper's tree and training": PAPER,
        "and yes or no": {**PAPER, "follow_threshold": 0.5, "yes or no": True},
        "and out of step": {**PAPER, "follow_threshold": 0.5, "yes or no": True, "out of step": True},
    },
}


def in_order_of_labels(top: TopK, k: int) -> TopK:
    """The predicted labels without their scores: the first k by id."""
    labels = np.sort(np.where(top.labels < 0, np.iinfo(np.int32).max, top.labels), axis=1)[:, :k]
    listed = labels < np.iinfo(np.int32).max
    return TopK(np.where(listed, labels, -1).astype(np.int32), np.where(listed, 1.0, -np.inf).astype(np.float32))


def measure(name: str, train: Split, unseen: Split, settings: dict[str, Any]) -> list[float]:
    """P@1, P@3, P@5 and nDCG@5, the tree's height (0 without one), and CPU seconds of the training."""
    yes_or_no, out_of_step = settings.pop("yes or no", False), settings.pop("out of step", False)
    X, Y = train
    if out_of_step:
        X = X[np.random.default_rng(settings["random_state"]).permutation(X.shape[0])]
    model: Model = create(name).set_params(**settings)
    before = time.process_time()
    model.fit(X, Y)
    seconds = time.process_time() - before
    top = model.predict_topk(unseen[0], 100 if yes_or_no else 5)
    top = in_order_of_labels(top, 5) if yes_or_no else top
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    figures = metrics.evaluate(unseen[1], top, counts, X.shape[0])
    height = model.report().get("tree_height", 0)
    return [figures["P@1"], figures["P@3"], figures["P@5"], figures["nDCG@5"], height, seconds]


def main() -> None:
    """Print one Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", choices=list(ROWS))
    parser.add_argument("data")
    parser.add_argument("--seeds", type=int, default=1, help="how many; figures are their means")
    parser.add_argument("--only", nargs="*", default=[], help="names of rows")
    parser.add_argument("--set", dest="settings", action="append", default=[], help="as key=value, for all rows")
    args = parser.parse_args()
    train, (X, Y) = read(args.data, "validation", method(args.method).view.params)
    some = np.random.default_rng(0).permutation(X.shape[0])[:2000]
    print(f"{train[0].shape[0]} documents to train on, {len(some)} to measure on")
    print("| | P@1 | P@3 | P@5 | nDCG@5 | height | CPU s |\n|---|---|---|---|---|---|---|")
    for name, changed in ROWS[args.method].items():
        if args.only and name not in args.only:
            continue
        settings = {**parse_settings(args.settings), **changed}
        seeds = range(args.seeds)
        runs = [measure(args.method, train, (X[some], Y[some]), {**settings, "random_state": seed}) for seed in seeds]
        *figures, height, seconds = np.mean(runs, axis=0)
        cells = " | ".join(f"{value:.2f}" for value in figures)
        print(f"| {name} | {cells} | {height:.0f} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
