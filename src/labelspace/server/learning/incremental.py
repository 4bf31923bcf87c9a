"""Learning from feedback that goes on from the current model: its cost grows with the new feedback.

1. The texts with new feedback are the documents: accepted and added labels are theirs, rejected ones are not.
2. The versions are compared on ``test.*`` or ``dev.*`` of the data, without texts that people gave feedback on, or on
   the sample that is stored with the model, which no version learns from.
3. The new version is used unless its nDCG@5 falls by more than its noise (paired bootstrap), or this is insisted on.
"""

from pathlib import Path
from typing import Any

import numpy as np

from labelspace.data.read_options import ReadOptions
from labelspace.experiment.learning.comparison import METRIC, Change, HeldOut
from labelspace.experiment.learning.held_out import (
    STORED,
    LearningDocuments,
    given_held_out,
    put_sample_aside,
    stored_held_out,
    without_held_out,
)
from labelspace.experiment.learning.learn import learn_documents
from labelspace.models.capabilities import PartialFit
from labelspace.server.database import Database, Feedback
from labelspace.server.learning.feedback_documents import learning_documents
from labelspace.server.learning.learned_batches import settle
from labelspace.server.learning.outcome import FEEDBACK, LearnOptions, refused, swapped
from labelspace.tagger import Tagger
from labelspace.tagger.held_out import HeldOutDocuments
from labelspace.tagger.lineage import Origin
from labelspace.tagger.versions import open_versioned
from labelspace.types import Progress


def learn_more(
    folder: Path, data: str | None, database: Database, model: str, progress: Progress, options: LearnOptions
) -> dict[str, Any] | None:
    """Let the model of a folder learn the feedback that it has not learned yet; return the outcome as plain values.

    Return None if its method cannot go on learning.
    """
    with open_versioned(folder) as versions:
        tagger = Tagger.load(folder)
        if not isinstance(tagger.model, PartialFit):
            return None
        settle(database, model, versions.lineage)
        batch, new = database.take_feedback(model)
        every = database.feedback(model)
        given = learning_documents(new, every, tagger.labels_)
        progress("reading the held-out documents", 0, 1)
        compared_on = held_out(tagger, data, every)
        chosen, compared_on, is_new_sample = split(tagger, given, compared_on)
        n_texts = len({entry.text for entry in new})
        used: dict[str, Any] = {
            "mode": "incremental",
            "n_feedback": len(new),
            "n_corrected_documents": 0,
            "n_new_documents": len(chosen.documents),
            "n_unused_documents": n_texts - len(chosen.documents),
            "compared_with": "the current model",
        }
        if not len(chosen.documents):
            why = f"none of the {n_texts:,} texts with new feedback has a label to learn"
            reason = why if new else "there is no new feedback"
            return {**used, "swapped": False, "refused": False, "reason": reason, "version": None}
        progress("learning", 0, 1)
        step = learn_documents(tagger, versions.next_number(), chosen, compared_on, Origin(FEEDBACK, batch))
        used |= compared_figures(step.change)
        used["learn_seconds"] = round(step.taken.wall, 3)
        if step.change is not None and step.change.is_loss and not options.force:
            return {**used, **refused(f"{step.change}: more than chance")}
        if is_new_sample and compared_on is not None:
            tagger.held_out_ = HeldOutDocuments.of(compared_on.documents)
        progress("saving the new version", 0, 1)
        versions.add(tagger, step.version, options.n_kept)
        settle(database, model, versions.lineage)
    return {**used, **swapped(_reason(step.change), step.version)}


def held_out(tagger: Tagger, data: str | None, every: list[Feedback]) -> HeldOut | None:
    """Return the documents to compare versions by; those of a file without the texts that have feedback."""
    found = given_held_out(tagger, None, None if data is None else Path(data), ReadOptions())
    if found is None or found.source == STORED:
        return found
    reviewed = {entry.text for entry in every}
    kept = np.array([text not in reviewed for text in found.documents.texts or []], bool)
    documents = found.documents.rows(np.flatnonzero(kept))
    return HeldOut(documents, found.source) if documents.Y.nnz else stored_held_out(tagger)


def split(
    tagger: Tagger, given: LearningDocuments, compared_on: HeldOut | None
) -> tuple[LearningDocuments, HeldOut | None, bool]:
    """Return the documents to learn, those to compare by, and whether these are a new sample of the first.

    Only the sample of a model is kept apart from feedback: it is made to stay the same.
    """
    if not len(given.documents):
        return given, compared_on, False
    chosen = without_held_out(tagger, given, stored_held_out(tagger))
    if compared_on is not None or not len(chosen.documents):
        return chosen, compared_on, False
    rest, sample = put_sample_aside(tagger, chosen)
    return rest, sample, sample is not None


def compared_figures(change: Change | None) -> dict[str, Any]:
    """Return the figures of both versions, and the interval of their difference; None if nothing was compared."""
    if change is None or change.figures.old is None:
        return {"current": {}, "candidate": {}, "held_out": None, "difference": None}
    figures = change.figures
    return {
        "current": {METRIC: round(change.figures.old.value, 4)},
        "candidate": {METRIC: round(figures.new.value, 4)},
        "held_out": {"n": figures.n, "from": figures.source},
        "difference": [round(value, 4) for value in (change.difference, change.low, change.high)],
    }


def _reason(change: Change | None) -> str:
    if change is None:
        return "no held-out documents compare the versions: start the server with --data and a test.*"
    if change.is_loss:
        return f"{change}: more than chance, but this was insisted on"
    if change.is_fall:
        return f"{change}: this may be chance"
    return f"{METRIC} of the new version is {0.0 + change.difference:+.2f} points against the one before"
