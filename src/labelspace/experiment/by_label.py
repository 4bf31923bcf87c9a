"""Figures of each label on evaluated documents, with examples of its errors and the words that speak for it.

A label is in an answer if its score reaches a threshold: of a calibrated model the one with the largest expected micro
F1, which needs no true label, and else the one with the largest micro F1 on these documents.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from labelspace import metrics
from labelspace.experiment.evaluate import Answers, Evaluation, hierarchy_of, percent
from labelspace.models.capabilities import Explains
from labelspace.tagger import Tagger
from labelspace.types import Csr, Dataset, LabelSpace, Longs, TopK

N_EXAMPLES = 3  # wrong answers, and missed documents, of a label
N_EXPLAINED = 3  # documents of a label whose words are added up
N_WORDS = 8
TEXT_LENGTH = 160  # characters of an example
ERRORS = ("false_positives", "false_negatives")


class LabelExample(NamedTuple):
    """A document whose answer misses a label, or wrongly has it."""

    id: str
    text: str  # its beginning; empty if there are only features
    score: float | None  # None if the label is not among those that were ranked
    given: list[str]  # true labels
    answered: list[str]


class LabelDetails(NamedTuple):
    """What is behind the figures of a label."""

    words: list[str]  # that speak most for it in its documents
    false_positives: list[LabelExample]  # highest scores first
    false_negatives: list[LabelExample]  # lowest scores first


@dataclass(frozen=True)
class LabelReport:
    """The figures of each label; ``order`` has those that are true or answered somewhere, the lowest F1 first."""

    labels: LabelSpace  # of the model, and then those that only the documents have
    figures: metrics.LabelFigures
    confusions: metrics.Confusions
    order: Longs  # of equal F1 first the label of more documents
    details: dict[int, LabelDetails]  # of the first labels
    threshold: float | None  # None if nothing is answered
    is_expected: bool  # it was chosen by probabilities, without true labels
    depth: int  # labels that were ranked per document

    @property
    def decision(self) -> str:
        """Say when a label is in an answer."""
        if self.threshold is None:
            return "no label is in any answer"
        why = "with the largest expected micro F1, chosen without true labels"
        if not self.is_expected:
            why = "with the largest micro F1 on these documents"
        kind = "probability" if self.is_expected else "score"
        return f"a label is answered if its {kind} is at least {self.threshold:.4g}, the threshold {why}"

    @cached_property
    def training_documents(self) -> Longs:
        """Return the number of training documents of each label."""
        return self.labels.answered_counts

    def row(self, label: int) -> dict[str, Any]:
        """Return the figures of a label, in percent, as plain values; None where one is not defined."""
        found, counts = self.figures, self.figures.counts
        threshold = found.best_threshold[label]
        return {
            "label": self.labels.names[label],
            "n": int(counts.true[label]),
            "training_documents": int(self.training_documents[label]),
            "answered": int(counts.predicted[label]),
            "right": int(counts.hits[label]),
            "precision": _percent(found.precision[label]),
            "recall": _percent(found.recall[label]),
            "f1": _percent(found.f1[label]),
            "average_precision": _percent(found.average_precision[label]),
            "best_threshold": None if np.isnan(threshold) else round(float(threshold), 6),
            "best_f1": _percent(found.best_f1[label]),
            "given_instead": self.confused(self.confusions.given_instead, label),
            "missing_beside": self.confused(self.confusions.missing_beside, label),
        }

    def confused(self, with_labels: TopK, label: int) -> list[tuple[str, int]]:
        """Return the labels that a label is confused with, and how often."""
        pairs = zip(with_labels.labels[label].tolist(), with_labels.scores[label].tolist(), strict=True)
        return [(self.labels.names[other], int(n)) for other, n in pairs if other >= 0]

    def as_json(self) -> dict[str, Any]:
        """Return the decision, and the figures and details of the worst labels."""
        worst = []
        for label, details in self.details.items():
            errors = {name: [each._asdict() for each in getattr(details, name)] for name in ERRORS}
            worst.append({**self.row(label), "words": details.words, **errors})
        return {"threshold": self.threshold, "decision": self.decision, "n_labels": len(self.order), "worst": worst}


def label_report(tagger: Tagger, documents: Dataset, evaluation: Evaluation, n_detailed: int) -> LabelReport:
    """Return the figures of each label, with details of the ``n_detailed`` worst ones."""
    answers = evaluation.answers
    assert answers is not None
    is_expected = "expected_threshold" in evaluation.figures
    threshold = evaluation.figures["expected_threshold" if is_expected else "micro_f1_threshold"]
    figures = metrics.label_figures(answers.pairs, threshold)
    kept = answers.top.at_least(np.inf if threshold is None else threshold)
    if len(answers.pairs.n_true) < len(kept):  # figures leave out documents without labels
        kept = of_labeled(kept, answers.Y)
    order = worst_first(figures)
    labels = tagger.labels_.extended(documents.labels.names)
    labels = replace(labels, hierarchy=hierarchy_of(tagger, documents))
    documents_of = LabelDocuments(tagger, documents, answers, kept)
    details = {label: documents_of.details(label) for label in order[:n_detailed].tolist()}
    confused = metrics.confusions(answers.Y, kept)
    return LabelReport(labels, figures, confused, order, details, threshold, is_expected, answers.top.k)


def of_labeled(top: TopK, Y: Csr) -> TopK:
    """Return answers without those to documents that have no labels.

    >>> import scipy.sparse as sp
    >>> of_labeled(TopK.from_scores([[0.9], [0.8]], k=1), sp.csr_matrix([[1], [0]])).labels.tolist()
    [[0], [-1]]
    """
    return top.where((np.diff(Y.indptr) > 0)[:, None], top.k)


def worst_first(figures: metrics.LabelFigures) -> Longs:
    """Return the labels that are true or answered somewhere: lowest F1 first, then those of more documents."""
    counts = figures.counts
    order = np.lexsort((-counts.predicted, -counts.true, figures.f1))
    return order[~np.isnan(figures.f1[order])]


class LabelDocuments:
    """Finds the documents that are behind the figures of a label."""

    def __init__(self, tagger: Tagger, documents: Dataset, answers: Answers, kept: TopK) -> None:
        self.tagger, self.documents, self.names = tagger, documents, documents.labels.names
        n_labels = answers.Y.shape[1]
        self.true, self.answered = answers.Y, kept.to_csr(n_labels)
        self.by_label = [table.tocsc() for table in (self.true, self.answered)]
        self.scored = answers.top.to_csr(n_labels, with_scores=True).tocsc()
        # Words of documents that are only features have no names.
        self.explains = isinstance(tagger.model, Explains) and not tagger.ready_made and documents.texts is not None

    def details(self, label: int) -> LabelDetails:
        """Return the telling words, and the errors of the highest and of the lowest scores."""
        true, answered = (table.indices[_span(table, label)] for table in self.by_label)
        span = _span(self.scored, label)
        scores = dict(zip(self.scored.indices[span].tolist(), self.scored.data[span].tolist(), strict=True))
        by_score = sorted(true.tolist(), key=lambda row: scores.get(row, -np.inf))
        is_answered = set(answered.tolist())
        missed = [row for row in by_score if row not in is_answered]
        wrong = sorted(is_answered.difference(by_score), key=lambda row: (-scores[row], row))
        examples = ([self._example(row, scores.get(row)) for row in rows[:N_EXAMPLES]] for rows in (wrong, missed))
        return LabelDetails(self._telling_words(label, by_score[::-1][:N_EXPLAINED]), *examples)

    def _example(self, row: int, score: float | None) -> LabelExample:
        texts, ids = self.documents.texts, self.documents.ids
        text = "" if texts is None else " ".join(texts[row].split())
        given, answered = ([self.names[at] for at in table[row].indices] for table in (self.true, self.answered))
        rounded = None if score is None else round(score, 6)
        shown = text if len(text) <= TEXT_LENGTH else text[:TEXT_LENGTH] + " …"
        return LabelExample(str(row) if ids is None else ids[row], shown, rounded, given, answered)

    def _telling_words(self, label: int, rows: Sequence[int]) -> list[str]:
        """Return the words that speak most for a label in some documents; none if the model cannot explain it."""
        shares: defaultdict[str, float] = defaultdict(float)
        if self.documents.texts is not None and self.explains and label < len(self.tagger.labels_):
            for row in rows:
                explained = self.tagger.explain(self.documents.texts[row], [self.names[label]])[0]
                for word in explained.for_and_against(N_WORDS)[0]:
                    shares[word.text.lower()] += word.share
        return sorted(shares, key=lambda word: -shares[word])[:N_WORDS]


def _span(by_label: Csr, label: int) -> slice:
    """Return the place of a label in a table by columns."""
    return slice(by_label.indptr[label], by_label.indptr[label + 1])


def _percent(fraction: float) -> float | None:
    return None if np.isnan(fraction) else percent(fraction)
