"""Compare the answers of two models to the same documents: which documents and labels changed, better and worse.

1. Labels are those of the new model, matched by name or URI; what it merged counts as merged for the old model too, and
   what it retired counts for neither.
2. nDCG@5 of the two is compared by the paired bootstrap.
3. Each model answers the labels that reach its own threshold, as in ``by_label``. A change is a label that one of the
   two answers to a document has right, and the other one wrong.
4. For each label McNemar's exact test tells whether its changes are more than chance, corrected for the number of
   labels (Holm).
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from labelspace import metrics
from labelspace.data.label_mapping import widened
from labelspace.errors import DataError
from labelspace.experiment.by_label import of_labeled
from labelspace.experiment.evaluate import predict_unfiltered, threshold_depth, without_filtered
from labelspace.experiment.learning.comparison import METRIC, Change, K, changed
from labelspace.labels.edits import labels_in_use
from labelspace.models.capabilities import Calibrated
from labelspace.tagger import Tagger
from labelspace.types import Csr, Dataset, LabelSpace, Longs, TopK

N_DOCUMENTS = 20  # that lost most, and that gained most
TEXT_LENGTH = 160


class LabelChange(NamedTuple):
    """How often a label became right, and wrong."""

    label: str
    n: int  # documents that have it
    better: int
    worse: int
    p_holm: float | None  # None if the changes are too few to test

    @property
    def is_significant(self) -> bool:
        """True if the changes are more than chance."""
        return self.p_holm is not None and self.p_holm < metrics.SIGNIFICANT


class DocumentChange(NamedTuple):
    """A document whose nDCG@5 changed, in percentage points."""

    id: str
    text: str
    difference: float
    better: list[str]  # labels that became right: found, or no longer wrongly answered
    worse: list[str]


@dataclass(frozen=True)
class ModelDiff:
    """What changes from an old model to a new one."""

    change: Change  # of nDCG@5
    n_better: int  # documents by their nDCG@5
    n_worse: int
    n_tested: int  # labels
    labels: list[LabelChange]  # changed ones, the surest first
    gains: list[DocumentChange]  # largest first
    losses: list[DocumentChange]

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain values, in percent."""
        figures, change = self.change.figures, self.change
        assert figures.old is not None
        return {
            "metric": METRIC,
            "n": figures.n,
            "old": figures.old.value,
            "new": figures.new.value,
            "difference": round(change.difference, 4),
            "interval": [round(change.low, 4), round(change.high, 4)],
            "documents": {"better": self.n_better, "worse": self.n_worse},
            "n_mcnemar_test": self.n_tested,
            "labels": [{**each._asdict(), "significant": each.is_significant} for each in self.labels],
            "gains": [each._asdict() for each in self.gains],
            "losses": [each._asdict() for each in self.losses],
        }


def model_diff(old: Tagger, new: Tagger, old_documents: Dataset, documents: Dataset, source: str) -> ModelDiff:
    """Compare two models on the same documents, each read as its model reads them; ``source`` is their name."""
    if len(old_documents) != len(documents):
        rule = "both models must read the same documents"
        raise DataError(f"{rule}, but read {len(old_documents)} and {len(documents)}; use models of the same layout")
    space = documents.labels.extended(name for name in old.labels_.names if documents.labels.find(name) is None)
    known = np.arange(len(space), dtype=np.int64)
    known[: len(new.labels_)] = new.labels_.answered_as
    found = np.array([space.find(name) for name in old.labels_.names], np.int64)
    Y = widened(labels_in_use(without_filtered(documents).Y, new.labels_), len(space))
    tops = (renumbered(scored_topk(old, old_documents), known[found]), scored_topk(new, documents))
    before, after = (metrics.per_document(Y, top, ks=(K,), propensity_from="test")[METRIC] for top in tops)
    answers = [decided(tagger, Y, top) for tagger, top in zip((old, new), tops, strict=True)]
    found_changes = metrics.changes(Y, *answers)
    difference = 100 * (after.numerators - before.numerators)
    rows = np.flatnonzero(np.diff(Y.indptr) > 0)  # documents without labels have no nDCG
    order = np.argsort(-difference, kind="stable")
    n_better, n_worse = int((difference > 0).sum()), int((difference < 0).sum())
    example = partial(_document, replace(documents, Y=Y, labels=space, filtered=None), found_changes)
    gains = [example(int(rows[at]), float(difference[at])) for at in order[: min(N_DOCUMENTS, n_better)]]
    losses = [example(int(rows[at]), float(difference[at])) for at in order[::-1][: min(N_DOCUMENTS, n_worse)]]
    labels, n_tested = _labels(Y, space, found_changes)
    return ModelDiff(changed(before, after, source), n_better, n_worse, n_tested, labels, gains, losses)


def scored_topk(tagger: Tagger, documents: Dataset) -> TopK:
    """Return the ranked labels of documents, with probabilities if the model is calibrated."""
    depth = threshold_depth(documents, (K,))
    top = predict_unfiltered(tagger.predict_topk, tagger.inputs_of(documents), documents.filtered, depth)
    return tagger.model.to_probabilities(top) if isinstance(tagger.model, Calibrated) else top


def renumbered(top: TopK, number: Longs) -> TopK:
    """Return the labels under other numbers, -1 for none; of labels with equal numbers the first stays.

    >>> renumbered(TopK.from_scores([[0.9, 0.5, 0.1]], k=3), np.array([4, 4, 7])).labels.tolist()
    [[4, 7, -1]]
    """
    labels = np.where(top.labels >= 0, number[top.labels], -1)
    repeated = [(labels[:, :at] == labels[:, at, None]).any(axis=1) for at in range(top.k)]
    kept = (labels >= 0) & ~np.stack(repeated, axis=1)
    return TopK(labels, top.scores).where(kept, top.k)


def decided(tagger: Tagger, Y: Csr, top: TopK) -> TopK:
    """Return the labels that reach the threshold of a model, for documents that have labels."""
    pairs = metrics.ScoredPairs.from_topk(Y, top)
    is_calibrated = isinstance(tagger.model, Calibrated)
    threshold = metrics.expected_threshold(pairs) if is_calibrated else metrics.best_micro_f1(pairs).threshold
    return of_labeled(top.at_least(np.inf if threshold is None else threshold), Y)


def _labels(Y: Csr, space: LabelSpace, found: metrics.Changes) -> tuple[list[LabelChange], int]:
    """Return the changed labels, the surest first, then those of more changes; and how many were tested."""
    better, worse = found.by_label
    tested = metrics.mcnemar_test(better, worse)
    p = np.full(len(space), np.nan)
    p[tested.labels] = tested.p_holm
    n = np.bincount(Y.indices, minlength=len(space))
    order = np.lexsort((-np.abs(better - worse), -(better + worse), p))  # NaN is last
    shown = order[(better + worse)[order] > 0].tolist()
    listed = [
        LabelChange(
            space.names[label],
            int(n[label]),
            int(better[label]),
            int(worse[label]),
            None if np.isnan(p[label]) else round(float(p[label]), 6),
        )
        for label in shown
    ]
    return listed, len(tested.labels)


def _document(documents: Dataset, found: metrics.Changes, row: int, difference: float) -> DocumentChange:
    text = "" if documents.texts is None else " ".join(documents.texts[row].split())
    shown = text if len(text) <= TEXT_LENGTH else text[:TEXT_LENGTH] + " …"
    name = str(row) if documents.ids is None else documents.ids[row]
    better, worse = ([documents.labels.names[label] for label in part[row].indices] for part in found)
    return DocumentChange(name, shown, round(difference, 4), better, worse)
