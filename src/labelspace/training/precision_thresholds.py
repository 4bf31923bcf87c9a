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
5. Where the documents reach a precision, but are too few to show it, the lowest threshold at which they reach it is
   taken, and reported as an estimate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from labelspace.errors import DataError
from labelspace.estimator.state_constraints import array, ids, is_sorted, must
from labelspace.kernels.betting import LARGEST_BET, is_precise
from labelspace.labels.hierarchy import ancestor_probabilities
from labelspace.training.epochs import true_labels
from labelspace.types import Bools, Csr, Floats, Hierarchy, Ints, Longs, TopK

CONFIDENCE = 0.9  # higher needs more held-out documents for the same threshold
TARGETS = np.arange(50, 100) / 100
GRID = np.arange(199, 0, -1) / 200  # the thresholds that are tested, from high to low
FIRST_SHARE = 1 / 8  # of the documents, for step 3
MIN_KEPT = 100  # labels that an estimate is made of: with fewer, it would be mostly noise
MAX_KEPT = 2**16  # labels of a document, more than any list has: a bound for the check of saved values
CLOSED = 64  # most probable labels of a document, with ancestors, that are counted


class PrecisionThreshold(NamedTuple):
    """The labels to keep to reach a precision."""

    precision: float  # that was learned for: the next one above the requested
    threshold: float  # inf where no threshold reaches it
    coverage: float  # the share of the labels of held-out documents that are kept
    most: int  # labels that a document keeps at most
    confidence: float | None  # with which the precision was shown; None for an estimate, or where it is not reached


@dataclass(frozen=True)
class PrecisionThresholds:
    """For each of ``TARGETS`` the least threshold that reaches it."""

    threshold: Annotated[Floats, array("float32", len(TARGETS), finite=False)]  # inf where there is none
    coverage: Annotated[Floats, array("float32", len(TARGETS))]
    most: Annotated[Ints, ids(len(TARGETS), below=MAX_KEPT)]
    shown: Annotated[Bools, array("bool", len(TARGETS))]  # whether the precision was shown, and not only estimated

    def check_state(self) -> None:
        """Check that a higher precision has a higher threshold, and that all are probabilities."""
        must(is_sorted(self.threshold), "thresholds that never fall")
        must(((self.threshold >= 0) & ((self.threshold <= 1) | np.isinf(self.threshold))).all(), "thresholds up to 1")
        must(((self.coverage >= 0) & (self.coverage <= 1)).all(), "shares between 0 and 1")

    def at(self, precision: float) -> PrecisionThreshold:
        """Return the threshold for a precision, which is rounded up to the next one that was learned for.

        >>> none = PrecisionThresholds.none()
        >>> none.at(0.905), none.highest
        (PrecisionThreshold(precision=0.91, threshold=inf, coverage=0.0, most=0, confidence=None), None)
        """
        at = int(np.searchsorted(TARGETS, precision - 1e-9))
        if at == len(TARGETS):
            return PrecisionThreshold(precision, np.inf, 0.0, 0, None)
        row = float(self.threshold[at]), float(self.coverage[at]), int(self.most[at])
        return PrecisionThreshold(float(TARGETS[at]), *row, CONFIDENCE if self.shown[at] else None)

    @property
    def highest(self) -> float | None:
        """The highest precision that some threshold was shown to reach."""
        reached = TARGETS[self.shown]
        return float(reached[-1]) if len(reached) else None

    @classmethod
    def none(cls) -> Self:
        """Return thresholds that reach no precision, as without held-out documents."""
        n = len(TARGETS)
        zeros = (np.zeros(n, kind) for kind in (np.float32, np.int32, bool))
        return cls(np.full(n, np.inf, np.float32), *zeros)

    @classmethod
    def learn(cls, top: TopK, Y: Csr, random_state: int = 0) -> Self:
        """Learn from the most probable labels of held-out documents, best first, and their true labels.

        >>> top = TopK(np.zeros((400, 1)), np.linspace(0.01, 0.99, 400)[:, None])
        >>> learned = PrecisionThresholds.learn(top, Csr(top.scores > 0.5))
        >>> 0.3 < learned.at(0.7).threshold < learned.at(0.9).threshold < 0.6
        True
        """
        order = np.random.default_rng(random_state).permutation(len(top))
        probabilities, right = top.scores[order], true_labels(top, Y)[order]
        n_first = int(FIRST_SHARE * len(top))
        if n_first == 0:
            return cls.none()
        counts = _Counts.of(probabilities, right, n_first)
        starts = _starts(probabilities[:n_first], counts.most)
        found = np.full(len(TARGETS), np.inf)
        for at, (target, start) in enumerate(zip(TARGETS, starts, strict=True)):
            for t in range(start, len(GRID)):  # step 4
                bets = (n_first, float(GRID[t]), float(target), int(counts.most[t]), CONFIDENCE)
                if not is_precise(probabilities, right, *bets):
                    break
                found[at] = GRID[t]
        taken = np.maximum.accumulate(np.where(np.isinf(found), counts.estimates(), found))  # step 5
        shown = np.isfinite(found) & (taken <= GRID[starts])  # a higher one was shown to be precise on the way
        at_grid = np.searchsorted(-GRID, -np.where(np.isinf(taken), GRID[0], taken))
        coverage = np.where(np.isinf(taken), 0, counts.right[at_grid] / max(Y.nnz, 1))
        kept = np.where(np.isinf(taken), 0, counts.most[at_grid])
        return cls(taken.astype(np.float32), coverage.astype(np.float32), kept.astype(np.int32), shown)


class _Counts(NamedTuple):
    """The labels that held-out documents keep at each threshold of the grid."""

    most: Longs  # labels of a document, by the first documents (step 3)
    kept: Longs  # labels of all documents, each with ``most`` at most
    right: Longs  # kept labels that are right

    @classmethod
    def of(cls, probabilities: Floats, right: Bools, n_first: int) -> Self:
        """Count at each threshold."""
        counts = []
        for threshold in GRID.astype(np.float32):
            sure = probabilities >= threshold
            most = max(int(sure[:n_first].sum(axis=1).max()), 1)
            sure = sure[:, :most]
            counts.append((most, sure.sum(), (sure & right[:, :most]).sum()))
        return cls(*np.array(counts, np.int64).T)

    def estimates(self) -> Floats:
        """Return for each target the lowest threshold at which such a share is right; inf without one."""
        share = np.where(self.kept >= MIN_KEPT, self.right / np.maximum(self.kept, 1), 0.0)
        reached = share >= TARGETS[:, None]
        lowest = len(GRID) - 1 - reached[:, ::-1].argmax(axis=1)
        return np.where(reached.any(axis=1), GRID[lowest], np.inf)


def learn_precision(tops: Sequence[TopK], truth: Sequence[Csr], random_state: int = 0) -> PrecisionThresholds:
    """Return the thresholds of groups of held-out documents, each with its most probable and its true labels."""
    if not tops:
        return PrecisionThresholds.none()
    joined = TopK(np.concatenate([top.labels for top in tops]), np.concatenate([top.scores for top in tops]))
    return PrecisionThresholds.learn(joined, sp.vstack(truth).tocsr(), random_state)


def learn_consistent_precision(
    tops: Sequence[TopK], truth: Sequence[Csr], hierarchy: Hierarchy | None, random_state: int = 0
) -> PrecisionThresholds | None:
    """Return the thresholds of answers with ancestors, right where a label below is; None without a hierarchy."""
    if hierarchy is None:
        return None
    try:
        closed = [hierarchy.closed(Y) for Y in truth]
    except DataError:  # so deep that labels have too many ancestors
        return None
    return learn_precision([ancestor_probabilities(top, hierarchy, CLOSED) for top in tops], closed, random_state)


def _starts(probabilities: Floats, most: Longs) -> Longs:
    """Return for each target the place in the grid where the test is most powerful if the probabilities are right.

    A threshold that keeps so few labels that the test fails even if all are right is no start.
    """
    p = -np.sort(-probabilities[probabilities > -np.inf].astype(np.float64))
    kept = np.searchsorted(-p, -GRID, side="right")  # labels at each threshold
    right, target = np.concatenate([[0.0], np.cumsum(p)])[kept], TARGETS[:, None]
    power = (right - target * kept) / np.sqrt(target * (1 - target) * np.maximum(kept, 1))
    largest_gain = np.log1p(LARGEST_BET / (target * most) * (1 - target))
    enough = kept * (1 / FIRST_SHARE - 1) * largest_gain >= -2 * np.log(1 - CONFIDENCE)
    return np.minimum.accumulate(np.where(enough, power, power - 1e9).argmax(axis=1))
