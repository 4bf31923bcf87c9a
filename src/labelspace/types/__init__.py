"""Shared data types: Dataset (with Columns, Fields), LabelSpace (with Hierarchy), TopK."""

from numpy.random import Generator as Rng

from labelspace.types.arrays import Bools, Csr, Doubles, Floats, Ints, Longs, OverallProgress, Progress, no_progress
from labelspace.types.concept import NO_CONCEPT, Concept
from labelspace.types.dataset import Columns, Dataset, Fields, plain_layout
from labelspace.types.hierarchy import Hierarchy, check_ancestors, rows_of
from labelspace.types.label_space import PATH_SEPARATOR, LabelSpace, LabelTexts, prefixes
from labelspace.types.side_columns import SideColumns, TextWithValues
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
    "SideColumns",
    "TextWithValues",
    "TopK",
    "check_ancestors",
    "no_progress",
    "plain_layout",
    "prefixes",
    "rows_of",
]
