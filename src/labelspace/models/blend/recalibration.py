"""Online Platt scaling: a line through the log-odds of the stacking model that follows what documents turn out to have.

The trees of the stacking model keep their shape when the members go on learning. What they say of documents before
these are learned is compared with the labels of these documents: log-odds z become slope * z + shift. The line starts
as z itself, and moves by a Bayesian update: the loss of the new documents, plus how sure the line is of itself by those
before, of which older ones count less. So probabilities stay calibrated if documents change, and a few documents hardly
move them. The slope is above 0: ranks do not change.
"""

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np

from labelspace.estimator.state_constraints import array, must
from labelspace.training.losses import sigmoid
from labelspace.types import Bools, Doubles, Floats

PRIOR = (200.0, 200.0)  # precision of slope and shift before the first document: that of some hundred documents
HALF_LIFE = 10_000  # documents after which what a document said counts half
MAX_LOG_ODDS = 12.0  # a probability of 0 or 1 has infinite log-odds
NEWTON_STEPS = 20  # a few are enough; the bound ends a bad case
SLOPES, SHIFTS = (0.2, 5.0), (-5.0, 5.0)  # bounds: beyond them, documents are too odd to be learned from


@dataclass(frozen=True)
class Recalibration:
    """A line through log-odds, and the precision by which it is known."""

    line: Annotated[Doubles, array("float64", 2)]  # slope and shift
    precision: Annotated[Doubles, array("float64", 2, 2)]

    @classmethod
    def start(cls) -> Self:
        """Return the line that changes nothing."""
        return cls(np.array([1.0, 0.0]), np.diag(PRIOR))

    def check_state(self) -> None:
        """Check that the line rises, and that the precision is that of a normal distribution."""
        must(SLOPES[0] <= self.line[0] <= SLOPES[1] and SHIFTS[0] <= self.line[1] <= SHIFTS[1], "a line that rises")
        must(bool(np.isfinite(self.precision).all()), "a finite precision")
        must(bool((np.linalg.eigvalsh(self.precision) > 0).all()), "a positive precision")

    def updated(self, probabilities: Floats, right: Bools, n_documents: int) -> Self:
        """Return the line after ``n_documents`` documents, whose candidates had these probabilities before this line.

        >>> half_as_often = np.tile(np.array([True, False, False, False]), 500)
        >>> line = Recalibration.start().updated(np.full(2000, 0.5), half_as_often, n_documents=500)
        >>> round(float(line.apply(np.array([0.5], np.float32))[0]), 2)
        0.32
        """
        z = log_odds(probabilities)
        known = self.precision * 0.5 ** (n_documents / HALF_LIFE) + np.diag(PRIOR) * 1e-3
        line = self.line.copy()
        columns = np.stack([z, np.ones_like(z)])
        for _ in range(NEWTON_STEPS):
            p = sigmoid(line @ columns)
            gradient = columns @ (p - right) + known @ (line - self.line)
            hessian = (columns * (p * (1 - p))) @ columns.T + known
            step = np.linalg.solve(hessian, gradient)
            line = np.clip(line - np.clip(step, -1, 1), *np.array([SLOPES, SHIFTS]).T)  # a long step may overshoot
            if np.abs(step).max() < 1e-9:
                break
        p = sigmoid(line @ columns)
        return type(self)(line, (columns * (p * (1 - p))) @ columns.T + known)

    def apply(self, probabilities: Floats) -> Floats:
        """Return probabilities moved by the line; 0 and 1 stay."""
        moved = sigmoid(self.line[0] * log_odds(probabilities) + self.line[1])
        inside = (probabilities > 0) & (probabilities < 1)
        out: Floats = np.where(inside, moved, probabilities).astype(np.float32)
        return out


def log_odds(probabilities: Floats) -> Doubles:
    """Return the log-odds of probabilities, within ``MAX_LOG_ODDS``."""
    p = probabilities.astype(np.float64)
    with np.errstate(divide="ignore"):
        found: Doubles = np.clip(np.log(p) - np.log1p(-p), -MAX_LOG_ODDS, MAX_LOG_ODDS)
    return found
