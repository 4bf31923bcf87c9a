"""Gradients of the losses on distances, by a softmax over labels or documents and by similarity; pairs to compare."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from labelspace.features.normalize import normalize_rows
from labelspace.kernels.threads import run_blocks
from labelspace.models.poincare.geometry import Array, Manifold
from labelspace.training.losses import SampledLabels, pairwise_softmax_gradient
from labelspace.types import Csr, Floats, Ints, Longs, Rng

ROW_BLOCK = 64  # documents per task
SIMILARITY_ALPHA = 4.0  # alpha of the softmax of distances between documents: larger, only the nearest count
MIN_SUM = np.float32(1e-30)  # avoids a division by 0


def label_loss_gradients(
    manifold: Manifold, lifted: Floats, points: Floats, sampled: SampledLabels, alpha: float
) -> tuple[Array, Array]:
    """Return the gradients of the mean loss by the lifted documents, and by the label points.

    The loss is cross-entropy of exp(-alpha d) between each label of a document and the labels it does not have.
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
    """Return the gradients of the mean loss by the lifted documents, and by the lifted targets.

    The loss is that of ``label_loss_gradients``, with the negatives of each document. Targets are labels or documents.
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
    """Return the gradient of the mean loss, times its weight, by the lifted documents.

    The loss is cross-entropy between the softmax of -d over the other documents of a batch and the targets. The targets
    of a document are the cosines of its label set with the label sets of the others, normalized to sum to 1. A document
    that shares no label with another has no loss.
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
    return np.asarray(errors @ duals + manifold.dual(errors.T @ lifted))


@dataclass(frozen=True)
class SampledPairs:
    """Pairs of a document and a target, a label or another document: first all positives, row by row, then negatives.

    Their scores fit a table with a row per document, whose first columns are its positives and whose last
    ``n_negatives`` are its negatives; between them, rows with fewer positives than others are empty.
    """

    ids: Ints  # (n,) the targets of the batch, each once, sorted
    documents: Ints  # (pairs,) rows of the batch
    targets: Ints  # (pairs,) positions in ``ids``
    columns: Ints  # (pairs,) of the table; the first indptr[-1] are those of positives
    indptr: Ints  # (batch + 1,) the positives of each document
    width: int  # of the table
    covers_all = False  # as in ``SampledLabels``: these are not all targets, in their order


def sample_pairs(true: Csr, excluded: Csr, n_negatives: int, rng: Rng) -> SampledPairs:
    """Return the positives ``true`` of each document, and ``n_negatives`` drawn for it uniformly, with replacement.

    The columns of both matrices are the targets. No column in a document's row of ``excluded`` is drawn; a document
    with all of them has no negative.
    """
    n, counts = true.shape[0], np.diff(true.indptr)
    negatives = draw_outside(excluded, n_negatives, rng)
    drawn = np.flatnonzero(np.diff(excluded.indptr) < excluded.shape[1]).astype(np.int32)  # documents with negatives
    most = int(counts.max(initial=0))
    ids, targets = np.unique(np.concatenate([true.indices, negatives[drawn].ravel()]), return_inverse=True)
    positive_columns = np.arange(len(true.indices)) - np.repeat(true.indptr[:-1], counts)
    negative_columns = np.tile(np.arange(most, most + n_negatives), len(drawn))
    return SampledPairs(
        ids.astype(np.int32),
        np.concatenate([np.repeat(np.arange(n, dtype=np.int32), counts), np.repeat(drawn, n_negatives)]),
        targets.astype(np.int32),
        np.concatenate([positive_columns, negative_columns]).astype(np.int32),
        true.indptr,
        most + n_negatives,
    )


def draw_outside(excluded: Csr, n_draws: int, rng: Rng) -> Longs:
    """Draw columns for each row, uniformly with replacement, among those the row does not have. Shape (n, n_draws).

    The m-th column that a row lacks is m + i, where i of its own columns are below it: those with c_i - i <= m for
    its i-th column c_i. One search finds i for all rows, since rows can be laid out one after another. A row with all
    columns gets the number of columns, which is none of them.

    >>> import scipy.sparse as sp
    >>> has = sp.csr_matrix(np.array([[1, 0, 1, 1], [1, 1, 1, 1]]))
    >>> draw_outside(has, 3, np.random.default_rng(0)).tolist()
    [[1, 1, 1], [4, 4, 4]]
    """
    n, n_columns = excluded.shape
    counts = np.diff(excluded.indptr).astype(np.int64)
    ranks = (rng.random((n, n_draws)) * (n_columns - counts)[:, None]).astype(np.int64)
    starts = np.arange(n, dtype=np.int64)[:, None] * (n_columns + 1)
    order = np.arange(len(excluded.indices)) - np.repeat(excluded.indptr[:-1], counts)
    gaps = excluded.indices - order + np.repeat(starts[:, 0], counts)  # sorted, as the columns of each row are
    below = np.searchsorted(gaps, ranks + starts, side="right") - excluded.indptr[:-1, None]
    return np.asarray(ranks + below, np.int64)
