"""The straight line: data -> train -> predict -> metrics -> numbers."""

from labelspace.experiment.compare import compare
from labelspace.experiment.evaluate import evaluate, megabytes
from labelspace.experiment.timing import timed
from labelspace.experiment.train import Recipe, train

__all__ = ["Recipe", "compare", "evaluate", "megabytes", "timed", "train"]
