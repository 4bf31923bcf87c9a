"""Shared data types: Dataset (with Columns, Fields), LabelSpace (with Hierarchy), TopK."""

from numpy.random import Generator as Rng

from labelspace.types.arrays import Bools, Csr, Doubles, Floats, Ints, Longs, OverallProgress, Progress, no_progress
from labelspace.types.concept import NO_CONCEPT, Concept
from labelspace.types.dataset import Columns, Dataset, Fields
from labelspace.types.hierarchy import Hierarchy, check_ancestors, rows_of
from labelspace.types.label_space import PATH_SEPARATOR, LabelSpace, LabelTexts, prefixes
from labelspace.types.topk import TopK

__all__ = [
    "NO_CONCEPT",
    "PATH_SEPARATOR",
    "Bools",
    "Columns",
    "Concept",
    "Csr",
    "Dataset",
    "Doubles",
    "Fields",
    "Floats",
    "Hierarchy",
    "Ints",
    "LabelSpace",
    "LabelTexts",
    "Longs",
    "OverallProgress",
    "Progress",
    "Rng",
    "TopK",
    "check_ancestors",
    "no_progress",
    "prefixes",
    "rows_of",
]
