"""The gradients of a batch: of the classification loss by the scores, and of the regularizers by the embeddings.

Regularizers are eq. 3 (GLaS), 2 (spread-out), 4 (Laplacian) and gravity. Each is computed on the labels drawn for a
batch: m of them, each once, or counted as often as it was drawn. Their embeddings are the rows of V (m, dim).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from labelspace.kernels.losses import margin_gradient
from labelspace.kernels.threads import run_blocks
from labelspace.training.losses import SampledLabels, bce_gradient, softmax_gradient
from labelspace.types import Floats, Ints, Longs

ROW_BLOCK = 64  # documents per task
USE_SIMILARITIES = ("glas", "laplacian")


def loss_gradient(
    scores: Floats, sampled: SampledLabels, positives: Longs | None, loss: str, margin: float, n_hardest: int | None
) -> Floats:
    """Return the gradient of the mean loss by the scores (batch, labels), which it overwrites.

    ``positives`` are the positions of the labels that ``sample_positives`` drew; None counts all labels of a document.
    The margin loss counts the ``n_hardest`` wrong labels, or, if None, the pairs with all of them (eq. 1).
    """
    columns, indptr = sampled.columns, sampled.indptr
    if loss == "softmax" and positives is not None:  # one label of each document that has some
        columns, indptr = columns[positives[positives >= 0]], np.append(0, np.cumsum(positives >= 0)).astype(np.int32)

    def to_gradient(start: int, stop: int) -> None:
        block, true = scores[start:stop], (columns, indptr, start)
        if loss == "bce":
            bce_gradient(block, *true, sampled.weights)
        elif loss == "softmax":
            softmax_gradient(block, *true, sampled.weights)
        elif positives is None or n_hardest is None:
            pairs_gradient(*true, positives, margin, block)
        else:
            margin_gradient(*true, positives, margin, min(n_hardest, scores.shape[1]), block)
        block /= np.float32(len(scores))

    run_blocks(to_gradient, len(scores), ROW_BLOCK)
    return scores


def pairs_gradient(columns: Ints, ends: Ints, start: int, positives: Longs | None, margin: float, out: Floats) -> None:
    """Write the gradient of the margin loss of eq. 1, summed over pairs of a true and a wrong label, to ``out``.

    The first row of ``out`` is row ``start``. The true labels are one per row,
    ``columns[positives[row]]``, or all, ``columns[ends[row] : ends[row + 1]]``.
    """
    begin, end = ends[start : start + len(out)], ends[start + 1 : start + 1 + len(out)]
    rows, true = np.repeat(np.arange(len(out)), end - begin), columns[begin[0] : end[-1]]
    true_scores = out[rows, true]
    out[rows, true] = -np.inf  # not wrong
    if positives is None:
        ranks = np.arange(len(rows)) - np.repeat(begin - begin[0], end - begin)  # of a label within its row
    else:
        drawn = positives[start : start + len(out)][begin < end] - begin[0]
        rows, true, true_scores, ranks = rows[drawn], true[drawn], true_scores[drawn], np.zeros(len(drawn), np.int64)
    gradient = np.zeros_like(out)
    for rank in range(int(ranks.max(initial=-1)) + 1):  # a pass has one true label of each row
        now = ranks == rank
        violated = out[rows[now]] > true_scores[now, None] - np.float32(margin)
        gradient[rows[now]] += violated
        gradient[rows[now], true[now]] -= violated.sum(axis=1, dtype=np.float32)
    out[:] = gradient


class RegularizerGradient(NamedTuple):
    """The terms that a regularizer adds to the gradients of a batch."""

    labels: Ints  # (m,) ascending
    of_labels: Floats  # (m, dim)
    of_documents: Floats | None = None  # (batch, dim)


def regularizer_gradient(
    name: str, weight: float, labels: Ints, V: Floats, phi: Floats, U: Callable[[Ints], Floats], counts: Longs | None
) -> RegularizerGradient:
    """Return the gradient of the regularizer of this name; ``U(labels)`` (m, m) are the similarities of labels.

    ``counts`` (m,) says how often each label was drawn; None counts each once. The regularizers are:

    glas        eq. 3, ``weight`` / m^2 ||V V' - U||^2
    spread_out  eq. 2, ``weight`` / m^2 ||V V'||^2 without the diagonal, which is constant on the sphere
    laplacian   eq. 4, ``weight`` / m^2 times the sum of ||v - v'||^2 u over pairs
    gravity     ([16]) ``weight`` times the mean of (phi V')^2: documents and labels repel
    """
    if name == "none" or weight == 0 or not len(labels):
        return RegularizerGradient(labels[:0], V[:0])
    n_labels = len(labels) if counts is None else int(counts.sum())
    if name == "gravity":
        products: Floats = phi @ V.T
        if counts is not None:
            products *= counts.astype(np.float32)
        products *= np.float32(2 * weight / (len(phi) * n_labels))
        return RegularizerGradient(labels, products.T @ phi, products @ V)
    if name == "laplacian":
        similarities = U(labels)
        degrees = similarities.sum(axis=1) if counts is None else similarities @ counts.astype(np.float32) / counts
        residual = -similarities
        residual[np.diag_indices(len(labels))] += degrees
    else:
        residual = V @ V.T
        if name == "glas":
            residual = residual - U(labels)
        else:
            residual[np.diag_indices(len(labels))] = 0.0
    if counts is not None:
        residual *= np.outer(counts, counts).astype(np.float32)
    residual *= np.float32(4 * weight / n_labels**2)
    return RegularizerGradient(labels, residual @ V)
