"""The straight line: data -> train -> predict -> metrics -> numbers."""

from labelspace.experiment.compare import check_comparison, compare
from labelspace.experiment.evaluate import evaluate, megabytes
from labelspace.experiment.timing import timed
from labelspace.experiment.train import Recipe, train

__all__ = ["Recipe", "check_comparison", "compare", "evaluate", "megabytes", "timed", "train"]
