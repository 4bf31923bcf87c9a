"""How steadily Poincaré trains: accuracy by epoch of the paper's optimizers and of ours, at usual rates and above.

    python benchmarks/poincare_curves.py DATA [--epochs 25] [--svg FILE] [--set key=value ...]

Accuracy is that of the nearest labels on (at most 2,000) documents that were not trained on. ``fall`` sums what it lost
from one epoch to the next, ``worst`` is the largest such loss, and ``last`` stands beside the best: what is lost by
going on.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from splits import Split, read

from labelspace.cli.options import parse_settings
from labelspace.models.poincare.model import RATES, Poincare

PAPER: dict[str, Any] = {"projection": "clip", "similarity": 0.0, "input_dropout": 0.0}
FORMS: dict[str, dict[str, Any]] = {
    "paper, SGD": {**PAPER, "optimizer": "sgd"},
    "paper, Adam": {**PAPER, "optimizer": "adam"},
    "ours": {},
}
TIMES = (1.0, 3.0, 10.0)
COLOrS = {"paper, SGD": "#8a7a2a", "paper, Adam": "#b5483f", "ours": "#3b6fb6"}
WIDTH, HEIGHT, LEFT, TOP = 640, 300, 50, 20


def curve(train: Split, unseen: Split, settings: dict[str, Any], times: float) -> list[float]:
    """Accuracy by epoch."""
    rates = RATES[settings.get("optimizer", "adagrad")]
    model = Poincare(**settings, rate=rates[0] * times, feature_rate=rates[1] * times, neighbors=20, sharpness=4.0)
    found: list[float] = model.fit(*train, validation=unseen).report_["accuracy_by_epoch"][0]
    return found


def drawing(curves: dict[tuple[str, float], list[float]]) -> str:
    """The curves as SVG: a color a form, the fainter the higher the rate."""
    epochs, top = max(map(len, curves.values())), max(max(values) for values in curves.values())
    marks = ""
    for share in np.arange(0, top + 0.1, 0.1):
        y = TOP + HEIGHT * (1 - share / top)
        marks += f"<line x1='{LEFT}' x2='{LEFT + WIDTH}' y1='{y:.1f}' y2='{y:.1f}' stroke='#8888' stroke-width='.5'/>"
        marks += f"<text x='{LEFT - 6}' y='{y + 4:.1f}' text-anchor='end'>{100 * share:.0f}</text>"
    for (name, times), values in curves.items():
        places = (
            f"{LEFT + WIDTH * at / max(epochs - 1, 1):.1f},{TOP + HEIGHT * (1 - value / top):.1f}"
            for at, value in enumerate(values)
        )
        style = f"fill='none' stroke='{COLOrS[name]}' stroke-width='2' opacity='{1 / times**0.5:.2f}'"
        marks += f"<polyline points='{' '.join(places)}' {style}/>"
    for at, (name, color) in enumerate(COLOrS.items()):
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
    train, unseen = read(args.data, "validation", Poincare.text_features)
    print("| form | rates | best | last | fall | worst |\n|---|---|---|---|---|---|")
    curves = {}
    for name, form in FORMS.items():
        for times in TIMES:
            settings = {**form, "epochs": args.epochs, **parse_settings(args.settings)}
            values = curves[name, times] = curve(train, unseen, settings, times)
            falls = np.maximum(0.0, -np.diff(values))
            told = (max(values), values[-1], falls.sum(), falls.max())
            print(f"| {name} | x{times:g} |", " | ".join(f"{100 * value:.1f}" for value in told), "|", flush=True)
    if args.svg:
        args.svg.write_text(drawing(curves), encoding="utf-8")


if __name__ == "__main__":
    main()
