"""What each part of SeCSeq gives: one setting changed at a time.

    python benchmarks/secseq_parts.py DATA [--seeds 3] [--only NAME ...] [--set key=value ...]

On documents that were not trained on: ``dev.*`` (2,000 of them), or else a fifth of train. Columns besides accuracy:
parameters in millions, those of the network (all but the vectors of words or features), labels that share a code in the
first tree, CPU seconds of the training, and milliseconds of CPU time a document in batches, from its text where it has
one.
"""

from __future__ import annotations

import argparse
import time
from typing import Any
from unittest.mock import patch

import numpy as np

from labelspace import metrics
from labelspace.data.source import open_source
from labelspace.data.splits import hold_out
from labelspace.models.registry import create
from labelspace.options import parse_settings
from labelspace.tagger import Tagger
from labelspace.training.lessons import PrefixLesson
from labelspace.types import Dataset

MEASURED = 2000  # documents
ROWS: dict[str, dict[str, Any]] = {
    "all of it": {},
    "2 trees": {"trees": 2},
    "4 trees": {"trees": 4},
    "projection, ordinal (the paper's)": {"scheme": "projection"},
    "projection, uniform (the paper's)": {"scheme": "projection", "quantiser": "uniform"},
    "tree, ordinal": {"scheme": "tree"},
    "tree, uniform": {"scheme": "tree", "quantiser": "uniform"},
    "4 trees, projection, ordinal": {"trees": 4, "scheme": "projection"},
    "4 trees, tree, ordinal": {"trees": 4, "scheme": "tree"},
    "vectors from walks": {"vectors": "walks"},
    "vectors from label texts": {"vectors": "text"},
    "vectors from sentences": {"vectors": "sentences"},
    "K=16, D=4": {"width": 16, "digits": 4},
    "K=32, D=3": {"width": 32},
    "K=64, D=3": {"width": 64},
    "K=256, D=2": {"width": 256, "digits": 2},
    "K=512, D=2": {"width": 512, "digits": 2},
    "K=32, D=2: shared codes": {"width": 32, "digits": 2},
    "K=16, D=2: shared codes": {"width": 16, "digits": 2},
    "hidden 256": {"hidden": 256},
    "hidden 1024": {"hidden": 1024},
    "one label drawn (target=label)": {"target": "label"},
    "sequences (target=sequence)": {"target": "sequence", "beam": 8},
    "sequences, rare first": {"target": "sequence", "beam": 8, "order": "rare"},
    "sequences, random order": {"target": "sequence", "beam": 8, "order": "random"},
    "sequences, 50 draws": {"target": "sequence", "decoding": "sampling", "samples": 50},
    "beam 8": {"beam": 8},
    "100 draws": {"decoding": "sampling"},
    "digits begin at 0": {"frequencies": False},
    "gru": {"encoder": "gru"},
    "convolution": {"encoder": "convolution"},
    "gru, sequences": {"encoder": "gru", "target": "sequence", "beam": 8},
    "mlc2seq": {"method": "mlc2seq"},
    "mlc2seq, gru": {"method": "mlc2seq", "encoder": "gru"},
    "mlc2seq, target=set": {"method": "mlc2seq", "target": "set"},
}


def measure(train: Dataset, unseen: Dataset, settings: dict[str, Any]) -> list[float]:
    """P@1, P@3, P@5, nDCG@5, PSP@5, parameters, those of the network, shared codes, CPU seconds, ms a document."""
    begin = PrefixLesson.begin if settings.pop("frequencies", True) else lambda lesson, writer: None
    tagger = Tagger(create(settings.pop("method", "secseq"), **settings))
    before = time.process_time()
    with patch.object(PrefixLesson, "begin", begin):
        tagger.fit_dataset(train)
    taken = time.process_time() - before
    tagger.predict_topk(unseen.rows([0]).inputs, 5)  # compiles, and makes ready
    before = time.process_time()
    top = tagger.predict_topk(unseen.inputs, 5)
    spent = time.process_time() - before
    counts = np.bincount(train.Y.indices, minlength=train.Y.shape[1])
    figures = metrics.evaluate(unseen.Y, top, counts, len(train))
    told = tagger.model.report()
    sizes = [told["parameters"] / 1e6, told["network_parameters"] / 1e6, told["codes"][0]["collisions"]]
    return [
        *(figures[key] for key in ("P@1", "P@3", "P@5", "nDCG@5", "PSP@5")),
        *sizes,
        taken,
        1e3 * spent / len(unseen),
    ]


def main() -> None:
    """Print one Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--seeds", type=int, default=1, help="how many; figures are their means")
    parser.add_argument("--only", nargs="*", default=[], help="names of rows")
    parser.add_argument("--set", dest="settings", action="append", default=[], help="as key=value, for all rows")
    args = parser.parse_args()
    source = open_source(args.data)
    train = source.train()
    unseen = source.dev(train.labels)
    if unseen is None:
        train, unseen = hold_out(train, 0.2, seed=0)
    some = unseen.rows(np.sort(np.random.default_rng(0).permutation(len(unseen))[:MEASURED]))
    print(f"{len(train)} documents to train on, {len(some)} to measure on")
    heads = "P@1 | P@3 | P@5 | nDCG@5 | PSP@5 | parameters, M | of the network, M | shared codes | CPU s | ms"
    print(f"| | {heads} |\n|---|{'---|' * 10}")
    for name, changed in ROWS.items():
        if args.only and name not in args.only:
            continue
        settings = {**parse_settings(args.settings), **changed}
        runs = [measure(train, some, {**settings, "seed": seed}) for seed in range(args.seeds)]
        told = np.mean(runs, axis=0)
        cells = [f"{value:.2f}" for value in told[:7]] + [f"{told[7]:.0f}", f"{told[8]:.1f}", f"{told[9]:.2f}"]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
