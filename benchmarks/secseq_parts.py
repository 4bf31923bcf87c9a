"""What each part of SeCSeq gives: one setting changed at a time.

    python benchmarks/secseq_parts.py DATA [--seeds 3] [--only NAME ...] [--set key=value ...]

On documents that were not trained on: ``dev.*`` (2,000 of them), or else a fifth of train. Columns besides accuracy:
parameters in millions, those of the network (all but the vectors of words or features), labels that share a code in the
first tree, CPU seconds of the training, and milliseconds of CPU time a document in batches, from its text where it has
one.
"""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
from parts import arguments, table, timed

from labelspace import metrics
from labelspace.models.registry import create
from labelspace.models.secseq.objectives import PrefixObjective
from labelspace.tagger import Tagger
from labelspace.types import Dataset

MEASURED = 2000  # documents
HEADS = ["P@1", "P@3", "P@5", "nDCG@5", "PSP@5", "parameters, M", "of the network, M", "shared codes", "CPU s", "ms"]
DIGITS = (2,) * 7 + (0, 1, 2)
ROWS: dict[str, dict[str, Any]] = {
    "all of it": {},
    "2 trees": {"trees": 2},
    "4 trees": {"trees": 4},
    "projection, ordinal (the paper's)": {"scheme": "projection"},
    "projection, uniform (the paper's)": {"scheme": "projection", "quantizer": "uniform"},
    "tree, ordinal": {"scheme": "tree"},
    "tree, uniform": {"scheme": "tree", "quantizer": "uniform"},
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
    begin = PrefixObjective.begin if settings.pop("frequencies", True) else lambda lesson, writer: None
    tagger = Tagger(create(settings.pop("method", "secseq"), **settings))
    with patch.object(PrefixObjective, "begin", begin):
        top, taken, spent = timed(tagger, train, unseen)
    counts = np.bincount(train.Y.indices, minlength=train.Y.shape[1])
    figures = metrics.evaluate(unseen.Y, top, counts, len(train))
    told = tagger.model.report()
    sizes = [told["parameters"] / 1e6, told["network_parameters"] / 1e6, told["codes"][0]["collisions"]]
    return [
        *(figures[key] for key in ("P@1", "P@3", "P@5", "nDCG@5", "PSP@5")),
        *sizes,
        taken,
        spent,
    ]


def main() -> None:
    """Print one Markdown table."""
    table(arguments(__doc__), ROWS, HEADS, DIGITS, measure, MEASURED)


if __name__ == "__main__":
    main()
