"""What draws points together by their distance: documents to their labels, and documents to documents like them."""

from __future__ import annotations

import numpy as np

from labelspace.features.normalize import normalize_rows
from labelspace.kernels.threads import run_blocks
from labelspace.models.poincare.geometry import Rows, Space
from labelspace.training.losses import pairwise_softmax_gradient
from labelspace.training.negative_sampling import SampledLabels
from labelspace.types import Csr, Floats

ROW_BLOCK = 64  # documents a task
PULL = 4.0  # what distances between documents are multiplied by: the alpha of their softmax
LEAST_SUM = np.float32(1e-30)  # so that one may divide by it


def label_gradients(
    space: Space, lifted: Floats, points: Floats, chosen: SampledLabels, alpha: float
) -> tuple[Rows, Rows]:
    """Of each label of a document against those it does not have, cross-entropy of exp(-alpha d).

    The gradients of the mean loss by the documents' lifted rows, and by the labels' points.
    """
    partners = space.flip(space.lift(points))
    by_lifted = np.empty_like(lifted)
    by_partners = np.empty((-(-len(lifted) // ROW_BLOCK), *partners.shape), np.float32)

    def turn(start: int, stop: int) -> None:
        rows = lifted[start:stop]
        errors = rows @ partners.T
        slopes = space.distances(errors)
        errors *= np.float32(-alpha)
        pairwise_softmax_gradient(errors, chosen.columns, chosen.ends, start, chosen.weights)
        errors *= slopes
        errors *= np.float32(-alpha / len(lifted))
        np.matmul(errors, partners, out=by_lifted[start:stop])
        np.matmul(errors.T, rows, out=by_partners[start // ROW_BLOCK])

    run_blocks(turn, len(lifted), ROW_BLOCK)
    return by_lifted, space.back(points, space.flip(by_partners.sum(axis=0)))  # summed in one order


def similarity_gradient(space: Space, lifted: Floats, true: Csr, strength: float) -> Floats:
    """Of each document against the others of a batch, cross-entropy between the softmax of -d and their likeness.

    The gradient of the mean loss, times its strength, by the documents' lifted rows.

    The target of a document is shared out among the others by the cosine of their label sets; one that shares no label
    with any other has no part in it.
    """
    unit = normalize_rows(true)
    target = (unit @ unit.T).toarray()
    np.fill_diagonal(target, 0.0)
    total = target.sum(axis=1, keepdims=True)
    partners = space.flip(lifted)
    scores = lifted @ partners.T
    slopes = space.distances(scores)
    scores *= np.float32(-PULL)
    np.fill_diagonal(scores, -np.inf)
    scores -= scores.max(axis=1, keepdims=True) if len(scores) > 1 else 0
    errors = np.exp(scores)
    errors /= np.maximum(errors.sum(axis=1, keepdims=True), LEAST_SUM)
    errors -= target / np.maximum(total, LEAST_SUM)
    errors *= (total > 0) * np.float32(-PULL * strength / len(lifted))
    errors *= slopes
    np.fill_diagonal(errors, 0.0)
    gradient: Floats = errors @ partners + space.flip(errors.T @ lifted)
    return gradient
