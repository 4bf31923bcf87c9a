"""The straight line: data -> train -> predict -> metrics -> numbers."""

from labelspace.experiment.compare import check_comparison, compare
from labelspace.experiment.cost_limits import Limits
from labelspace.experiment.evaluate import evaluate, megabytes
from labelspace.experiment.plan import Plan
from labelspace.experiment.timing import timed
from labelspace.experiment.train import Recipe, check_plannable, train
from labelspace.experiment.tune import check_search, tune

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
