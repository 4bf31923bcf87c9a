"""What each part of the tree-embedded label space gives: one setting of one learner changed at a time.

    python benchmarks/treespace_parts.py DATA [--seeds 3] [--only NAME ...] [--set key=value ...]

On documents that were not trained on: ``dev.*``, or else a fifth of train (a twentieth of more than 50,000 documents).
Accuracy by level is of the best label of the level; "deepest" of that on the level of a document's deepest label. The
last columns: answers of five labels that agree with the hierarchy, CPU seconds of the training, megabytes of the node
vectors at a byte a number, milliseconds of CPU time a document in batches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from parts import arguments, table, timed

from labelspace import metrics
from labelspace.models.registry import create
from labelspace.tagger import Tagger
from labelspace.types import Dataset

PLACES = 100  # for the figures by level
LEVELS = 3  # that are shown
HEADS = ["P@1", "P@5", "nDCG@5", "PSP@5", "L0", "L1", "L2", "deepest", "agree", "CPU s", "vectors, MB", "ms"]
DIGITS = (2,) * 8 + (1, 1, 1, 2)
ROWS: dict[str, dict[str, Any]] = {
    "label_tree": {"method": "label_tree"},
    "label_tree on the hierarchy": {"method": "label_tree", "tree": "hierarchy"},
    "treespace": {},
    "one learner": {"learners": 1},
    "dimensions 256 on every level": {"learners": 1, "root_dimension": 256},
    "dimensions 128 on every level": {"learners": 1, "root_dimension": 128, "dimension": 128},
    "dimensions 64 on every level": {"learners": 1, "root_dimension": 64, "dimension": 64},
    "dimensions 16 to 256": {"learners": 1, "root_dimension": 16},
    "dimensions shrink, 256 to 64": {"learners": 1, "root_dimension": 256, "dimension": 64},
    "consistency 0.001": {"learners": 1, "consistency": 0.001},
    "consistency 0.01": {"learners": 1, "consistency": 0.01},
    "consistency 0.1": {"learners": 1, "consistency": 0.1},
    "consistency 0.01, rank 4": {"learners": 1, "consistency": 0.01, "rank": 4},
    "decay 0.01": {"learners": 1, "decay": 0.01},
    "each level counts half": {"learners": 1, "level_weight": 0.5},
    "each level counts double": {"learners": 1, "level_weight": 2.0},
    "the Poincaré ball": {"learners": 1, "space": "poincare"},
    "hierarchy learned": {"learners": 1, "hierarchy": "learned"},
    "names not read": {"learners": 1, "label_text": 0.0},
    "names count as documents": {"learners": 1, "label_text": 1.0},
    "rare labels first, 0.02": {"learners": 1, "rare": 0.02},
    "beam 5": {"learners": 1, "beam": 5},
}


def measure(train: Dataset, unseen: Dataset, settings: dict[str, Any]) -> list[float]:
    """The figures of one row."""
    method = settings.pop("method", "treespace")
    tagger = Tagger(create(method, **settings))
    top, taken, spent = timed(tagger, train, unseen)
    deep = tagger.predict_topk(unseen.inputs, PLACES)
    counts, hierarchy = tagger.labels_.counts, unseen.labels.hierarchy
    if hierarchy is None or counts is None:
        raise SystemExit("the data must have a hierarchy, but have none; put a hierarchy.tsv beside them")
    figures = metrics.evaluate(unseen.Y, top, counts, len(train))
    levels = metrics.best_by_level(unseen.Y, deep, hierarchy, counts)
    vectors = getattr(tagger.model, "vectors_", np.zeros(0))
    return [
        *(figures[key] for key in ("P@1", "P@5", "nDCG@5", "PSP@5")),
        *(100 * levels[level]["accuracy"] for level in list(levels)[:LEVELS]),
        100 * metrics.deepest_accuracy(unseen.Y, deep, hierarchy),
        100 * metrics.consistent_at_k(top, hierarchy, 5),
        taken,
        vectors.nbytes / 1e6 if method == "treespace" else np.nan,
        spent,
    ]


def main() -> None:
    """Print one Markdown table."""
    table(arguments(__doc__), ROWS, HEADS, DIGITS, measure)


if __name__ == "__main__":
    main()
