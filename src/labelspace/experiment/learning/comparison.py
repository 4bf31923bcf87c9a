"""Compare two versions of a model on documents that neither learned from."""

from __future__ import annotations

from typing import NamedTuple

from labelspace import metrics
from labelspace.data.label_mapping import matched_labels
from labelspace.labels.edits import labels_in_use
from labelspace.tagger import Tagger
from labelspace.tagger.lineage import Figure, HeldOutFigures
from labelspace.types import Csr, Dataset

METRIC = "nDCG@5"
K = 5


class HeldOut(NamedTuple):
    """Documents with labels that a model does not learn from, and what they are called."""

    documents: Dataset
    source: str


class Change(NamedTuple):
    """The change of a metric from one version to the next, in percentage points, with its 95 % interval."""

    figures: HeldOutFigures
    difference: float
    low: float
    high: float

    @property
    def is_loss(self) -> bool:
        """True if the metric fell by more than its noise: the whole interval lies below 0."""
        return self.high < 0

    @property
    def is_fall(self) -> bool:
        """True if the metric fell, maybe by chance."""
        return self.difference < 0

    def __str__(self) -> str:
        assert self.figures.old is not None
        values = f"{self.figures.old.value:.2f} to {self.figures.new.value:.2f}"
        span = f"the 95 % interval of the difference is {self.low:.2f} to {self.high:.2f}"
        return f"{METRIC} falls from {values} on {self.figures.n:,} documents of {self.figures.source} ({span})"


def document_values(tagger: Tagger, documents: Dataset) -> metrics.DocumentValues:
    """Return the nDCG@5 of each document with labels; labels that the model does not know count as missed.

    The labels are matched by name, so that models may number them differently.
    """
    top = tagger.predict_topk(tagger.inputs_of(documents), K)
    return metrics.per_document(true_labels(tagger, documents), top, ks=(K,), propensity_from="test")[METRIC]


def true_labels(tagger: Tagger, documents: Dataset) -> Csr:
    """Return the labels of documents under the ids of a tagger, and then those that it does not know.

    A label that was merged into another one counts as that one, and a retired label is left out.
    """
    Y, labels = matched_labels(documents.Y, documents.labels, tagger.labels_)
    return labels_in_use(Y, labels)


def changed(old: metrics.DocumentValues, new: metrics.DocumentValues, source: str) -> Change:
    """Return the change between two versions, whose values are of the same documents."""
    difference, (low, high) = metrics.paired_difference(old, new)
    figures = HeldOutFigures(source, len(new.numerators), figure(old), figure(new))
    return Change(figures, 100 * difference, 100 * low, 100 * high)


def figure(values: metrics.DocumentValues) -> Figure:
    """Return a metric in percent with its interval."""
    low, high = metrics.confidence_intervals({METRIC: values})[METRIC]
    return Figure(*(round(100 * value, 4) for value in (values.value(), low, high)))
