"""Tell whether documents have moved away from those that a model learned from.

Four figures of some documents, each beside what is to be expected of documents like those of the training:

1. The share of unknown words: of the different words of each document, those that the features do not know. What is to
   be expected follows from how many training documents have each word (``features.unknown_words``).
2. The mean probability of the best label.
3. Calibration, where documents have labels: ECE@5, the mean gap between the probability of a suggestion and how often
   such suggestions are right. Few documents have a gap by chance, which is to be expected.
4. How often each label is suggested, and how often it was in training: its probability summed over documents is the
   number of documents that should have it. An exact test of two proportions, given their sum (the binomial test of
   equal rates), corrected for the number of labels by Holm's method, tells which labels have changed. Beside the
   training documents, it tells only which ones are more frequent now: words hardly tell some labels, and these have
   too low a probability in documents like those of the training too (381 labels of 24,828 of YSO-Finna-EN).

All figures have a better reference if there are documents for it that the model did not learn from: those that
it keeps for the comparison of its versions, or a file. Figure 2 has no other. A figure has changed if the difference is
both large enough to matter and too large for chance, so that a few documents, or very many, do not raise an alarm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import pi, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.special import bdtr, bdtrc

from labelspace.data.records import to_records
from labelspace.errors import DataError
from labelspace.experiment.evaluate import percent
from labelspace.experiment.labeled_batches import LabeledDocuments
from labelspace.features.base import Features
from labelspace.features.unknown_words import UnknownWords
from labelspace.metrics.bootstrap import holm
from labelspace.metrics.calibration import N_BINS, ReliabilityBins
from labelspace.models.capabilities import Calibrated
from labelspace.tagger import Tagger
from labelspace.types import Bools, Csr, Doubles, Longs, TopK

DEPTH = 10  # labels of a document whose probabilities are summed: further ones have a probability of about 0
CALIBRATION_K = 5
SUGGESTED = 0.5  # probability from which a label is suggested
MIN_DOCUMENTS = 50  # fewer documents tell nothing
MIN_LABELED = 50
SIGNIFICANT = 0.01
CHANCE = 3.0  # standard errors that a difference by chance hardly exceeds
MORE_UNKNOWN = 1.5  # times the expected share of unknown words that matter
LESS_SURE = 0.9  # of the expected mean probability
GAP = 0.03  # in calibration, beyond that by chance
FACTOR = 1.5  # between two rates of a label that matters
TRAINING = "training documents"
HELD_OUT = "training, and documents held out of it"
LISTED = 20  # labels that are listed, those that changed most
FEW, NOTHING, LEARN, LOOK = "few", "nothing", "learn", "labels"
VERDICTS = {
    FEW: f"too few documents to tell; give at least {MIN_DOCUMENTS}",
    NOTHING: "nothing to do: these documents are like those that the model learned from",
    LOOK: "look at these labels: they are suggested more or less often than before; review some documents "
    "with them, and learn them if the labels are right",
    LEARN: "learn: label some of these documents (labelspace review), and let the model learn them (labelspace learn)",
}


class Mean(NamedTuple):
    """A mean over documents and its standard error."""

    value: float
    error: float


@dataclass
class DriftCounts:
    """Sums over documents, from which the figures are made; a few numbers per label, whatever the number of documents.

    >>> counts = DriftCounts(n_labels=2)
    >>> counts.add(TopK.from_scores([[0.9, 0.2], [0.1, 0.7]], k=2))
    >>> round(counts.top_probability.value, 2), counts.suggested.tolist(), counts.expected.round(1).tolist()
    (0.8, [1, 1], [1.0, 0.9])
    """

    n_labels: int
    n: int = 0
    n_labeled: int = 0
    suggested: Longs = field(init=False)  # (n_labels,) documents where a label has a probability of SUGGESTED or more
    expected: Doubles = field(init=False)  # (n_labels,) sums of the probabilities

    def __post_init__(self) -> None:
        self.suggested = np.zeros(self.n_labels, np.int64)
        self.expected = np.zeros(self.n_labels)
        self._best = np.zeros(2)  # sums of the best probability, and of its square
        self._words = np.zeros(5)  # sums of unknown words u, words w, u u, u w and w w
        self._bins = np.zeros((3, N_BINS))  # predictions, and sums of probabilities and of right ones

    def add(self, top: TopK) -> None:
        """Count documents by their best labels, with probabilities as scores."""
        is_label = top.labels >= 0
        p = np.where(is_label, top.scores.astype(np.float64), 0.0)
        labels = top.labels[is_label]
        self.n += len(top)
        self.suggested += np.bincount(top.labels[is_label & (p >= SUGGESTED)], minlength=self.n_labels)
        self.expected += np.bincount(labels, p[is_label], minlength=self.n_labels)
        self._best += [p[:, 0].sum(), (p[:, 0] ** 2).sum()]

    def add_words(self, found: UnknownWords) -> None:
        """Count the words of documents."""
        u, w = found.unknown.astype(np.float64), found.words.astype(np.float64)
        self._words += [u.sum(), w.sum(), u @ u, u @ w, w @ w]

    def add_labeled(self, top: TopK, Y: Csr) -> None:
        """Count documents with their labels Y (n, n_labels), whose best labels have probabilities as scores."""
        bins = ReliabilityBins.from_topk(Y, top, CALIBRATION_K)
        n = bins.n.astype(np.float64)
        self.n_labeled += len(top)
        self._bins += [n, n * np.nan_to_num(bins.probability), n * np.nan_to_num(bins.accuracy)]

    @property
    def top_probability(self) -> Mean:
        """The mean probability of the best label."""
        total, squares = self._best.tolist()
        n = max(self.n, 1)
        mean = total / n
        return Mean(mean, sqrt(max(squares / n - mean * mean, 0.0) / n))

    @property
    def unknown_words(self) -> Mean | None:
        """The share of unknown words; None without words."""
        u, w, uu, uw, ww = self._words.tolist()
        if not w:
            return None
        share = u / w
        return Mean(share, sqrt(max(uu - 2 * share * uw + share * share * ww, 0.0)) / w)

    @property
    def calibration(self) -> Mean | None:
        """ECE@5, and in place of the error the gap that is to be expected by chance; None without labels."""
        n, probabilities, right = self._bins
        used = n > 0
        total = n.sum()
        if not total:
            return None
        gap = np.abs(probabilities - right)[used].sum() / total
        p = probabilities[used] / n[used]
        by_chance = np.sqrt(2 * n[used] * p * (1 - p) / pi).sum() / total  # the mean of |x| of a normal variable
        return Mean(float(gap), float(by_chance))


class Reference(NamedTuple):
    """What is to be expected of documents like those of the training."""

    source: str  # what the documents are called
    unknown_words: Mean | None
    top_probability: Mean | None
    counts: Longs | None  # (n_labels,) documents with each label, or where it was suggested if ``of_suggestions``
    n: int  # documents
    of_suggestions: bool = False
    calibration: Mean | None = None  # of documents that the model did not learn from


class ChangedLabels(NamedTuple):
    """The labels that changed, those that changed most first."""

    labels: Longs
    before: Doubles  # shares of documents
    now: Doubles
    p: Doubles  # corrected
    n_tested: int


@dataclass(frozen=True)
class Drift:
    """The figures of some documents beside what is to be expected."""

    counts: DriftCounts
    reference: Reference
    calibrated: bool
    seen: float | None = None  # share of the documents that was in the training data; None if it is not known

    @property
    def is_enough(self) -> bool:
        """Whether there are enough documents to tell something."""
        return self.counts.n >= MIN_DOCUMENTS

    @property
    def has_unknown_words(self) -> bool:
        """Whether more words are unknown than is to be expected."""
        found, expected = self.counts.unknown_words, self.reference.unknown_words
        if found is None or expected is None or not self.is_enough:
            return False
        error = sqrt(found.error**2 + expected.error**2)
        return found.value >= MORE_UNKNOWN * expected.value and found.value - expected.value > CHANCE * error

    @property
    def is_less_sure(self) -> bool:
        """Whether the best labels are less probable than is to be expected."""
        found, expected = self.counts.top_probability, self.reference.top_probability
        if expected is None or not self.is_enough or not self.calibrated:
            return False
        error = sqrt(found.error**2 + expected.error**2)
        return found.value <= LESS_SURE * expected.value and expected.value - found.value > CHANCE * error

    @property
    def is_miscalibrated(self) -> bool:
        """Whether probabilities say something else than how often suggestions are right."""
        found, expected = self.counts.calibration, self.reference.calibration
        if found is None or self.counts.n_labeled < MIN_LABELED:
            return False
        least = found.error if expected is None else max(found.error, expected.value)
        return found.value > GAP + least

    @cached_property
    def changed_labels(self) -> ChangedLabels:
        """The labels that are suggested more or less often than is to be expected."""
        counts = self.reference.counts
        if counts is None or not self.reference.n or not self.is_enough or not self.calibrated:
            none = np.zeros(0)
            return ChangedLabels(np.zeros(0, np.int64), none, none, none, 0)
        now = self.counts.suggested if self.reference.of_suggestions else np.rint(self.counts.expected)
        return changed_labels(now, self.counts.n, counts, self.reference.n, self.reference.of_suggestions)

    @property
    def advice(self) -> str:
        """What to do: a key of ``VERDICTS``."""
        if not self.is_enough:
            return FEW
        if self.has_unknown_words or self.is_less_sure or self.is_miscalibrated:
            return LEARN
        return LOOK if len(self.changed_labels.labels) else NOTHING

    def as_json(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the figures as plain values, shares and probabilities in percent."""
        counts, reference, changed = self.counts, self.reference, self.changed_labels
        n = max(counts.n, 1)
        listed = [
            {
                "label": names[label],
                "suggested": percent(counts.suggested[label] / n),
                "expected": percent(counts.expected[label] / n),
                "before": percent(changed.before[at]),
                "p": float(changed.p[at]),
            }
            for at, label in enumerate(changed.labels[:LISTED].tolist())
        ]
        calibration = counts.calibration
        return {
            "n": counts.n,
            "n_labeled": counts.n_labeled,
            "seen_in_training": None if self.seen is None else percent(self.seen),
            "reference": reference.source,
            "unknown_words": _beside(counts.unknown_words, reference.unknown_words, self.has_unknown_words),
            "top_probability": _beside(
                counts.top_probability if self.calibrated and counts.n else None,
                reference.top_probability,
                self.is_less_sure,
            ),
            "calibration": {
                f"ECE@{CALIBRATION_K}": None if calibration is None else percent(calibration.value),
                "by_chance": None if calibration is None else percent(calibration.error),
                "changed": self.is_miscalibrated,
            },
            "labels": {"n_tested": changed.n_tested, "n_changed": len(changed.labels), "changed": listed},
            "advice": self.advice,
            "verdict": VERDICTS[self.advice],
        }


def _beside(found: Mean | None, expected: Mean | None, changed: bool) -> dict[str, Any]:
    return {
        "mean": None if found is None else percent(found.value),
        "expected": None if expected is None else percent(expected.value),
        "changed": changed,
    }


def changed_labels(
    now: Doubles | Longs, n_now: int, before: Doubles | Longs, n_before: int, may_fall: bool = True
) -> ChangedLabels:
    """Return the labels whose shares of documents differ, by the binomial test of equal rates and Holm's correction.

    Unless they ``may_fall``, only those whose shares rose are returned.

    >>> found = changed_labels(np.array([30, 100]), 1000, np.array([50, 1000]), 10_000)
    >>> found.labels.tolist(), found.now.tolist(), found.before.tolist(), found.n_tested
    ([0], [0.03], [0.005], 2)
    """
    total = np.asarray(now, np.float64) + before
    tested = np.flatnonzero(total > 0)
    x, m = np.asarray(now, np.float64)[tested], total[tested]
    share = n_now / (n_now + n_before)
    at_most = bdtr(x, m.astype(np.int64), share)
    at_least = np.where(x > 0, bdtrc(np.maximum(x - 1, 0), m.astype(np.int64), share), 1.0)
    p = holm(np.minimum(1.0, 2 * np.minimum(at_most, at_least)) if may_fall else at_least)
    rate_now, rate_before = x / n_now, (m - x) / n_before
    is_large = (rate_now >= FACTOR * rate_before) | (may_fall & (rate_before >= FACTOR * rate_now))
    found = np.flatnonzero((p < SIGNIFICANT) & is_large)
    found = found[np.argsort(p[found], kind="stable")]
    return ChangedLabels(tested[found], rate_before[found], rate_now[found], p[found], len(tested))


def word_features(tagger: Tagger) -> Features | None:
    """Return the features of a tagger that can tell unknown words; None if none can."""
    if tagger.features_ is None:
        return None
    made = tagger.features_.features_.values()
    return next((each for each in made if each.unknown_words([""]) is not None), None)


def training_reference(tagger: Tagger) -> Reference:
    """Return what is to be expected of documents by what a model knows of its training documents."""
    words = word_features(tagger)
    share = None if words is None else words.expected_unknown
    unknown = None if share is None else Mean(share, 0.0)
    labels = tagger.labels_
    counts = labels.counts
    if counts is not None and labels.current is not None:  # a merged label is answered as another, a retired one never
        kept = labels.answerable
        counts = np.bincount(labels.current[kept], counts[kept], minlength=len(labels)).astype(np.int64)
    return Reference(TRAINING, unknown, None, counts, labels.n_documents)


def count_documents(documents: LabeledDocuments) -> DriftCounts:
    """Return the sums over documents, of which a batch is in memory at a time."""
    tagger = documents.tagger
    words = word_features(tagger)
    n_labels = len(tagger.labels_)
    calibrated = isinstance(tagger.model, Calibrated)
    counts = DriftCounts(n_labels)
    for batch in documents.batches():
        if words is not None:
            found = words.unknown_words(batch.inputs)
            if found is not None:
                counts.add_words(found)
        if not calibrated:
            counts.n += len(batch.records)
            continue
        top = tagger.predict_topk(batch.inputs, min(DEPTH, n_labels), calibrated=True)
        counts.add(top)
        rows = np.flatnonzero(batch.are_labeled)
        if len(rows):
            known: Bools = np.arange(batch.given.shape[1]) < n_labels
            Y = batch.given[rows][:, known]
            counts.add_labeled(TopK(top.labels[rows], top.scores[rows]).padded(CALIBRATION_K), Y)
    return counts


def find_drift(documents: LabeledDocuments, reference: LabeledDocuments | None = None) -> Drift:
    """Return the figures of documents, beside those of reference documents or else of the training documents."""
    tagger = documents.tagger
    tagger.check_fitted()
    expected = reference_of(tagger) if reference is None else _of_file(reference)
    counts = count_documents(documents)
    if not documents.n:
        raise DataError(f"{documents.source} must hold at least one document, but has none; give another file")
    return Drift(counts, expected, isinstance(tagger.model, Calibrated), documents.seen.share)


def reference_of(tagger: Tagger) -> Reference:
    """Return what is to be expected by what a model knows of its training, and by the documents that it keeps."""
    expected, held_out = training_reference(tagger), tagger.held_out_
    if held_out is None or len(held_out) < MIN_DOCUMENTS:
        return expected
    kept = LabeledDocuments(tagger, to_records(held_out.dataset(tagger.labels_, tagger.side_columns)), HELD_OUT)
    counts = count_documents(kept)
    best = counts.top_probability if isinstance(tagger.model, Calibrated) else None
    unknown, gap = counts.unknown_words, counts.calibration
    return expected._replace(source=HELD_OUT, unknown_words=unknown, top_probability=best, calibration=gap)


def _of_file(reference: LabeledDocuments) -> Reference:
    counts = count_documents(reference)
    if counts.n < MIN_DOCUMENTS:
        rule = f"reference documents must be at least {MIN_DOCUMENTS}"
        raise DataError(f"{rule}, but {reference.source} has {counts.n}; give more, or none")
    if not isinstance(reference.tagger.model, Calibrated):
        return Reference(reference.source, counts.unknown_words, None, None, counts.n)
    unknown, best = counts.unknown_words, counts.top_probability
    return Reference(reference.source, unknown, best, counts.suggested, counts.n, True, counts.calibration)
