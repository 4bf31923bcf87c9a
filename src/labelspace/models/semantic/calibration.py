"""From scores to probabilities: a line through the log of the score and the best score of the document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from labelspace.estimator.state_constraints import array, must
from labelspace.training.logistic import fit_logistic
from labelspace.types import Csr, Doubles, Floats, Longs, TopK

FLOOR = 1e-3  # scores are kept above it: the logarithm of 0 is infinite
DEPTH = 50  # best labels of a document that a line is fitted to; the others are hardly ever right
MAX_POWER = 0.5  # of the label's count
# Means of the lines that were fitted to CookingSE, BigBasket20K, Flipkart20K and WordNetHyper: base, log score, best.
BY_DOCUMENTS = np.array([5.5, 3.0, -1.5])
BY_TEXT = np.array([3.0, 3.7, -3.6])


@dataclass(frozen=True)
class Line:
    """Log-odds of a label: weights of 1, of the log of its score, and of the best score of the document."""

    weights: Annotated[Doubles, array("float64", 3)]

    def check_state(self) -> None:
        """Check that probabilities rise with the score."""
        must(self.weights[1] > 0, "a probability that rises with the score")

    def log_odds(self, top: TopK, best: Floats) -> Floats:
        """Return the log-odds of listed labels; ``best`` (n,) is the best score of each document."""
        found = _columns(top.scores, best) @ self.weights
        return np.asarray(found.reshape(top.scores.shape), np.float32)


class Fitted(NamedTuple):
    """A line, and the power of 1 + count that the scores are multiplied by first."""

    line: Line
    power: float


def fit_line(scores: Floats, Y: Csr, measured: Doubles) -> Line:
    """Fit a line to scores (n, labels) and whether the labels are right."""
    return _fit(scores, Y, measured, None).line


def fit_line_and_power(scores: Floats, Y: Csr, counts: Longs, measured: Doubles) -> Fitted:
    """Fit a line, and the power of the counts of labels, which a document's own labels count one less."""
    return _fit(scores, Y, measured, counts)


def _fit(scores: Floats, Y: Csr, measured: Doubles, counts: Longs | None) -> Fitted:
    depth = min(DEPTH, scores.shape[1])
    listed = np.argpartition(-scores, depth - 1, axis=1)[:, :depth]
    values = np.take_along_axis(scores, listed, axis=1)
    right = np.take_along_axis(Y.toarray(), listed, axis=1)
    power = 0.0
    if counts is not None:
        log_counts = np.log1p(counts[listed] - right)
        columns = np.column_stack([_columns(values, values.max(axis=1)), log_counts.ravel()])
        weights = fit_logistic(columns, right.ravel(), np.append(measured, 0.0))
        power = float(np.clip(weights[3] / max(weights[1], FLOOR), -MAX_POWER, MAX_POWER))
        values = values * np.exp(power * log_counts)
    weights = fit_logistic(_columns(values, values.max(axis=1)), right.ravel(), measured)
    return Fitted(Line(weights if weights[1] > 0 else measured), power)


def _columns(values: Floats, best: Floats) -> Doubles:
    """Return 1, the log of each score, and the best score of its document. Shape (n * k, 3)."""
    logs = np.log(np.maximum(values, FLOOR), dtype=np.float64)
    table = np.stack([np.ones_like(logs), logs, np.broadcast_to(best[:, None], logs.shape)], axis=-1)
    return np.asarray(table.reshape(-1, 3), np.float64)
