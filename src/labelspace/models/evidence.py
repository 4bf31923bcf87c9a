"""Why a method gives a label its score: parts that add up to the score's log-odds, less the log-odds of a baseline.

Each part is the share of something that a reader can look up: a column of the features, a phrase of the text, a
training document, a step down a tree of labels, a member of an ensemble. Shares of columns and phrases add up, with the
``remainder``, to ``log_odds - baseline``. The shares of documents, steps and members explain the difference once more.

A share of a function of one number, f(z) with z = b + sum of z_i, is z_i times the slope of f between b and z. For
what is linear, and for one layer of ReLUs, these are integrated gradients along the line from the empty document.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from labelspace.types import Doubles, Ints

MIN_PROBABILITY = 1e-6  # scores are kept this far from 0 and 1, so that log-odds stay finite
MIN_STEP = 1e-9  # below it, a difference quotient is mostly rounding error, and the derivative is taken
Numbers = npt.NDArray[np.floating]


class ColumnShares(NamedTuple):
    """Shares of some columns of a view; a column may be listed several times."""

    columns: Ints
    shares: Doubles


class PhraseShare(NamedTuple):
    """A phrase of the text that names the label: characters ``start`` to ``stop``."""

    start: int
    stop: int
    kind: str  # name, synonym, part
    share: float


class Voter(NamedTuple):
    """A training document that voted for the label."""

    row: int  # of the training documents
    similarity: float
    share: float
    shared: Ints  # columns of a view that it shares with the document, those that count most first
    view: str


class Step(NamedTuple):
    """A step down a tree of labels."""

    labels: Ints  # below the node, or some of them
    n_labels: int
    log_probability: float
    share: float


class MemberShare(NamedTuple):
    """The score, rank and share that a member of an ensemble gives the label."""

    name: str
    score: float | None  # None for a share that belongs to no member
    rank: int | None  # 1 is the best; None where the member does not list the label
    share: float

    @property
    def described(self) -> str:
        """The score and the rank in words.

        >>> MemberShare("neighbors", 0.25, 3, 1.5).described
        'score 0.25, rank 3'
        """
        score = "" if self.score is None else f"score {self.score:.2f}"
        return f"{score}, rank {self.rank}" if self.rank else score


@dataclass(frozen=True)
class Evidence:
    """Why a method gives a label its score, in the method's own terms."""

    log_odds: float
    baseline: float
    columns: Mapping[str, ColumnShares] = field(default_factory=dict)  # by view
    phrases: Sequence[PhraseShare] = ()
    voters: Sequence[Voter] = ()
    path: Sequence[Step] = ()
    members: Sequence[MemberShare] = ()
    score: float | None = None  # the method's own score, if it is not the sigmoid of the log-odds

    @property
    def difference(self) -> float:
        """The difference of log-odds that the shares explain."""
        return self.log_odds - self.baseline

    @property
    def remainder(self) -> float:
        """The part of the difference that belongs to no column and no phrase."""
        by_column = sum(float(part.shares.sum()) for part in self.columns.values())
        return self.difference - by_column - sum(phrase.share for phrase in self.phrases)


def logit(p: float) -> float:
    """Return the log-odds of a probability, finite for 0 and 1 too.

    >>> logit(0.5), round(logit(0.0), 2)
    (0.0, -13.82)
    """
    p = min(max(p, MIN_PROBABILITY), 1 - MIN_PROBABILITY)
    return float(np.log(p) - np.log1p(-p))


def logit_of_log(log_p: float) -> float:
    """Return the log-odds of a probability that is given by its logarithm.

    >>> round(logit_of_log(np.log(0.25)), 4) == round(logit(0.25), 4)
    True
    """
    log_p = min(max(log_p, float(np.log(MIN_PROBABILITY))), float(np.log1p(-MIN_PROBABILITY)))
    return float(log_p - np.log(-np.expm1(log_p)))


def slopes(after: Numbers, before: Numbers, z: Numbers, b: Numbers, at_b: Numbers | float) -> Doubles:
    """Return the slopes of a function between b and z, where its values are ``before`` and ``after``.

    ``at_b`` is the slope at b, for points where b and z are equal.

    >>> slopes(np.array([4.0, 1.0]), np.array([0.0, 1.0]), np.array([2.0, 1.0]), np.array([0.0, 1.0]), 5.0).tolist()
    [2.0, 5.0]
    """
    step = np.asarray(z - b, np.float64)
    small = np.abs(step) < MIN_STEP
    return np.where(small, at_b, (after - before) / np.where(small, 1.0, step))


def relu_slopes(z: Numbers, b: Numbers) -> Doubles:
    """Return the slopes of max(0, .) between b and z."""
    return slopes(np.maximum(z, 0), np.maximum(b, 0), z, b, (b > 0).astype(np.float64))


@cache
def gauss_legendre(n: int) -> tuple[Doubles, Doubles]:
    """Return points and weights for an integral from 0 to 1.

    >>> points, weights = gauss_legendre(3)
    >>> round(float(weights @ points**4), 6)
    0.2
    """
    points, weights = np.polynomial.legendre.leggauss(n)
    return (points + 1) / 2, weights / 2
