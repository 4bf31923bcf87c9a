"""Ablation of GLaS: the rows of the paper's Table 1, and the generalization gap.

    python benchmarks/glas_ablation.py DATA [DATA ...] [--seeds 3] [--preset paper] [--set key=value ...]
        [--only regularizer,loss]

Unseen documents are those of ``dev.*``, else a fifth of train; ``--split test`` takes the test file.
One parameter of the base, which is the defaults or a preset, is changed at a time. ``gap`` is P@1 on (at most 5,000)
training documents minus P@1 on unseen ones.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from parts import add_base_arguments, base_settings, make
from splits import Split, read

from labelspace import metrics
from labelspace.experiment import timed
from labelspace.models.glas.model import Glas

UNREGULARIZED: dict[str, Any] = {"regularizer": "none", "input_dropout": 0.0, "dropout": 0.0}
MARGIN: dict[str, Any] = {"loss": "margin", "reg_weight": 10.0, "dropout": 0.0}  # a loss per document, not per label
ROWS: dict[str, Sequence[Any]] = {
    "regularizer": ("none", "spread_out", "gravity"),
    "reg_weight": (100.0, 10_000.0),
    "similarity": ("geometric", "jaccard", "pmi"),
    "input_dropout": (0.0, 0.1, 0.2, 0.4),
    "dropout": (0.0,),
    "batch_size": (128, 1024),
    "embedding_dim": (256, 1024),
    "activation": ("linear",),
    "weight_norm": (True,),
    "n_layers": (2,),
    "loss": ("softmax",),
    "learn_scale": (False,),
}
METRICS = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")
TRAIN_SAMPLE = 5000


def variants(base: dict[str, Any], only: list[str]) -> Iterator[dict[str, Any]]:
    """The base, the base without regularizer and dropout, and the base with one parameter changed."""
    yield {}
    yield UNREGULARIZED
    for key, values in ROWS.items():
        if not only or key in only:
            yield from ({key: value} for value in values if value != base.get(key))
    if (not only or "loss" in only) and base.get("loss") != "margin":
        yield MARGIN


def measure(train: Split, unseen: Split, settings: dict[str, Any]) -> dict[str, float]:
    """Metrics on the unseen documents, the gap and the CPU time."""
    (X, Y), (V, W) = train, unseen
    model = make("glas", settings)
    with timed() as taken:
        model.fit(X, Y)
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    on_unseen = metrics.evaluate(W, model.predict_topk(V, 5), counts, X.shape[0])
    sample = np.random.default_rng(0).permutation(X.shape[0])[:TRAIN_SAMPLE]
    on_train = metrics.evaluate(Y[sample], model.predict_topk(X[sample], 5), counts, X.shape[0])
    return {
        **{key: on_unseen[key] for key in METRICS},
        "train P@1": on_train["P@1"],
        "gap": on_train["P@1"] - on_unseen["P@1"],
        "CPU s": taken.cpu,
    }


def main() -> None:
    """Measure every variant on every data set; print a Markdown table for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds; the table shows means")
    add_base_arguments(parser)
    parser.add_argument("--only", default="", help="parameters to vary, separated by commas; default: all")
    parser.add_argument("--split", choices=("validation", "test"), default="validation")
    args = parser.parse_args()
    base = base_settings(args)
    values = make("glas", base).get_params()
    for path in args.data:
        train, unseen = read(path, args.split, Glas.view.params)
        measure((train[0][:200], train[1][:200]), unseen, {**base, "epochs": 1})  # compiles the kernels
        print(f"\n{path}, {args.split}: {train[0].shape[0]} documents, {unseen[0].shape[0]} unseen, base {base}\n")
        for number, changed in enumerate(variants(values, [key for key in args.only.split(",") if key])):
            runs = [measure(train, unseen, {**base, **changed, "random_state": seed}) for seed in range(args.seeds)]
            means = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
            if number == 0:
                print("| changed |", " | ".join(means), "|\n|---|" + "---|" * len(means))
            name = ", ".join(f"{key}={value}" for key, value in changed.items()) or "base"
            print(f"| {name} |", " | ".join(f"{value:.2f}" for value in means.values()), "|", flush=True)


if __name__ == "__main__":
    main()
