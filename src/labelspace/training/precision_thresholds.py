"""Thresholds on probabilities above which a given share of the labels is right, with a finite-sample guarantee.

Angelopoulos, Bates, Candès, Jordan and Lei (2021), Learn then Test; the test is that of Waudby-Smith and Ramdas (2024),
Estimating means of bounded random variables by betting.

1. Documents that the model has not seen, with their labels' probabilities and whether each is right, are put into a
   random order. Labels of one document depend on each other, so a document, not a label, is an observation.
2. At a threshold t a document keeps the labels with a probability of at least t. W = target * kept - right has a mean
   of at most 0 where the precision, right / kept over all documents, is at least the target.
3. The first eighth of the documents says, by probabilities alone, how many labels a document keeps at most (a new one
   will keep no more), and at which threshold the test is the most powerful.
4. From there thresholds are tested from high to low on the other documents, by betting (``kernels.betting``), each at
   the full level, up to the first one that is not shown to be precise. The last before it is taken: a false one is
   taken with a probability of at most 1 - ``CONFIDENCE``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from labelspace.errors import DataError
from labelspace.kernels.betting import LARGEST_BET, is_precise
from labelspace.labels.hierarchy import ancestor_probabilities
from labelspace.state_constraints import array, ids, is_sorted, must
from labelspace.types import Bools, Csr, Floats, Hierarchy, Ints, Longs, TopK

CONFIDENCE = 0.9
TARGETS = np.arange(50, 100) / 100
GRID = np.arange(199, 0, -1) / 200  # the thresholds that are tested, from high to low
FIRST_SHARE = 1 / 8  # of the documents, for step 3
MAX_KEPT = 2**16
CLOSED = 64  # labels of a document, with ancestors, that are looked at


class PrecisionThreshold(NamedTuple):
    """What is kept to reach a precision."""

    precision: float  # that was learned for: the next one to what was asked
    threshold: float  # inf where no threshold reaches it
    coverage: float  # the share of the labels of held-out documents that are kept
    most: int  # labels that a document keeps at most


@dataclass(frozen=True)
class PrecisionThresholds:
    """For each of ``TARGETS`` the least threshold that reaches it."""

    threshold: Annotated[Floats, array("float32", len(TARGETS), finite=False)]  # inf where there is none
    coverage: Annotated[Floats, array("float32", len(TARGETS))]
    most: Annotated[Ints, ids(len(TARGETS), below=MAX_KEPT)]

    def check_state(self) -> None:
        """A higher precision has a higher threshold; all are probabilities."""
        must(is_sorted(self.threshold), "thresholds that never fall")
        must(((self.threshold >= 0) & ((self.threshold <= 1) | np.isinf(self.threshold))).all(), "thresholds up to 1")
        must(((self.coverage >= 0) & (self.coverage <= 1)).all(), "shares between 0 and 1")

    def at(self, precision: float) -> PrecisionThreshold:
        """What to keep for a precision, which is rounded up to the next one that was learned for.

        >>> none = PrecisionThresholds.none()
        >>> none.at(0.905), none.highest
        (PrecisionThreshold(precision=0.91, threshold=inf, coverage=0.0, most=0), None)
        """
        at = int(np.searchsorted(TARGETS, precision - 1e-9))
        if at == len(TARGETS):
            return PrecisionThreshold(precision, np.inf, 0.0, 0)
        row = float(self.threshold[at]), float(self.coverage[at]), int(self.most[at])
        return PrecisionThreshold(float(TARGETS[at]), *row)

    @property
    def highest(self) -> float | None:
        """The highest precision that some threshold reaches."""
        reached = TARGETS[np.isfinite(self.threshold)]
        return float(reached[-1]) if len(reached) else None

    @classmethod
    def none(cls) -> Self:
        """No threshold reaches anything, as without held-out documents."""
        n = len(TARGETS)
        return cls(np.full(n, np.inf, np.float32), np.zeros(n, np.float32), np.zeros(n, np.int32))

    @classmethod
    def learn(cls, top: TopK, Y: Csr, random_state: int = 0) -> Self:
        """Learn from the most probable labels of held-out documents, best first, and their true labels.

        >>> top = TopK(np.zeros((400, 1)), np.linspace(0.01, 0.99, 400)[:, None])
        >>> learned = PrecisionThresholds.learn(top, Csr(top.scores > 0.5))
        >>> 0.3 < learned.at(0.7).threshold < learned.at(0.9).threshold < 0.6
        True
        """
        order = np.random.default_rng(random_state).permutation(len(top))
        probabilities, right = top.scores[order], _right(top, Y)[order]
        n_first = int(FIRST_SHARE * len(top))
        if n_first == 0:
            return cls.none()
        most = np.maximum(_kept(probabilities[:n_first]).max(axis=1), 1)
        found = np.full(len(TARGETS), np.inf)
        for at, (target, start) in enumerate(zip(TARGETS, _starts(probabilities[:n_first], most), strict=True)):
            for t in range(start, len(GRID)):  # step 4
                bets = (n_first, float(GRID[t]), float(target), int(most[t]), CONFIDENCE)
                if not is_precise(probabilities, right, *bets):
                    break
                found[at] = GRID[t]
        found = np.maximum.accumulate(found)  # a higher one was shown to be precise on the way
        return cls._measured(found, most, probabilities, right, Y.nnz)

    @classmethod
    def _measured(cls, found: Floats, most: Longs, probabilities: Floats, right: Bools, n_true: int) -> Self:
        """The thresholds with the share of the true labels that they keep."""
        coverage, at_most = np.zeros(len(found), np.float32), np.zeros(len(found), np.int32)
        for at in np.flatnonzero(np.isfinite(found)):
            at_most[at] = most[np.searchsorted(-GRID, -found[at])]
            kept = probabilities[:, : at_most[at]] >= np.float32(found[at])
            coverage[at] = (kept & right[:, : at_most[at]]).sum() / max(n_true, 1)
        return cls(found.astype(np.float32), coverage, at_most)


def learn_precision(tops: Sequence[TopK], truth: Sequence[Csr], random_state: int = 0) -> PrecisionThresholds:
    """The thresholds of groups of held-out documents, each with its most probable and its true labels."""
    if not tops:
        return PrecisionThresholds.none()
    joined = TopK(np.concatenate([top.labels for top in tops]), np.concatenate([top.scores for top in tops]))
    return PrecisionThresholds.learn(joined, sp.vstack(truth).tocsr(), random_state)


def learn_consistent_precision(
    tops: Sequence[TopK], truth: Sequence[Csr], hierarchy: Hierarchy | None, random_state: int = 0
) -> PrecisionThresholds | None:
    """The same for answers with ancestors, which are right where a label below them is; None without a hierarchy."""
    if hierarchy is None:
        return None
    try:
        closed = [hierarchy.closed(Y) for Y in truth]
    except DataError:  # so deep that labels have too many ancestors
        return None
    return learn_precision([ancestor_probabilities(top, hierarchy, CLOSED) for top in tops], closed, random_state)


def _right(top: TopK, Y: Csr) -> Bools:
    """Which labels are right."""
    rows = np.repeat(np.arange(len(top)), top.k)
    right = np.asarray(Y[rows, np.maximum(top.labels, 0).ravel()]).reshape(top.labels.shape) > 0
    return right & (top.labels >= 0)


def _kept(probabilities: Floats) -> Longs:
    """How many labels each document keeps at each threshold of the grid: (grid, n)."""
    return np.stack([(probabilities >= np.float32(threshold)).sum(axis=1) for threshold in GRID])


def _starts(probabilities: Floats, most: Longs) -> Longs:
    """For each target, the place in the grid where the test should be most powerful, were the probabilities right.

    So few labels that the test would be lost even if all were right are no start.
    """
    p = -np.sort(-probabilities[probabilities > -np.inf].astype(np.float64))
    kept = np.searchsorted(-p, -GRID, side="right")  # labels at each threshold
    right, target = np.concatenate([[0.0], np.cumsum(p)])[kept], TARGETS[:, None]
    power = (right - target * kept) / np.sqrt(target * (1 - target) * np.maximum(kept, 1))
    largest_gain = np.log1p(LARGEST_BET / (target * most) * (1 - target))
    enough = kept * (1 / FIRST_SHARE - 1) * largest_gain >= -2 * np.log(1 - CONFIDENCE)
    return np.minimum.accumulate(np.where(enough, power, power - 1e9).argmax(axis=1))
