"""Poincaré's Tables 4 and 5: dimensions and learners, in hyperbolic and in Euclidean space.

    python benchmarks/poincare_table.py DATA [--dimensions 5,10,25,50] [--learners 1,3,6,15] [--geometries a,b]
        [--split test] [--each] [--set key=value ...]

One training of the most learners serves all rows of a dimension: fewer are its first ones. How their votes are weighed
is chosen for each number anew, on a twentieth of train that is cut off here. ``--each`` has a row for each learner by
itself and each route instead: what chance does to one.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from splits import Split, read

from labelspace import metrics
from labelspace.cli.options import parse_settings
from labelspace.experiment import timed
from labelspace.features.normalize import normalize_rows
from labelspace.models.base import silent
from labelspace.models.poincare.model import Poincare
from labelspace.training.early_stopping import hold_out_rows

SHOWN = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")


def rows(train: Split, unseen: Split, learners: list[int], each: bool, settings: dict[str, Any]) -> None:
    """Train once; print a row for each number of learners, or for each learner and route."""
    X, Y = train
    parted = hold_out_rows(Y, 0.05, 2000, seed=0)
    assert parted is not None
    rest, held = parted
    with timed() as taken:
        model = Poincare(learners=max(learners), **settings)
        model.fit(X[rest], Y[rest], validation=(X[held], Y[held]))
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    most = max(choice.neighbors for choice in model._choices())
    tried, asked = (model._evidence(normalize_rows(rows), most, 5) for rows in (X[held], unseen[0]))
    parts = [("both", slice(number)) for number in learners]
    if each:
        parts = [(route, slice(i, i + 1)) for route in ("both", "labels") for i in range(max(learners))]
    for route, part in parts:
        model.route = route
        best = model._best(model._choices(), tried[part], Y[held], silent)
        figures = metrics.evaluate(unseen[1], model._ranked(asked[part], best, 5), counts, X.shape[0])
        who = f"number {part.start}, {route}" if each else part.stop
        told = [settings["geometry"], settings["dimension"], who, *(f"{figures[key]:.2f}" for key in SHOWN)]
        told += [model.report_["norm_against_frequency"], f"{taken.cpu / max(learners):.0f}"]
        print("|", " | ".join(map(str, told)), "|", flush=True)


def main() -> None:
    """Print one Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--dimensions", default="5,10,25,50")
    parser.add_argument("--learners", default="1,3,6,15")
    parser.add_argument("--geometries", default="poincare,euclidean")
    parser.add_argument("--each", action="store_true", help="a row for each learner and route")
    parser.add_argument("--set", dest="settings", action="append", default=[], help="as key=value")
    parser.add_argument("--split", choices=("validation", "test"), default="validation")
    args = parser.parse_args()
    train, unseen = read(args.data, args.split, Poincare.text_features)
    print("| geometry | dimension | learners |", " | ".join(SHOWN), "| norm against frequency | CPU s a learner |")
    print("|---|" + "---|" * (len(SHOWN) + 4))
    learners = [int(number) for number in args.learners.split(",")]
    for dimension in args.dimensions.split(","):
        for geometry in args.geometries.split(","):
            chosen = {**parse_settings(args.settings), "dimension": int(dimension), "geometry": geometry}
            rows(train, unseen, learners, args.each, chosen)


if __name__ == "__main__":
    main()
