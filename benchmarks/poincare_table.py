"""Poincaré's Tables 4 and 5: dimensions and learners, in hyperbolic and in Euclidean space.

    python benchmarks/poincare_table.py DATA [--dimensions 5,10,25,50] [--learners 1,3,6,15] [--geometries a,b]
        [--presets paper,annexml] [--split test] [--each] [--set key=value ...]

For each dimension, the largest number of learners is trained once; rows with fewer learners use the first of them. The
vote weights are chosen for each row, on 5 % of train that is held out here. ``--each`` prints a row for each single
learner and each route instead, to show how much learners vary. ``--presets`` compares presets, not geometries: "paper"
and "annexml" are the two columns of Table 4.
"""

from __future__ import annotations

import argparse

import numpy as np
from splits import Split, read

from labelspace import metrics
from labelspace.cli.recipes import parse_settings
from labelspace.experiment import timed
from labelspace.labels.document_neighbors import total_dcg
from labelspace.models.poincare.model import Poincare
from labelspace.models.poincare.voting import vote_weight_grid
from labelspace.training.epochs import hold_out_rows

SHOWN = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")


def rows(name: str, model: Poincare, train: Split, unseen: Split, learners: list[int], each: bool) -> None:
    """Train once; print a row for each number of learners, or for each learner and route."""
    X, Y = train
    split = hold_out_rows(Y, 0.05, 2000, random_state=0)
    assert split is not None
    train_rows, held_out = split
    with timed() as taken:
        model.set_params(n_estimators=max(learners))
        model.fit(X[train_rows], Y[train_rows], validation=(X[held_out], Y[held_out]))
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    n_neighbors = max(weights.n_neighbors for weights in vote_weight_grid(model))
    tuning, test = (model._nearest(model.scaled(queries), n_neighbors, 5) for queries in (X[held_out], unseen[0]))
    parts = [(model.route, slice(number)) for number in learners]
    if each:
        routes = ("both", "labels") if model.route == "both" else (model.route,)
        parts = [(route, slice(i, i + 1)) for route in routes for i in range(max(learners))]
    for route, part in parts:
        model.route = route
        grid = vote_weight_grid(model)
        gains = [total_dcg(model._rank(tuning[part], weights, 5), Y[held_out]) for weights in grid]
        weights = grid[int(np.argmax(gains))]
        figures = metrics.evaluate(unseen[1], model._rank(test[part], weights, 5), counts, X.shape[0])
        which = f"number {part.start}, {route}" if each else part.stop
        cells = [name, model.embedding_dim, which, *(f"{figures[key]:.2f}" for key in SHOWN)]
        cells += [model.report_["norm_against_frequency"], f"{taken.cpu / max(learners):.0f}"]
        print("|", " | ".join(map(str, cells)), "|", flush=True)


def main() -> None:
    """Print one Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--dimensions", default="5,10,25,50")
    parser.add_argument("--learners", default="1,3,6,15")
    parser.add_argument("--geometries", default="poincare,euclidean")
    parser.add_argument("--presets", help="compare these presets, not geometries")
    parser.add_argument("--each", action="store_true", help="a row for each learner and route")
    parser.add_argument("--set", dest="settings", action="append", default=[], help="as key=value")
    parser.add_argument("--split", choices=("validation", "test"), default="validation")
    args = parser.parse_args()
    train, unseen = read(args.data, args.split, Poincare.view.params)
    print(
        "| preset" if args.presets else "| geometry",
        "| dimension | learners |",
        " | ".join(SHOWN),
        "| norm against frequency | CPU s per learner |",
    )
    print("|---|" + "---|" * (len(SHOWN) + 4))
    learners = [int(number) for number in args.learners.split(",")]
    settings = parse_settings(args.settings)
    for dimension in args.dimensions.split(","):
        for name in (args.presets or args.geometries).split(","):
            given = {**settings, "embedding_dim": int(dimension)}
            model = Poincare.from_preset(name, **given) if args.presets else Poincare(**{"geometry": name, **given})
            rows(name, model, train, unseen, learners, args.each)


if __name__ == "__main__":
    main()
