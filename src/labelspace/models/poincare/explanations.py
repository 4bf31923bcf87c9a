"""Explain scores by the votes of the nearest documents and labels, and by the words that bring them near.

1. The score p is the mean over learners of the votes of the nearest documents for the label, and of the label's own
   vote (voting.py). Its log-odds are those of p.
2. The baseline is the score of an unknown document: the documents' votes by the label's frequency, and
   the label's own vote as seen from the center.
3. The voters are held fixed, and the document moves along the line from the center to its vector r = theta'x. Of what
   its votes gain on that way, feature f has x_f theta_f . g, where g is the mean gradient of p on the line, by
   ``POINTS`` Gauss-Legendre points.
4. That these documents are the voters is due to the words too. Seen from the center, the label has more of their votes
   than its frequency would give it, or less. Of that, a feature has its part of what brought the document nearer to the
   voters that have the label, or to the others: the same integral of their mean distance, weighted by their votes.
5. All shares are multiplied with the slope of the log-odds between the baseline and p. So is a voter's, which is its
   vote: less those that the baseline has, all votes add up to what is explained.

The remainder is the error of the integrals, and step 4 where r is hardly nearer to the voters than the center is. With
geometry=cosine, the length of r is taken as that of this document. A label without votes has no shares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from labelspace.models.evidence import MIN_PROBABILITY, ColumnShares, Evidence, Voter, gauss_legendre, logit, slopes
from labelspace.models.poincare.geometry import CLIP_MARGIN, Euclidean, Manifold, PoincareBall, clip_to_ball
from labelspace.models.poincare.voting import LABEL_SHARPNESS, Neighbors, distance_weights, label_share
from labelspace.types import Bools, Csr, Doubles, Ints, Longs

if TYPE_CHECKING:
    from labelspace.models.poincare.model import Poincare

POINTS = 32  # of the integrals along the line: fewer leave a larger remainder
NEARER = 0.1  # of all that features do to the voters' distance must be left, for their choice to be explained
SMALL = 1e-30  # avoids a division by 0
NO_COLUMNS = np.zeros(0, np.int32)


class VoteEvidence:
    """The votes of all learners for one document X (1, n_features), scaled as in training."""

    def __init__(self, model: Poincare, X: Csr, neighbors: list[Neighbors], view: str) -> None:
        self.X, self.view = X, view
        self.learners = [LearnerVotes(model, X, number, near) for number, near in enumerate(neighbors)]
        counts = np.bincount(model.Y_.indices, minlength=model.n_labels_)
        self.frequencies = counts / model.Y_.shape[0]  # the share of training documents that each label has

    def evidence(self, label: int) -> Evidence:
        """Return the evidence for one label (steps 1 to 5)."""
        found, frequency = [learner.votes_for(label) for learner in self.learners], float(self.frequencies[label])
        p = float(np.mean([votes.total for votes in found]))
        p0 = float(np.mean([votes.at_center(frequency) for votes in found]))
        log_odds, baseline = logit(p), logit(p0)
        if p <= 0:
            return Evidence(log_odds, baseline)
        slope = slopes(
            np.array(log_odds), np.array(baseline), np.array(p), np.array(p0), 1 / max(p0 * (1 - p0), MIN_PROBABILITY)
        )
        shares = slope * np.mean([votes.column_shares(frequency) for votes in found], axis=0)
        voters = self._voters([votes.documents() for votes in found], float(slope) / len(found))
        return Evidence(log_odds, baseline, {self.view: ColumnShares(self.X.indices, shares)}, voters=voters)

    def _voters(self, documents: list[tuple[Ints, Doubles, Doubles]], scale: float) -> list[Voter]:
        """Return the documents that voted, given each learner's ids, votes and distances."""
        ids, votes, distances = (np.concatenate(parts) for parts in zip(*documents, strict=True))
        rows, place = np.unique(ids, return_inverse=True)
        shares = scale * np.bincount(place, votes, len(rows))
        nearest = np.full(len(rows), np.inf)
        np.minimum.at(nearest, place, distances)
        return [
            Voter(row, similarity, share, NO_COLUMNS, self.view)
            for row, similarity, share in zip(rows.tolist(), np.exp(-nearest).tolist(), shares.tolist(), strict=True)
        ]


class LearnerVotes:
    """The voters of one learner, and the line from the center to the document's vector r."""

    def __init__(self, model: Poincare, X: Csr, number: int, near: Neighbors) -> None:
        self.model, self.X = model, X
        self.theta = model.theta_[number][X.indices] * model.theta_scales_[number][X.indices, None].astype(np.float64)
        if model.geometry == "cosine":
            self.theta /= max(float(np.linalg.norm(X.data @ self.theta)), 1e-9)
        self.manifold: Manifold = model.manifold if model.geometry == "poincare" else Euclidean()
        weights = model.vote_weights_
        documents, labels = near[0].padded(min(weights.n_neighbors, near[0].k)), near[1]
        self.documents, self.labels = (top.labels[0][top.labels[0] >= 0] for top in (documents, labels))
        self.distances = -documents.scores[0, : len(self.documents)].astype(np.float64)
        votes = distance_weights(documents.scores[:, : len(self.documents)], weights.sharpness)[0].astype(np.float64)
        self.label_share = label_share(model.route, weights)
        self.document_votes = (1 - self.label_share) * votes / max(float(votes.sum()), SMALL)
        sharpness = LABEL_SHARPNESS * model.alpha
        self.label_votes = self.label_share * distance_weights(labels.scores[:, : len(self.labels)], sharpness)[0]
        points = [model.document_indexes_[number].vectors(self.documents)] if len(self.documents) else []
        points += [model.label_indexes_[number].vectors(self.labels)] if len(self.labels) else []
        self.duals = self.manifold.dual(self.manifold.lift(np.concatenate(points).astype(np.float64)))
        at, self.weights = gauss_legendre(POINTS)
        self.line = np.append(at, 0.0)[:, None] * (X.data @ self.theta)  # the points of the integral, then the center
        self.by_voter = self.manifold.lift_projected(self.line) @ self.duals.T
        self.derivatives = self.manifold.distances_inplace(self.by_voter)

    def votes_for(self, label: int) -> LabelVotes:
        """Return the votes for one label."""
        carry = self.model.Y_[self.documents][:, [label]].toarray()[:, 0] > 0
        return LabelVotes(self, carry, np.flatnonzero(self.labels == label))

    def column_shares(self, by_distance: Doubles) -> Doubles:
        """Return the features' shares of a function on the line, by its gradient (points, voters) by the distances."""
        by_lifted = (by_distance * self.derivatives[:POINTS]) @ self.duals
        by_vector = vector_gradient(self.manifold, self.line[:POINTS], by_lifted)
        return np.asarray(self.X.data * (self.theta @ (self.weights @ by_vector)))


@dataclass
class LabelVotes:
    """One learner's votes for one label."""

    learner: LearnerVotes
    carry: Bools  # which of the nearest documents have the label
    own: Longs  # its position among the nearest labels, if any

    @property
    def total(self) -> float:
        """The sum of the votes for the label."""
        learner = self.learner
        return float(learner.document_votes[self.carry].sum() + learner.label_votes[self.own].sum())

    def documents(self) -> tuple[Ints, Doubles, Doubles]:
        """Return the documents that voted for the label, their votes and distances."""
        learner = self.learner
        return learner.documents[self.carry], learner.document_votes[self.carry], learner.distances[self.carry]

    def at_center(self, frequency: float) -> float:
        """Return the votes of an unknown document, as seen from the center (step 2)."""
        _, labels = self._votes(self.learner.by_voter[POINTS:])
        return (1 - self.learner.label_share) * frequency + float(labels[0, self.own].sum())

    def column_shares(self, frequency: float) -> Doubles:
        """Return the features' shares of p (steps 3 and 4)."""
        learner = self.learner
        shares = learner.column_shares(self._gradient())
        documents, _ = self._votes(learner.by_voter[POINTS:])
        more = float(documents[0] @ self.carry) - (1 - learner.label_share) * frequency
        voters = learner.document_votes * (self.carry if more > 0 else ~self.carry)
        nearer = np.zeros((POINTS, learner.by_voter.shape[1]))
        nearer[:, : len(voters)] = -voters / max(float(voters.sum()), SMALL)
        parts = learner.column_shares(nearer)
        is_nearer = parts.sum() > NEARER * np.abs(parts).sum()
        return shares + more * parts / parts.sum() if is_nearer else shares

    def _gradient(self) -> Doubles:
        """Return the gradient of the votes for the label by the distances of all voters. Shape (points, voters)."""
        learner, m = self.learner, len(self.carry)
        distances = learner.by_voter[:POINTS]
        documents, labels = self._votes(distances)
        share = documents @ self.carry / max(1 - learner.label_share, SMALL)
        out = np.zeros_like(distances)
        out[:, :m] = -learner.model.vote_weights_.sharpness * documents * (self.carry - share[:, None])
        if len(self.own):
            by_distance = LABEL_SHARPNESS * learner.model.alpha * labels[:, self.own[0]]
            out[:, m + self.own[0]] -= by_distance
            out[np.arange(POINTS), m + distances[:, m:].argmin(axis=1)] += by_distance
        return out

    def _votes(self, distances: Doubles) -> tuple[Doubles, Doubles]:
        """Return the votes of all documents, and of all labels, at these distances (n, voters)."""
        learner, m = self.learner, len(self.carry)
        near, far = (part - part.min(axis=1, keepdims=True, initial=np.inf) for part in np.split(distances, [m], 1))
        documents = np.exp(-learner.model.vote_weights_.sharpness * near)
        documents *= (1 - learner.label_share) / np.maximum(documents.sum(axis=1, keepdims=True), SMALL)
        return documents, learner.label_share * np.exp(-LABEL_SHARPNESS * learner.model.alpha * far)


def vector_gradient(manifold: Manifold, r: Doubles, by_lifted: Doubles) -> Doubles:
    """Return the gradient by r, given the gradient by the lifted rows of its points.

    This is ``lift_projected_backward``, except for the paper's projection p, where the latter has the inverse metric.
    """
    if not isinstance(manifold, PoincareBall) or manifold.exponential:
        return np.asarray(manifold.lift_projected_backward(r, by_lifted))
    by_point = manifold.lift_backward(clip_to_ball(r), by_lifted)
    norms = np.maximum(np.linalg.norm(r, axis=1, keepdims=True), 1e-9)
    along = np.einsum("ij,ij->i", by_point, r)[:, None] / norms**2 * r
    clipped = (by_point - along) * (1 - CLIP_MARGIN) / norms
    return np.where(norms >= 1 - CLIP_MARGIN, clipped, by_point)
