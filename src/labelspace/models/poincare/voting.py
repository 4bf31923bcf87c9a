"""Votes of the nearest documents and labels, and the choice of their weights on held-out documents (step 8)."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from labelspace.estimator.parameter_constraints import integer, real
from labelspace.estimator.state_constraints import plain
from labelspace.labels.document_neighbors import count_votes
from labelspace.types import Csr, Floats, TopK

if TYPE_CHECKING:
    from labelspace.models.poincare.model import Poincare

N_NEIGHBORS = (40, 10, 20, 80)  # tried, the default first
SHARPNESS = (4.0, 0.0, 2.0, 8.0, 16.0)
LABEL_WEIGHTS = (1.0, 0.0, 0.1, 0.3, 3.0)
LABEL_SHARPNESS = 0.25  # times alpha: the sharpness of the votes of labels; with alpha itself only the nearest count
MIN_SUM = np.float32(1e-30)  # avoids a division by 0


class VoteWeights(NamedTuple):
    """The number of documents that vote, and the weights of votes."""

    n_neighbors: Annotated[int, plain(integer(1))]
    sharpness: Annotated[float, plain(real(at_least=0))]
    label_weight: Annotated[float, plain(real(at_least=0))]


Neighbors = tuple[TopK, TopK]
"""The nearest documents and labels of each query by one learner; scores are negative distances."""


def vote_weight_grid(params: Poincare) -> list[VoteWeights]:
    """Return the weights to try, the default first: parameters that are given, or unused by the route, are fixed."""
    given = (params.n_neighbors, params.sharpness, params.label_weight)
    defaults = (N_NEIGHBORS, SHARPNESS, LABEL_WEIGHTS)
    tried = [values if fixed is None else (fixed,) for fixed, values in zip(given, defaults, strict=True)]
    if params.route == "vote":
        tried[2] = tried[2][:1]
    elif params.route == "labels":
        tried = [tried[0][:1], tried[1][:1], tried[2]]
    return [VoteWeights(int(m), float(s), float(w)) for m, s, w in product(*tried)]


def rank_by_votes(neighbors: list[Neighbors], weights: VoteWeights, route: str, alpha: float, Y: Csr, k: int) -> TopK:
    """Return the k labels with the most votes, the mean over learners; Y has the labels of the training documents.

    Of each learner's votes, the documents have a share of 1 / (1 + label_weight), and the labels the rest.
    """
    of_labels = label_share(route, weights)
    n_learners = np.float32(len(neighbors))
    documents, document_votes = [], []
    for nearest, _ in neighbors:
        votes = distance_weights(nearest.scores[:, : weights.n_neighbors], weights.sharpness)
        votes *= np.float32(1 - of_labels) / (np.maximum(votes.sum(axis=1, keepdims=True), MIN_SUM) * n_learners)
        documents.append(nearest.labels[:, : weights.n_neighbors])
        document_votes.append(votes)
    labels = np.concatenate([nearest.labels for _, nearest in neighbors], axis=1)
    label_votes = [distance_weights(nearest.scores, LABEL_SHARPNESS * alpha) for _, nearest in neighbors]
    voted = TopK(labels, np.concatenate(label_votes, axis=1) * (np.float32(of_labels) / n_learners))
    return count_votes(np.concatenate(documents, axis=1), np.concatenate(document_votes, axis=1), Y, k, voted)


def label_share(route: str, weights: VoteWeights) -> float:
    """Return the share of the votes that labels have; the nearest documents have the rest."""
    return {"vote": 0.0, "labels": 1.0, "both": weights.label_weight / (1 + weights.label_weight)}[route]


def distance_weights(scores: Floats, sharpness: float) -> Floats:
    """Return exp(-sharpness d) relative to the nearest, for scores -d (n, m), best first; 0 for padding (-inf)."""
    if not scores.shape[1]:
        return scores
    best = np.where(np.isfinite(scores[:, :1]), scores[:, :1], np.float32(0))
    with np.errstate(invalid="ignore"):
        weights: Floats = np.exp(np.float32(sharpness) * (scores - best))
    weights[~np.isfinite(scores)] = 0.0
    return weights
