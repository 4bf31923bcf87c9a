"""The predictions for documents as they are printed and written: labels by number and score, and as a JSON object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # heavy imports happen inside the functions, so that --help stays fast
    from collections import Counter
    from collections.abc import Iterable, Iterator

    from labelspace.data.answer_files import LabelDisplay, Prediction
    from labelspace.data.records import Record
    from labelspace.tagger import Tagger
    from labelspace.tagger.answers import Answer, TagOptions


class PredictRequest(NamedTuple):
    """What is asked of documents."""

    tagger: Tagger
    k: int
    options: TagOptions
    display: LabelDisplay


def predictions(
    records: Iterable[Record], source: str, request: PredictRequest, problems: Counter[str]
) -> Iterator[Prediction]:
    """The predictions for documents; counts documents that say nothing to the model by ``problems``.

    ``source`` names where the documents come from in messages.
    """
    from labelspace.data.answer_files import Prediction
    from labelspace.unread import Unread

    tagger, k, options, display = request
    unread, index = Unread(tagger, k, options), tagger.labels_.index
    for record, answer in tagger.answer_stream(records, k, source, **options):
        problem = unread((record.features if tagger.ready_made else record.text) or "", answer.tags)
        problems.update([problem] if problem is not None else [])
        row = {"id": record.id, **as_plain(answer, problem, options, display)}
        labels, scores = [index[name] for name, _ in answer.tags], [score for _, score in answer.tags]
        yield Prediction(record, labels, scores, row)


def as_plain(answer: Answer, note: str | None, options: TagOptions, display: LabelDisplay) -> dict[str, Any]:
    """The tags of one document as plain values, what was left out, and a note where the model reads nothing in it."""
    plain: dict[str, Any] = {"labels": [display.as_json(name, score) for name, score in answer.tags]}
    if options.get("min_probability") is not None or options.get("precision") is not None:
        plain["left_out"] = [
            {**display.as_json(label.label, label.score), "reason": label.reason} for label in answer.left_out
        ]
    return plain if note is None else {**plain, "note": note}
