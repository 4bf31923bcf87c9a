"""Predictions for documents as they are printed and written: labels by number and score, and as a JSON object."""

from __future__ import annotations

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


class PredictRequest(NamedTuple):
    """A model, and how it tags documents."""

    tagger: Tagger
    k: int
    options: TagOptions
    display: LabelDisplay


def predictions(
    records: Iterable[Record], source: str, request: PredictRequest, problems: Counter[str]
) -> Iterator[Prediction]:
    """Yield the predictions for documents; count in ``problems`` the documents in which the model reads nothing.

    ``source`` names where the documents come from in messages.
    """
    from labelspace.data.answer_files import Prediction
    from labelspace.tagger.inputs import document_answers

    tagger, _, options, display = request
    for record, answer in document_answers(tagger, records, request.k, source, options):
        problem = answer.problem((record.features if tagger.ready_made else record.text) or "")
        problems.update([problem] if problem is not None else [])
        row = {"id": record.id, **as_plain(answer, problem, options, display)}
        yield Prediction(record, answer.labels, answer.scores, row)


def as_plain(answer: DocumentAnswer, note: str | None, options: TagOptions, display: LabelDisplay) -> dict[str, Any]:
    """Return the labels of one document as plain values, those that were left out, and the note, if any."""
    labels = map(display.as_json, answer.labels, answer.scores)
    plain: dict[str, Any] = {"labels": list(labels)}
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
