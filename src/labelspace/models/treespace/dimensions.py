"""The effective dimension of each level: how many coordinates its nodes use, and the penalty that makes it smaller.

The penalty is a group lasso. A group is one coordinate of all nodes of a level, so that a coordinate is used by the
level, or 0 for all of its nodes: the penalty is the sum over levels and coordinates of the norm of a group.
"""

import numpy as np

from labelspace.models.treespace.layout import LevelLayout
from labelspace.types import Floats

USED = 0.01  # a coordinate is used if its norm is above this share of the largest of its level


def shrink_dimensions(layout: LevelLayout, embeddings: Floats, threshold: float) -> None:
    """The proximal step of ``threshold`` times the penalty, in place: each group gets shorter by that, down to 0."""
    for vectors in layout.level_matrices(embeddings):
        norms = np.maximum(np.linalg.norm(vectors, axis=0), np.float32(threshold))
        vectors *= 1 - np.float32(threshold) / norms


def effective_dimensions(layout: LevelLayout, embeddings: Floats) -> list[int]:
    """The number of coordinates that each level uses."""
    norms = [np.linalg.norm(vectors, axis=0) for vectors in layout.level_matrices(embeddings)]
    return [int((norm > USED * norm.max()).sum()) for norm in norms]
