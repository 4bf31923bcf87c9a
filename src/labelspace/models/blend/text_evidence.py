"""The probability of a label without documents, by what is found of its texts: a logistic model of measured weights.

The stacking model cannot learn when such a label is right: no document has it. So the members that read label texts
decide, ``semantic`` and ``lexical``: the log-odds are a weighted sum of theirs, and of whether ``lexical`` lists the
label. Weights are means of those fitted to five data sets (docs/methods/blend.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from labelspace.models.blend.kernels import COLUMNS_PER_MEMBER
from labelspace.training.losses import sigmoid
from labelspace.types import Doubles, Floats

LEAST = 1e-4  # probability of a label that a member does not list


class Weights(NamedTuple):
    """Weights of the log-odds of both members, and of a match of ``lexical``."""

    base: float
    semantic: float
    lexical: float
    match: float


AFTER_TRAINING = Weights(-4.45, 0.3, 0.7, 7.0)
WITHOUT_DOCUMENTS = Weights(-5.05, 0.1, 1.0, 7.0)  # what names say is surer than vectors without a center of documents


class TextEvidence(NamedTuple):
    """The places of the two members among all, and the weights of their log-odds."""

    semantic: int
    lexical: int
    weights: Weights

    @classmethod
    def of(cls, methods: Sequence[str], n_documents: int) -> TextEvidence | None:
        """Return the evidence for members with these names; None if it takes one that is missing."""
        if not {"semantic", "lexical"} <= set(methods):
            return None
        weights = AFTER_TRAINING if n_documents else WITHOUT_DOCUMENTS
        return cls(methods.index("semantic"), methods.index("lexical"), weights)

    def shares(self, columns: Floats) -> Doubles:
        """Return what the members add to the log-odds of rows of the stacking table. Shape (rows, members)."""
        n_members = columns.shape[1] // COLUMNS_PER_MEMBER
        out = np.zeros((len(columns), n_members))
        by_semantic, by_lexical = (
            _log_odds(columns[:, COLUMNS_PER_MEMBER * at]) for at in (self.semantic, self.lexical)
        )
        is_match = columns[:, COLUMNS_PER_MEMBER * self.lexical] > 0
        out[:, self.semantic] = self.weights.semantic * by_semantic
        out[:, self.lexical] = np.where(is_match, self.weights.lexical * by_lexical + self.weights.match, 0.0)
        return out

    def probabilities(self, columns: Floats) -> Floats:
        """Return the probabilities of rows of the stacking table."""
        log_odds = self.shares(columns).sum(axis=1) + self.weights.base
        return np.asarray(sigmoid(log_odds), np.float32)


def _log_odds(scores: Floats) -> Doubles:
    p = np.clip(scores.astype(np.float64), LEAST, 1 - LEAST)
    return np.asarray(np.log(p) - np.log1p(-p))
