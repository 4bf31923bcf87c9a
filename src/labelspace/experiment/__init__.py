"""Experiments: train, evaluate, compare, tune and reproduce, from data to figures."""

from labelspace.experiment.comparison.compare import check_comparison, compare
from labelspace.experiment.evaluate import evaluate, megabytes
from labelspace.experiment.plan import Limits, Plan
from labelspace.experiment.timing import timed
from labelspace.experiment.train import Recipe, check_plannable, train
from labelspace.experiment.tuning.tune import check_search, tune

__all__ = [
    "Limits",
    "Plan",
    "Recipe",
    "check_comparison",
    "check_plannable",
    "check_search",
    "compare",
    "evaluate",
    "megabytes",
    "timed",
    "train",
    "tune",
]
