"""Ablation of the tree-embedded label space: one parameter of one learner changed at a time.

    python benchmarks/treespace_parts.py DATA [--seeds 3] [--only NAME ...] [--preset NAME] [--set key=value ...]

On documents that were not trained on: ``dev.*``, or else a fifth of train (a twentieth of more than 50,000 documents).
Accuracy by level is of the best label of the level; "deepest" of that on the level of a document's deepest label. The
last columns: top-5 predictions that are consistent with the hierarchy, CPU seconds of the training, megabytes of the
node embeddings at one byte per coordinate, CPU milliseconds per document in batches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from parts import arguments, make, table, timed

from labelspace import metrics
from labelspace.models.treespace import Treespace
from labelspace.tagger import Tagger
from labelspace.types import Dataset

K = 100  # for the figures by level
LEVELS = 3  # in the table
HEADS = ["P@1", "P@5", "nDCG@5", "PSP@5", "L0", "L1", "L2", "deepest", "consistent", "CPU s", "embeddings, MB", "ms"]
DIGITS = (2,) * 8 + (1, 1, 1, 2)
ROWS: dict[str, dict[str, Any]] = {
    "label_tree": {"method": "label_tree", "preset": None},
    "label_tree on the hierarchy": {"method": "label_tree", "preset": None, "tree": "hierarchy"},
    "treespace": {},
    "one learner": {"n_estimators": 1},
    "dimensions 256 on every level": {"n_estimators": 1, "root_dim": 256},
    "dimensions 128 on every level": {"n_estimators": 1, "root_dim": 128, "embedding_dim": 128},
    "dimensions 64 on every level": {"n_estimators": 1, "root_dim": 64, "embedding_dim": 64},
    "dimensions 16 to 256": {"n_estimators": 1, "root_dim": 16},
    "dimensions shrink, 256 to 64": {"n_estimators": 1, "root_dim": 256, "embedding_dim": 64},
    "consistency 0.001": {"n_estimators": 1, "consistency_weight": 0.001},
    "consistency 0.01": {"n_estimators": 1, "consistency_weight": 0.01},
    "consistency 0.1": {"n_estimators": 1, "consistency_weight": 0.1},
    "consistency 0.01, rank 4": {"n_estimators": 1, "consistency_weight": 0.01, "projection_rank": 4},
    "decay 0.01": {"n_estimators": 1, "weight_decay": 0.01},
    "each level counts half": {"n_estimators": 1, "level_weight": 0.5},
    "each level counts double": {"n_estimators": 1, "level_weight": 2.0},
    "the Poincaré ball": {"n_estimators": 1, "space": "poincare"},
    "hierarchy learned": {"n_estimators": 1, "hierarchy": "learned"},
    "names not read": {"n_estimators": 1, "label_text": 0.0},
    "names count as documents": {"n_estimators": 1, "label_text": 1.0},
    "rare labels first, 0.02": {"n_estimators": 1, "rare_boost": 0.02},
    "beam 5": {"n_estimators": 1, "beam_size": 5},
}


def measure(train: Dataset, unseen: Dataset, settings: dict[str, Any]) -> list[float]:
    """The figures of one row."""
    tagger = Tagger(make(settings.pop("method", "treespace"), settings))
    top, train_seconds, milliseconds = timed(tagger, train, unseen)
    deep = tagger.predict_topk(unseen.inputs, K)
    counts, hierarchy = tagger.labels_.counts, unseen.labels.hierarchy
    if hierarchy is None or counts is None:
        raise SystemExit("the data must have a hierarchy, but have none; put a hierarchy.tsv beside them")
    figures = metrics.evaluate(unseen.Y, top, counts, len(train))
    levels = metrics.best_by_level(unseen.Y, deep, hierarchy, counts)
    megabytes = np.nan
    if isinstance(tagger.model, Treespace):
        megabytes = sum(net.node_embeddings.nbytes for net in tagger.model.estimators_) / 1e6
    return [
        *(figures[key] for key in ("P@1", "P@5", "nDCG@5", "PSP@5")),
        *(100 * levels[level]["accuracy"] for level in list(levels)[:LEVELS]),
        100 * metrics.deepest_accuracy(unseen.Y, deep, hierarchy),
        100 * metrics.consistent_at_k(top, hierarchy, 5),
        train_seconds,
        megabytes,
        milliseconds,
    ]


def main() -> None:
    """Print one Markdown table."""
    table(arguments(__doc__), ROWS, HEADS, DIGITS, measure)


if __name__ == "__main__":
    main()
