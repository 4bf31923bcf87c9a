"""The probability of a label without documents, by what is found of its texts: a logistic model.

The stacking model cannot learn when such a label is right: no document has it. So the members that read label texts
decide, ``semantic`` and ``lexical``: the log-odds are a weighted sum of theirs, and of whether ``lexical`` lists the
label. The weights are fitted to the rarer half of the labels that have documents, ranked by texts alone: a label
without documents is expected to be as frequent as these. They are regularized towards means of those of five data sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from labelspace.estimator.state_constraints import array, must
from labelspace.models.blend.kernels import COLUMNS_PER_MEMBER
from labelspace.training.logistic import fit_logistic
from labelspace.training.losses import sigmoid
from labelspace.types import Doubles, Floats

LEAST = 1e-4  # probability of a label that a member does not list
# Weights of 1, of the log-odds of both members, and of a match of ``lexical``.
AFTER_TRAINING = np.array([-4.0, 0.3, 0.7, 7.0])
WITHOUT_DOCUMENTS = np.array([-5.05, 0.1, 1.0, 7.0])  # names are surer than vectors without a center of documents
READERS = ("semantic", "lexical")  # the members


@dataclass(frozen=True)
class TextEvidence:
    """The weights of the log-odds of both members, wherever they are among all."""

    weights: Annotated[Doubles, array("float64", 4)]

    def check_state(self) -> None:
        """Check that more evidence makes a label more probable."""
        must(bool((self.weights[1:] >= 0).all()), "weights of at least 0")

    @classmethod
    def fitted(cls, columns: Floats, right: Floats) -> TextEvidence:
        """Return weights fitted to rows of a stacking table of both members, in the order of ``READERS``."""
        weights = fit_logistic(_inputs(columns, READERS), right, AFTER_TRAINING)
        return cls(np.append(weights[:1], np.maximum(weights[1:], 0.0)))

    def probabilities(self, columns: Floats, members: Sequence[str]) -> Floats:
        """Return the probabilities of rows of the stacking table of members with these names."""
        return np.asarray(sigmoid(_inputs(columns, members) @ self.weights), np.float32)

    def shares(self, columns: Floats, members: Sequence[str]) -> Doubles:
        """Return what each member adds to the log-odds of rows. Shape (rows, members)."""
        weighted = _inputs(columns, members) * self.weights
        out = np.zeros((len(columns), len(members)))
        out[:, members.index("semantic")] = weighted[:, 1]
        out[:, members.index("lexical")] = weighted[:, 2:].sum(axis=1)
        return out


def _inputs(columns: Floats, members: Sequence[str]) -> Doubles:
    """Return 1, the log-odds of both members, the second only if it lists the label, and whether it does."""
    semantic, lexical = (columns[:, COLUMNS_PER_MEMBER * members.index(name)] for name in READERS)
    is_match = (lexical > 0).astype(np.float64)
    return np.stack([np.ones(len(columns)), _log_odds(semantic), is_match * _log_odds(lexical), is_match], axis=1)


def _log_odds(scores: Floats) -> Doubles:
    p = np.clip(scores.astype(np.float64), LEAST, 1 - LEAST)
    return np.asarray(np.log(p) - np.log1p(-p))
