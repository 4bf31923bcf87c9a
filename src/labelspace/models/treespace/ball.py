"""Documents in the Poincaré ball: tangent vectors at the origin, whose norm is bounded, and the gradient of that."""

import numpy as np

from labelspace.models.treespace.kernels import EPSILON, MAX_NORM
from labelspace.models.treespace.layout import LevelLayout
from labelspace.types import Floats


def bound_norms(layout: LevelLayout, documents: Floats, ball: bool) -> tuple[Floats, Floats]:
    """The vectors of documents with norms RADIUS tanh(norm / RADIUS), and these norms (n, levels).

    Without ``ball``, the documents as they are and ones.
    """
    norms = np.ones((len(documents), layout.levels), np.float32)
    if not ball:
        return documents, norms
    documents = documents.copy()
    for level, part in enumerate(layout.level_slices()):
        raw_norms = np.linalg.norm(documents[:, part], axis=1) + EPSILON
        norms[:, level] = MAX_NORM * np.tanh(raw_norms / MAX_NORM)
        documents[:, part] *= (norms[:, level] / raw_norms)[:, None]
    return documents, norms


def bound_norms_backward(
    layout: LevelLayout, raw: Floats, bounded: Floats, norms: Floats, by_bounded: Floats, by_norms: Floats
) -> Floats:
    """The gradient by the input ``raw`` of ``bound_norms`` in the ball, given those by its two outputs."""
    out = np.empty_like(raw)
    for level, part in enumerate(layout.level_slices()):
        norm = norms[:, level : level + 1]
        unit, raw_norm = bounded[:, part] / norm, np.linalg.norm(raw[:, part], axis=1)[:, None] + EPSILON
        gradient = by_bounded[:, part]
        radial = np.einsum("ij,ij->i", gradient, unit)[:, None]
        slope = 1 - (norm / MAX_NORM) ** 2  # of MAX_NORM tanh(norm / MAX_NORM)
        tangential = (gradient - radial * unit) * (norm / raw_norm)
        out[:, part] = tangential + unit * slope * (radial + by_norms[:, level : level + 1])
    return out
