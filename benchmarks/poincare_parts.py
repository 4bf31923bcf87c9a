"""Ablations of Poincaré by route: votes of the nearest documents, of the nearest labels, and of both.

    python benchmarks/poincare_parts.py DATA [--seeds 3] [--set key=value ...]

On documents that were not trained on: ``dev.*``, or else a fifth of train. ``norms`` are the mean norms of documents
and labels.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from splits import Split, read

from labelspace import metrics
from labelspace.cli.recipes import parse_settings
from labelspace.features.normalize import normalize_rows
from labelspace.models.poincare.model import Poincare
from labelspace.training.epochs import hold_out_rows
from labelspace.types import no_progress

ROUTES = ("vote", "labels", "both")
PAPER: dict[str, Any] = {"similarity_weight": 0.0, "projection": "clip"}
FAST: dict[str, Any] = {"alpha": 4.0, "feature_learning_rate": 0.1}
ROWS: dict[str, dict[str, Any]] = {
    "all of it": {},
    "votes counted, not weighted": {"sharpness": 0.0},
    "without the similarity loss": {"similarity_weight": 0.0},
    "and with the paper's projection": PAPER,
    "and with the paper's Adam": {**PAPER, "optimizer": "adam", "sharpness": 0.0},
    "alpha 4, higher learning rate of theta": FAST,
    "the same, without the similarity loss": {**FAST, "similarity_weight": 0.0},
    "Euclidean": {"geometry": "euclidean"},
    "Euclidean, without the similarity loss": {"geometry": "euclidean", "similarity_weight": 0.0},
}


def measure(train: Split, unseen: Split, settings: dict[str, Any]) -> list[float]:
    """P@1, P@3 and P@5 of each route, the norms, and Spearman's correlation of norm and frequency."""
    X, Y = train
    split = hold_out_rows(Y, 0.05, 2000, random_state=0)
    assert split is not None
    rows, held_out = split
    model = Poincare(**settings).fit(X[rows], Y[rows], validation=(X[held_out], Y[held_out]))
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    precisions: list[float] = []
    for route in ROUTES:
        model.route = route
        model.vote_weights_ = model._choose_vote_weights((normalize_rows(X[held_out]), Y[held_out]), no_progress)
        figures = metrics.evaluate(unseen[1], model.predict_topk(unseen[0], 5), counts, X.shape[0])
        precisions += [figures["P@1"], figures["P@3"], figures["P@5"]]
    norms = [model.report_[f"mean_norm_of_{points}"] for points in ("documents", "labels")]
    return [*precisions, *norms, model.report_["norm_against_frequency"]]


def main() -> None:
    """Print one Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds; figures are their means")
    parser.add_argument("--set", dest="settings", action="append", default=[], help="as key=value, for all")
    args = parser.parse_args()
    train, unseen = read(args.data, "validation", Poincare.view.params)
    print("| | vote | labels | both | norms | norm against frequency |\n|---|---|---|---|---|---|")
    for name, changed in ROWS.items():
        settings = {**parse_settings(args.settings), **changed}
        runs = [measure(train, unseen, {**settings, "random_state": seed}) for seed in range(args.seeds)]
        means = np.mean(runs, axis=0)
        cells = ["/".join(f"{value:.2f}" for value in means[at : at + 3]) for at in (0, 3, 6)]
        print(f"| {name} |", " | ".join(cells), f"| {means[9]:.2f}, {means[10]:.2f} | {means[11]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
