"""Metrics: (true labels Y, TopK) -> numbers. Functions give fractions; ``evaluate`` gives the table in percent.

- ``Y`` (n, n_labels): true labels, 0/1. ``topk``: predictions for the same documents, best first, with k ranks or more.
- ``predicted``: a 0/1 matrix of Y's shape, or a TopK whose top k (None: all ranks) are the predicted set.
- ``k``, ``ks``: cutoff ranks. ``A``, ``B``: exponent and offset of the propensities.
- ``counts``: training documents per label; labels of Y beyond them count as unseen. ``n_documents``: all of them.
- ``tail``: maximum number of training documents of a tail label. ``hierarchy``: over the columns of Y.
"""

from labelspace.metrics.bootstrap import SIGNIFICANT, compare_with_best, confidence_intervals, paired_difference
from labelspace.metrics.by_label import Confusions, LabelFigures, confusions, label_figures
from labelspace.metrics.calibration import ReliabilityBins, expected_calibration_error
from labelspace.metrics.changes import Changes, changes, mcnemar_test
from labelspace.metrics.evaluation import (
    DocumentValues,
    PropensityFrom,
    Unlabelled,
    evaluate,
    evaluate_baselines,
    most_common,
    per_document,
    random_topk,
)
from labelspace.metrics.f1 import macro_f1, micro_f1
from labelspace.metrics.filtered import labels_without, most_filtered, predictions_without
from labelspace.metrics.groups import by_frequency, by_group
from labelspace.metrics.hierarchy import (
    best_by_level,
    consistent_at_k,
    deepest_accuracy,
    f1_by_level,
    hierarchical_at_k,
)
from labelspace.metrics.propensity import PRESETS, inverse_propensity, psndcg_at_k, psp_at_k
from labelspace.metrics.ranking import coverage_at_k, ndcg_at_k, precision_at_k, r_precision_at_k, recall_at_k
from labelspace.metrics.thresholds import (
    PrecisionCoverage,
    ScoredPairs,
    best_macro_f1,
    best_micro_f1,
    expected_threshold,
    label_counts_at,
)

__all__ = [
    "PRESETS",
    "SIGNIFICANT",
    "Changes",
    "Confusions",
    "DocumentValues",
    "LabelFigures",
    "PrecisionCoverage",
    "PropensityFrom",
    "ReliabilityBins",
    "ScoredPairs",
    "Unlabelled",
    "best_by_level",
    "best_macro_f1",
    "best_micro_f1",
    "by_frequency",
    "by_group",
    "changes",
    "compare_with_best",
    "confidence_intervals",
    "confusions",
    "consistent_at_k",
    "coverage_at_k",
    "deepest_accuracy",
    "evaluate",
    "evaluate_baselines",
    "expected_calibration_error",
    "expected_threshold",
    "f1_by_level",
    "hierarchical_at_k",
    "inverse_propensity",
    "label_counts_at",
    "label_figures",
    "labels_without",
    "macro_f1",
    "mcnemar_test",
    "micro_f1",
    "most_common",
    "most_filtered",
    "ndcg_at_k",
    "paired_difference",
    "per_document",
    "precision_at_k",
    "predictions_without",
    "psndcg_at_k",
    "psp_at_k",
    "r_precision_at_k",
    "random_topk",
    "recall_at_k",
]
