"""Ablation of NeuralXC or HierarchicalXC: one parameter changed at a time.

    python benchmarks/autoencoder_parts.py neuralxc DATA [--seeds 3] [--only NAME ...] [--preset NAME]
        [--set key=value ...]
    python benchmarks/autoencoder_parts.py hierarchicalxc DATA

On documents that were not trained on: ``dev.*`` (2,000 of them), or else a fifth of train. For HierarchicalXC the last
rows go back to what the paper and the authors' programs do: ``yes or no`` follows every child with a probability of at
least a half and leaves the labels in the order of their ids; ``out of step`` gives the documents' codes in another
order than their labels.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from parts import arguments, base_settings, make
from splits import Split, read

from labelspace import metrics
from labelspace.models.registry import method


def some(settings: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Only these parameters."""
    return {key: settings[key] for key in keys}


MEASURED = 2000  # documents
AUTHORS = method("neuralxc").presets["authors"]
LAYERS = some(AUTHORS, "input_layers", "regressor", "output_layers", "input_code")
PAPER = method("hierarchicalxc").presets["paper"]
TREE = some(PAPER, "similarity", "ties", "balance")
TRAINING = {**TREE, **some(PAPER, "training", "off_path")}
YES_OR_NO = {**TRAINING, **some(PAPER, "follow_threshold", "ranking")}
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
        "the paper's layers": {**LAYERS, "output_code": "linear"},
        "and codes through tanh": {**LAYERS, **some(AUTHORS, "output_code")},
        "and biases start at 0": {**LAYERS, **some(AUTHORS, "output_code", "prior_bias")},
        "preset paper": {"preset": "paper"},
        "preset authors": {"preset": "authors"},
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
        "the paper's tree and training": TRAINING,
        "and yes or no": YES_OR_NO,
        "and out of step": {**YES_OR_NO, "out of step": True},
        "preset paper": {"preset": "paper"},
        "preset authors": {"preset": "authors"},
    },
}


def measure(name: str, train: Split, unseen: Split, settings: dict[str, Any]) -> list[float]:
    """P@1, P@3, P@5 and nDCG@5, the tree's height (0 without one), and CPU seconds of the training."""
    X, Y = train
    if settings.pop("out of step", False):
        X = X[np.random.default_rng(settings["random_state"]).permutation(X.shape[0])]
    model = make(name, settings)
    before = time.process_time()
    model.fit(X, Y)
    seconds = time.process_time() - before
    top = model.predict_topk(unseen[0], 5)
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    figures = metrics.evaluate(unseen[1], top, counts, X.shape[0])
    height = model.report().get("tree_height", 0)
    return [figures["P@1"], figures["P@3"], figures["P@5"], figures["nDCG@5"], height, seconds]


def main() -> None:
    """Print one Markdown table."""
    args = arguments(__doc__, list(ROWS))
    train, (X, Y) = read(args.data, "validation", method(args.method).view.params)
    rows = np.random.default_rng(0).permutation(X.shape[0])[:MEASURED]
    print(f"{train[0].shape[0]} documents to train on, {len(rows)} to measure on")
    print("| | P@1 | P@3 | P@5 | nDCG@5 | height | CPU s |\n|---|---|---|---|---|---|---|")
    for name, changed in ROWS[args.method].items():
        if args.only and name not in args.only:
            continue
        settings = {**base_settings(args), **changed}
        seeds = range(args.seeds)
        runs = [measure(args.method, train, (X[rows], Y[rows]), {**settings, "random_state": seed}) for seed in seeds]
        *figures, height, seconds = np.mean(runs, axis=0)
        cells = " | ".join(f"{value:.2f}" for value in figures)
        print(f"| {name} | {cells} | {height:.0f} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
