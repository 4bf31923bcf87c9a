"""Accuracy on random splits of the size of a data set's own one: how much of a difference is due to the split.

    python benchmarks/random_splits.py DATA --method fastxml --set propensity=true --splits 3

The Extreme Classification Repository made its own splits of Bibtex and Delicious, and published its figures on these.
"""

from __future__ import annotations

import argparse

import numpy as np
import scipy.sparse as sp
from splits import read

from labelspace.cli.recipes import parse_settings
from labelspace.metrics import evaluate
from labelspace.models.registry import create

SHOWN = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@1")


def main() -> None:
    """Print a line for each split, and the means with standard deviations."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--method", required=True)
    parser.add_argument("--set", action="append", default=[], dest="settings", metavar="KEY=VALUE")
    parser.add_argument("--splits", type=int, default=3)
    args = parser.parse_args()
    (X, Y), (unseen, truth) = read(args.data, "test", {})
    n_train, X, Y = X.shape[0], sp.vstack([X, unseen]).tocsr(), sp.vstack([Y, truth[:, : Y.shape[1]]]).tocsr()
    figures = []
    for seed in range(args.splits):
        order = np.random.default_rng(seed).permutation(X.shape[0])
        train, held_out = order[:n_train], order[n_train:]
        model = create(args.method, **parse_settings(args.settings)).fit(X[train], Y[train])
        counts = np.bincount(Y[train].indices, minlength=Y.shape[1])
        found = evaluate(Y[held_out], model.predict_topk(X[held_out], 5), counts, n_train)
        figures.append([found[key] for key in SHOWN])
        print(
            f"split {seed}", *(f"{key} {value:.2f}" for key, value in zip(SHOWN, figures[-1], strict=True)), flush=True
        )
    means, deviations = np.mean(figures, axis=0), np.std(figures, axis=0)
    print("mean   ", *(f"{key} {m:.2f} ({d:.2f})" for key, m, d in zip(SHOWN, means, deviations, strict=True)))


if __name__ == "__main__":
    main()
