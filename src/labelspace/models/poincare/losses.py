"""Gradients of the losses on distances: the softmax over labels or over documents, and the similarity of documents."""

import numpy as np
import scipy.sparse as sp

from labelspace.features.normalize import normalize_rows
from labelspace.kernels.threads import run_blocks
from labelspace.models.poincare.geometry import Array, Manifold
from labelspace.models.poincare.pairs import SampledPairs
from labelspace.training.losses import SampledLabels, pairwise_softmax_gradient
from labelspace.types import Csr, Floats

ROW_BLOCK = 64  # documents per task
SIMILARITY_ALPHA = 4.0  # alpha of the softmax of distances between documents
MIN_SUM = np.float32(1e-30)  # avoids a division by 0


def label_loss_gradients(
    manifold: Manifold, lifted: Floats, points: Floats, sampled: SampledLabels, alpha: float
) -> tuple[Array, Array]:
    """Cross-entropy of exp(-alpha d) between each label of a document and the labels it does not have.

    Returns the gradients of the mean loss by the lifted documents, and by the label points.
    """
    duals = manifold.dual(manifold.lift(points))
    by_lifted = np.empty_like(lifted)
    by_duals = np.empty((-(-len(lifted) // ROW_BLOCK), *duals.shape), np.float32)

    def block_gradients(start: int, stop: int) -> None:
        rows = lifted[start:stop]
        errors = rows @ duals.T
        derivatives = manifold.distances_inplace(errors)
        errors *= np.float32(-alpha)
        pairwise_softmax_gradient(errors, sampled.columns, sampled.indptr, start, sampled.weights)
        errors *= derivatives
        errors *= np.float32(-alpha / len(lifted))
        np.matmul(errors, duals, out=by_lifted[start:stop])
        np.matmul(errors.T, rows, out=by_duals[start // ROW_BLOCK])

    run_blocks(block_gradients, len(lifted), ROW_BLOCK)
    # Summed in one order, whatever the number of threads.
    return by_lifted, manifold.lift_backward(points, manifold.dual(by_duals.sum(axis=0)))


def pair_loss_gradients(
    manifold: Manifold, lifted: Floats, lifted_targets: Floats, pairs: SampledPairs, alpha: float
) -> tuple[Array, Array]:
    """The same loss with the negatives of each document: its targets, labels or documents, are given as lifted rows.

    Returns the gradients of the mean loss by the lifted documents, and by the lifted targets.
    """
    duals = manifold.dual(lifted_targets)
    z = np.einsum("ij,ij->i", lifted[pairs.documents], duals[pairs.targets])
    derivatives = manifold.distances_inplace(z)
    scores = np.full((len(lifted), pairs.width), -np.inf, np.float32)
    scores[pairs.documents, pairs.columns] = np.float32(-alpha) * z
    pairwise_softmax_gradient(scores, pairs.columns[: pairs.indptr[-1]], pairs.indptr, 0, None)
    errors = scores[pairs.documents, pairs.columns] * derivatives * np.float32(-alpha / len(lifted))
    table = sp.csr_matrix((errors, (pairs.documents, pairs.targets)), shape=(len(lifted), len(duals)))
    return table @ duals, manifold.dual(table.T @ lifted)


def similarity_loss_gradient(manifold: Manifold, lifted: Floats, true: Csr, weight: float) -> Floats:
    """Cross-entropy between the softmax of -d over the other documents of a batch and their label similarities.

    Returns the gradient of the mean loss, times its weight, by the lifted documents. The targets of a document are the
    cosines of its label set with those of the others, normalized to sum to 1; one that shares no label has no loss.
    """
    unit = normalize_rows(true)
    target = (unit @ unit.T).toarray()
    np.fill_diagonal(target, 0.0)
    total = target.sum(axis=1, keepdims=True)
    duals = manifold.dual(lifted)
    scores = lifted @ duals.T
    derivatives = manifold.distances_inplace(scores)
    scores *= np.float32(-SIMILARITY_ALPHA)
    np.fill_diagonal(scores, -np.inf)
    scores -= scores.max(axis=1, keepdims=True) if len(scores) > 1 else 0
    errors = np.exp(scores)
    errors /= np.maximum(errors.sum(axis=1, keepdims=True), MIN_SUM)
    errors -= target / np.maximum(total, MIN_SUM)
    errors *= (total > 0) * np.float32(-SIMILARITY_ALPHA * weight / len(lifted))
    errors *= derivatives
    np.fill_diagonal(errors, 0.0)
    gradient: Floats = errors @ duals + manifold.dual(errors.T @ lifted)
    return gradient
