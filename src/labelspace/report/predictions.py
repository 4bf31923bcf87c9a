"""Predictions for documents as they are printed and written: labels by number and score, and as a JSON object."""

from __future__ import annotations

from itertools import repeat
from math import isinf
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # heavy imports happen inside the functions, so that --help stays fast
    from collections import Counter
    from collections.abc import Iterable, Iterator

    from labelspace.data.answer_files import LabelDisplay, Prediction
    from labelspace.data.records import Record
    from labelspace.labels.tag_options import TagOptions
    from labelspace.tagger import Tagger
    from labelspace.tagger.answers import DocumentAnswer
    from labelspace.tagger.reranking import Reranker


class PredictRequest(NamedTuple):
    """A model, and how it tags documents."""

    tagger: Tagger
    k: int
    options: TagOptions
    display: LabelDisplay
    reranker: Reranker | None = None

    @property
    def n_candidates(self) -> int:
        """The number of labels that the model ranks: as many as are shown, or as are reranked."""
        return self.k if self.reranker is None else max(self.k, self.reranker.settings.n_candidates)

    def answers(self, texts: list[str]) -> list[DocumentAnswer]:
        """Return the answer to each text."""
        found = self.tagger.answers(texts, self.n_candidates, **self.options).documents(self.tagger.labels_)
        return found if self.reranker is None else self.reranker.rerank(texts, found, self.k)


def predictions(
    records: Iterable[Record], source: str, request: PredictRequest, problems: Counter[str]
) -> Iterator[Prediction]:
    """Yield the predictions for documents; count in ``problems`` the documents in which the model reads nothing.

    ``source`` names where the documents come from in messages.
    """
    from labelspace.data.answer_files import Prediction
    from labelspace.tagger.inputs import document_answers

    tagger, options, display = request.tagger, request.options, request.display
    answers = document_answers(tagger, records, request.n_candidates, source, options)
    if request.reranker is not None:
        answers = request.reranker.stream(answers, request.k)
    for record, answer in answers:
        problem = answer.problem((record.features if tagger.ready_made else record.text) or "")
        problems.update([problem] if problem is not None else [])
        row = {"id": record.id, **as_plain(answer, problem, options, display)}
        yield Prediction(record, answer.labels, answer.scores, row)


def as_plain(answer: DocumentAnswer, note: str | None, options: TagOptions, display: LabelDisplay) -> dict[str, Any]:
    """Return the labels of one document as plain values, those that were left out, and the note, if any."""
    probabilities = answer.probabilities or repeat(None)
    plain: dict[str, Any] = {"labels": list(map(display.as_json, answer.labels, answer.scores, probabilities))}
    if answer.is_reranked is not None:
        plain["reranked"] = answer.is_reranked
    if options.get("min_probability") is not None or options.get("precision") is not None:
        plain["left_out"] = [
            {**display.as_json(each.label, each.score), "reason": each.reason} for each in answer.left_out
        ]
    return plain if note is None else {**plain, "note": note}


def about_precision(tagger: Tagger, options: TagOptions) -> dict[str, Any]:
    """Return the requested precision and the threshold that reaches it as plain values; empty without a precision."""
    precision = options.get("precision")
    if precision is None:
        return {}
    found = tagger.precision_threshold(precision, options.get("consistent", False))
    threshold = None if isinf(found.threshold) else round(found.threshold, 6)
    kept = {"threshold": threshold, "coverage": round(found.coverage, 6), "confidence": found.confidence}
    return {"precision": {"asked": precision, **kept}}
