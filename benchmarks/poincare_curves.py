"""How stable Poincaré trains: accuracy by epoch of the paper's optimizers and of ours, by learning rate.

    python benchmarks/poincare_curves.py DATA [--epochs 25] [--svg FILE] [--set key=value ...]

Accuracy is the R-precision of the nearest labels on (at most 2,000) documents that were not trained on. ``fall`` is the
sum of its losses from one epoch to the next, ``worst`` the largest of them, and ``last`` the accuracy of the last
epoch. Learning rates are the defaults, and multiples of them.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from splits import Split, read

from labelspace.cli.recipes import parse_settings
from labelspace.models.poincare.model import Poincare
from labelspace.models.poincare.training import LEARNING_RATES

PAPER: dict[str, Any] = {"projection": "clip", "similarity_weight": 0.0, "input_dropout": 0.0}
FORMS: dict[str, dict[str, Any]] = {
    "paper, SGD": {**PAPER, "optimizer": "sgd"},
    "paper, Adam": {**PAPER, "optimizer": "adam"},
    "ours": {},
}
FACTORS = (1.0, 3.0, 10.0)  # of the default learning rates
COLORS = {"paper, SGD": "#8a7a2a", "paper, Adam": "#b5483f", "ours": "#3b6fb6"}
WIDTH, HEIGHT, LEFT, TOP = 640, 300, 50, 20


def curve(train: Split, unseen: Split, settings: dict[str, Any], factor: float) -> list[float]:
    """Accuracy by epoch."""
    label_rate, theta_rate = (rate * factor for rate in LEARNING_RATES[settings.get("optimizer", "adagrad")])
    rates = {"learning_rate": label_rate, "feature_learning_rate": theta_rate}
    model = Poincare(**settings, **rates, n_neighbors=20, sharpness=4.0).fit(*train, validation=unseen)
    accuracies: list[float] = model.report_["accuracy_by_epoch"][0]
    return accuracies


def drawing(curves: dict[tuple[str, float], list[float]]) -> str:
    """The curves as SVG: one color per form, fainter for higher learning rates."""
    epochs, top = max(map(len, curves.values())), max(max(values) for values in curves.values())
    marks = ""
    for share in np.arange(0, top + 0.1, 0.1):
        y = TOP + HEIGHT * (1 - share / top)
        marks += f"<line x1='{LEFT}' x2='{LEFT + WIDTH}' y1='{y:.1f}' y2='{y:.1f}' stroke='#8888' stroke-width='.5'/>"
        marks += f"<text x='{LEFT - 6}' y='{y + 4:.1f}' text-anchor='end'>{100 * share:.0f}</text>"
    for (name, factor), values in curves.items():
        positions = (
            f"{LEFT + WIDTH * at / max(epochs - 1, 1):.1f},{TOP + HEIGHT * (1 - value / top):.1f}"
            for at, value in enumerate(values)
        )
        style = f"fill='none' stroke='{COLORS[name]}' stroke-width='2' opacity='{1 / factor**0.5:.2f}'"
        marks += f"<polyline points='{' '.join(positions)}' {style}/>"
    for at, (name, color) in enumerate(COLORS.items()):
        marks += f"<text x='{LEFT + 20 + 130 * at}' y='{TOP + HEIGHT + 36}' fill='{color}'>{name}</text>"
    marks += f"<text x='{LEFT + WIDTH}' y='{TOP + HEIGHT + 18}' text-anchor='end'>epoch {epochs}</text>"
    size = f"viewBox='0 0 {LEFT + WIDTH + 20} {TOP + HEIGHT + 50}'"
    font = "font-family='sans-serif' font-size='12' fill='#888'"
    return f"<svg xmlns='http://www.w3.org/2000/svg' {size} {font}>{marks}</svg>\n"


def main() -> None:
    """Print one Markdown table, and draw the curves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--set", dest="settings", action="append", default=[], help="as key=value, for all")
    args = parser.parse_args()
    train, unseen = read(args.data, "validation", Poincare.view.params)
    print("| form | rates | best | last | fall | worst |\n|---|---|---|---|---|---|")
    curves = {}
    for name, form in FORMS.items():
        for factor in FACTORS:
            settings = {**form, "epochs": args.epochs, **parse_settings(args.settings)}
            values = curves[name, factor] = curve(train, unseen, settings, factor)
            falls = np.maximum(0.0, -np.diff(values))
            summary = (max(values), values[-1], falls.sum(), falls.max())
            print(f"| {name} | x{factor:g} |", " | ".join(f"{100 * value:.1f}" for value in summary), "|", flush=True)
    if args.svg:
        args.svg.write_text(drawing(curves), encoding="utf-8")


if __name__ == "__main__":
    main()
