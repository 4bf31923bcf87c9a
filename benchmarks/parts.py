"""Common parts of the ablation scripts, which change one parameter at a time: arguments, models, documents, table."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from labelspace.cli.recipes import parse_settings
from labelspace.data.source import open_source
from labelspace.data.splits import hold_out
from labelspace.errors import ParameterError
from labelspace.models.base import Model
from labelspace.models.registry import method
from labelspace.tagger import Tagger
from labelspace.types import Dataset, TopK

LARGE = 50_000  # documents in train
Measure = Callable[[Dataset, Dataset, dict[str, Any]], list[float]]


def arguments(description: str | None, methods: Sequence[str] = ()) -> argparse.Namespace:
    """The command line; with ``methods``, the method comes first."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    if methods:
        parser.add_argument("method", choices=methods)
    parser.add_argument("data")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds; figures are means over them")
    parser.add_argument("--only", nargs="*", default=[], help="names of the rows to run")
    add_base_arguments(parser)
    return parser.parse_args()


def add_base_arguments(parser: argparse.ArgumentParser) -> None:
    """The options for what all rows begin with."""
    parser.add_argument("--preset", help="what all rows change, such as paper; default: the defaults of the method")
    parser.add_argument("--set", dest="settings", action="append", default=[], help="as key=value, for all rows")


def base_settings(args: argparse.Namespace) -> dict[str, Any]:
    """What all rows begin with: ``preset`` and parameters."""
    return {"preset": args.preset, **parse_settings(args.settings)}


def make(name: str, settings: Mapping[str, Any]) -> Model:
    """The method with the settings of a row, of which ``preset`` is the first; some may have no effect with others."""
    preset = settings.get("preset")
    model = method(name)() if preset is None else method(name).from_preset(preset)
    return model.set_params(**{key: value for key, value in settings.items() if key != "preset"})


def documents(data: str, max_test: int | None = None) -> tuple[Dataset, Dataset]:
    """Training and test documents: the latter are dev, or else a fifth of train (a twentieth of a large one)."""
    source = open_source(data)
    train = source.train()
    unseen = source.dev(train.labels)
    if unseen is None:
        train, unseen = hold_out(train, 0.05 if len(train) > LARGE else 0.2, seed=0)
    if max_test is not None:
        unseen = unseen.rows(np.sort(np.random.default_rng(0).permutation(len(unseen))[:max_test]))
    print(f"{len(train)} training documents, {len(unseen)} test documents")
    return train, unseen


def timed(tagger: Tagger, train: Dataset, unseen: Dataset) -> tuple[TopK, float, float]:
    """Train and predict: the top 5 per document, CPU seconds of the training, CPU milliseconds per document."""
    before = time.process_time()
    tagger.fit_dataset(train)
    train_seconds = time.process_time() - before
    tagger.predict_topk(unseen.rows([0]).inputs, 5)  # compiles kernels, fills caches
    before = time.process_time()
    top = tagger.predict_topk(unseen.inputs, 5)
    return top, train_seconds, 1e3 * (time.process_time() - before) / len(unseen)


def table(
    args: argparse.Namespace, rows: Mapping[str, dict[str, Any]], heads: Sequence[str], digits: Sequence[int],
    measure: Measure, max_test: int | None = None,
) -> None:  # fmt: skip
    """Print a row for each setting; ``digits`` are the decimals of each column."""
    train, unseen = documents(args.data, max_test)
    print(f"| | {' | '.join(heads)} |\n|---|{'---|' * len(heads)}")
    for name, changed in rows.items():
        if args.only and name not in args.only:
            continue
        settings = {**base_settings(args), **changed}
        try:
            runs = [measure(train, unseen, {**settings, "random_state": seed}) for seed in range(args.seeds)]
        except ParameterError as error:  # what a row changes may not go with a preset
            print(f"| {name} | {error} |")
            continue
        cells = [f"{value:.{decimals}f}" for value, decimals in zip(np.mean(runs, axis=0), digits, strict=True)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
