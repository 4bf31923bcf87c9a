"""From scores to probabilities: a line through the log of the score and the best score of the document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from labelspace.estimator.state_constraints import array, must
from labelspace.training.losses import sigmoid
from labelspace.types import Csr, Doubles, Floats, Longs, TopK

FLOOR = 1e-3  # scores are kept above it: the logarithm of 0 is infinite
DEPTH = 50  # best labels of a document that a line is fitted to; the others are hardly ever right
RIDGE = 1.0  # precision of the measured weights
NEWTON_STEPS = 30
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
        found: Floats = (np.stack(_columns(top.scores, best), axis=-1) @ self.weights).astype(np.float32)
        return found


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
        columns = [*_columns(values, values.max(axis=1)), log_counts]
        weights = _logistic(columns, right, np.append(measured, 0.0))
        power = float(np.clip(weights[3] / max(weights[1], FLOOR), -MAX_POWER, MAX_POWER))
        values = values * np.exp(power * log_counts)
    weights = _logistic(_columns(values, values.max(axis=1)), right, measured)
    return Fitted(Line(weights if weights[1] > 0 else measured), power)


def _columns(values: Floats, best: Floats) -> list[Doubles]:
    """Return 1, the log of the score, and the best score of the document."""
    logs = np.log(np.maximum(values, FLOOR), dtype=np.float64)
    return [np.ones_like(logs), logs, np.broadcast_to(best[:, None], logs.shape).astype(np.float64)]


def _logistic(columns: list[Doubles], right: Floats, prior: Doubles) -> Doubles:
    """Return the weights of a logistic model by Newton's method, regularized towards the prior."""
    A, y = np.stack([column.ravel() for column in columns], axis=-1), right.ravel()
    w = prior.copy()
    for _ in range(NEWTON_STEPS):
        p = sigmoid(A @ w)
        gradient = A.T @ (y - p) - RIDGE * (w - prior)
        hessian = (A * (p * (1 - p))[:, None]).T @ A + RIDGE * np.eye(len(w))
        step = np.linalg.solve(hessian, gradient)
        w = w + np.clip(step, -1, 1)  # a long step may overshoot
        if np.abs(step).max() < 1e-9:
            break
    return w
