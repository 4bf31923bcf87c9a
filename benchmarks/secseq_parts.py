"""Ablations of SeCSeq: one parameter changed at a time.

    python benchmarks/secseq_parts.py DATA [--seeds 3] [--only NAME ...] [--preset NAME] [--set key=value ...]

On documents that were not trained on: ``dev.*`` (2,000 of them), or else a fifth of train. Columns besides accuracy:
parameters in millions, those of the network (all but the embeddings of words or features), labels that share a code in
the first tree, CPU seconds of the training, and CPU milliseconds per document in batches, from its text where it has
one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from parts import arguments, make, table, timed

from labelspace import metrics
from labelspace.tagger import Tagger
from labelspace.types import Dataset

MEASURED = 2000  # documents
HEADS = ["P@1", "P@3", "P@5", "nDCG@5", "PSP@5", "parameters, M", "of the network, M", "shared codes", "CPU s", "ms"]
DIGITS = (2,) * 7 + (0, 1, 2)
ROWS: dict[str, dict[str, Any]] = {
    "base": {},
    "as published": {"preset": "paper"},
    "2 trees": {"n_estimators": 2},
    "4 trees": {"n_estimators": 4},
    "projection, ordinal (the paper's)": {"coding": "projection"},
    "projection, uniform (the paper's)": {"coding": "projection", "quantizer": "uniform"},
    "tree, ordinal": {"coding": "tree"},
    "tree, uniform": {"coding": "tree", "quantizer": "uniform"},
    "4 trees, projection, ordinal": {"n_estimators": 4, "coding": "projection"},
    "4 trees, tree, ordinal": {"n_estimators": 4, "coding": "tree"},
    "label vectors of walks": {"label_vectors": "walks"},
    "label vectors of texts": {"label_vectors": "text"},
    "label vectors of sentences": {"label_vectors": "sentences"},
    "K=16, D=4": {"code_size": 16, "code_length": 4},
    "K=32, D=3": {"code_size": 32},
    "K=64, D=3": {"code_size": 64},
    "K=256, D=2": {"code_size": 256, "code_length": 2},
    "K=512, D=2": {"code_size": 512, "code_length": 2},
    "K=32, D=2: shared codes": {"code_size": 32, "code_length": 2},
    "K=16, D=2: shared codes": {"code_size": 16, "code_length": 2},
    "hidden 256": {"hidden_dim": 256},
    "hidden 1024": {"hidden_dim": 1024},
    "one label (target=label)": {"target": "label"},
    "sequences (target=sequence)": {"target": "sequence", "beam_size": 8},
    "sequences, rare first": {"target": "sequence", "beam_size": 8, "label_order": "rare"},
    "sequences, random order": {"target": "sequence", "beam_size": 8, "label_order": "random"},
    "sequences, 50 samples": {"target": "sequence", "decoding": "sampling", "n_samples": 50},
    "beam 8": {"beam_size": 8},
    "100 samples": {"decoding": "sampling"},
    "biases start at 0": {"init_biases": False},
    "gru": {"encoder": "gru"},
    "convolution": {"encoder": "convolution"},
    "gru, sequences": {"encoder": "gru", "target": "sequence", "beam_size": 8},
    "mlc2seq": {"method": "mlc2seq"},
    "mlc2seq, gru": {"method": "mlc2seq", "encoder": "gru"},
    "mlc2seq, as published": {"method": "mlc2seq", "preset": "paper"},
    "mlc2seq, target=set": {"method": "mlc2seq", "target": "set"},
}


def measure(train: Dataset, unseen: Dataset, settings: dict[str, Any]) -> list[float]:
    """P@1, P@3, P@5, nDCG@5, PSP@5, parameters, those of the network, shared codes, CPU seconds, ms per document."""
    tagger = Tagger(make(settings.pop("method", "secseq"), settings))
    top, taken, spent = timed(tagger, train, unseen)
    counts = np.bincount(train.Y.indices, minlength=train.Y.shape[1])
    figures = metrics.evaluate(unseen.Y, top, counts, len(train))
    report = tagger.model.report()
    sizes = [report["parameters"] / 1e6, report["network_parameters"] / 1e6, report["codes"][0]["collisions"]]
    return [*(figures[key] for key in HEADS[:5]), *sizes, taken, spent]


def main() -> None:
    """Print one Markdown table."""
    table(arguments(__doc__), ROWS, HEADS, DIGITS, measure, MEASURED)


if __name__ == "__main__":
    main()
