"""Store what people decided, and offer documents of an inbox for review, first those where a decision tells the most.

Feedback is stored at once, to be learned later, and withdrawn on request. The orders of the inbox are those of
``labelspace review``, which ``experiment.review`` defines; ``uncertainty`` is another name of ``uncertain``. The
documents of an inbox have no labels before a person decides. So ``suspicious`` are documents that one decision was made
on, for a second look: a label that was accepted is one that the model finds impossible.
"""

import logging
from collections import Counter
from itertools import islice
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Body, Query

from labelspace.data.label_mapping import ones_of_rows
from labelspace.data.read_options import ReadOptions
from labelspace.data.source import iter_records
from labelspace.experiment.label_errors import PREDICTED
from labelspace.experiment.review import SHOWN, KnownLabels, ScoredOrder, chance, check_order, order_values, shortlist
from labelspace.models.capabilities import HasMembers
from labelspace.server import schemas
from labelspace.server.database import Feedback, InboxDocument, new_id
from labelspace.server.inference import MAX_BATCH
from labelspace.server.problems import ProblemError
from labelspace.server.routes.labels import rest_of_path
from labelspace.server.served_model import LoadedModel
from labelspace.server.state import ServerState, State, Writing

logger = logging.getLogger("labelspace.server")
router = APIRouter(prefix="/v1/models/{model}/feedback", tags=["feedback"], dependencies=Writing)
review = APIRouter(prefix="/v1/models/{model}/review", tags=["review"])
SCORED_AT_ONCE = 256  # documents with values of an older model that are scored again before an answer
DECISIONS_AT_ONCE = 512  # decisions that are looked at for suspicious labels
READ_AT_ONCE = 256  # documents of a file that are stored in one transaction
DEFINITION = 2  # of the values; it rises when they are defined anew, so that stored ones are made again
STORED_AS = {"uncertain": "uncertainty", "disagreement": "disagreement", "rare": "rare"}


@router.post("", status_code=201, summary="Store decisions on documents")
async def add_feedback(
    model: str, entries: Annotated[list[schemas.FeedbackBody], Body(min_length=1)], state: State
) -> schemas.FeedbackAnswer:
    """Store decisions durably before the answer. Training is separate: see /learn."""
    state.check_documents(len(entries))
    loaded = state.loaded(model)
    for entry in entries:
        state.check_text(entry.text)
    await state.in_thread(check_labels, loaded, entries)
    ids = await store_feedback(state, model, [stored_entry(entry, loaded.version) for entry in entries])
    count_reviewed(state, model, loaded, entries)
    return schemas.FeedbackAnswer(stored=len(ids), ids=ids)


@router.get("", response_model=schemas.FeedbackList, summary="Stored feedback, oldest first")
async def list_feedback(
    model: str,
    state: State,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
) -> dict[str, Any]:
    """List feedback with its texts; since it has texts, this needs a write key."""
    state.served(model)
    found = await state.in_thread(state.database.feedback, model, limit, offset)
    total = await state.in_thread(state.database.count_feedback, model)
    return {"feedback": found, "total": total}


@router.delete("/" + rest_of_path("feedback_id"), summary="Take feedback back")
async def withdraw(model: str, feedback_id: str, state: State) -> schemas.Withdrawn:
    """Delete feedback; its document of the inbox is pending again.

    What the model has learned from it stays until a full training, or a return to a version before.
    """
    state.served(model)
    if not await state.in_thread(state.database.withdraw_feedback, model, feedback_id):
        detail = f"the id must be that of stored feedback, but {feedback_id[:80]!r} is not; see /feedback"
        raise ProblemError(404, detail)
    return schemas.Withdrawn(withdrawn=feedback_id)


async def store_feedback(state: ServerState, model: str, entries: list[Feedback]) -> list[str]:
    """Store entries, and count them."""
    ids = await state.in_thread(state.database.add_feedback, model, entries)
    state.monitoring.feedback.labels(model).inc(len(ids))
    return ids


def count_reviewed(state: ServerState, model: str, loaded: LoadedModel, entries: list[schemas.FeedbackBody]) -> None:
    """Count documents whose right labels were named, for the calibration among the metrics."""
    known = loaded.tagger.labels_.index
    for entry in entries:
        named = accepted_labels(entry)
        if named:
            state.drift_window(model, loaded).add_reviewed(entry.text, [known[name] for name in named if name in known])


def stored_entry(entry: schemas.FeedbackBody, version: str) -> Feedback:
    """Return a decision as it is stored."""
    values = entry.model_dump(exclude={"allow_new_labels"})
    lists = {name: list(dict.fromkeys(values[name])) for name in ("accepted", "rejected", "added")}
    return Feedback(**{**values, **lists, "id": entry.id or new_id(), "version": version})


def check_labels(model: LoadedModel, entries: list[schemas.FeedbackBody]) -> None:
    """Raise ProblemError for contradictions, and for unknown labels, except labels in ``added`` that may be new."""
    known = model.tagger.labels_.index
    for entry in entries:
        may_be_new = [] if entry.allow_new_labels else entry.added
        unknown = next((name for name in [*entry.accepted, *entry.rejected, *may_be_new] if name not in known), None)
        if unknown is not None:
            remedy = "search /labels?q=, or send it in added with allow_new_labels"
            rule = f"a label must be one of the model's {len(known):,}"
            raise ProblemError(400, f"{rule}, but {unknown[:80]!r} is none; {remedy}")
        both = set(entry.rejected) & {*entry.accepted, *entry.added}
        if both:
            detail = f"a label is right or wrong, but {min(both)[:80]!r} is in both lists; leave one out"
            raise ProblemError(400, detail)
        if not (entry.accepted or entry.rejected or entry.added):
            raise ProblemError(400, "feedback must name a label, but accepted, rejected and added are empty; name one")


@review.get("", summary="The next documents to review")
async def next_documents(
    model: str,
    state: State,
    order: Annotated[schemas.ReviewOrder, Query(description="The order of the documents.")] = "uncertain",
    n: Annotated[int, Query(ge=1, le=100)] = 20,
) -> schemas.ReviewAnswer:
    """List pending documents: the least sure, most disputed or suspicious first, rare labels first, or at random."""
    loaded = state.loaded(model)
    check_order(loaded.tagger, "uncertain" if order == "uncertainty" else order)
    if order == "suspicious":
        suspects = await suspicious_documents(state, model, loaded, n)
        return schemas.ReviewAnswer(documents=suspects, progress=await progress(state, model))
    await score_again(state, model, loaded)
    stored_as = STORED_AS.get(order, order)
    found = await state.in_thread(state.database.pending, model, stored_as, n)
    documents = [
        schemas.ReviewDocument(
            id=each.id, document=each.document, text=each.text, value=each.values.get(stored_as, 0.0)
        )
        for each in found
    ]
    return schemas.ReviewAnswer(documents=documents, progress=await progress(state, model))


async def suspicious_documents(
    state: ServerState, model: str, loaded: LoadedModel, n: int
) -> list[schemas.ReviewDocument]:
    """Return documents with an accepted label that the model finds impossible, among the last decisions."""
    entries = await state.in_thread(last_decisions, state, model)
    known = KnownLabels(len(loaded.tagger.labels_))
    found: list[tuple[Feedback, tuple[list[int], float]]] = []
    for start in range(0, len(entries), MAX_BATCH):  # in batches: other requests are answered in between
        some = entries[start : start + MAX_BATCH]
        found += zip(some, await state.inference.run(suspects_of, loaded, some, known), strict=True)
    valued = [(best * known.of(labels), entry) for entry, (labels, best) in found if labels]
    valued.sort(key=lambda each: -each[0])
    return [
        schemas.ReviewDocument(id=str(entry.document), document=None, text=entry.text, value=value)
        for value, entry in valued[:n]
    ]


def last_decisions(state: ServerState, model: str) -> list[Feedback]:
    """Return the last decisions with accepted labels on documents of the inbox; none on what was decided twice."""
    total = state.database.count_feedback(model)
    entries = state.database.feedback(model, DECISIONS_AT_ONCE, max(total - DECISIONS_AT_ONCE, 0))
    times = Counter(entry.document for entry in entries)
    return [entry for entry in entries if times[entry.document] == 1 and entry.document and accepted_labels(entry)]


def accepted_labels(entry: Feedback | schemas.FeedbackBody) -> list[str]:
    """Return the labels that a person found right."""
    return list(dict.fromkeys([*entry.accepted, *entry.added]))


def suspects_of(model: LoadedModel, entries: list[Feedback], known: KnownLabels) -> list[tuple[list[int], float]]:
    """Return the accepted labels that the model finds impossible, and the probability of its best label."""
    tagger = model.tagger
    top = shortlist(tagger, [entry.text for entry in entries], PREDICTED)
    index = tagger.labels_.index
    ids = [sorted(index[name] for name in accepted_labels(entry) if name in index) for entry in entries]
    suspects = known.count(top, ones_of_rows(ids, len(tagger.labels_)))
    return list(zip(suspects, np.maximum(top.scores[:, 0], 0).tolist(), strict=True))


@review.post("", status_code=201, summary="Add documents to the inbox", dependencies=Writing)
async def add_documents(model: str, body: schemas.ReviewBody, state: State) -> schemas.ReviewStored:
    """Add documents; a text that is already in the inbox is not added again."""
    state.check_documents(len(body.documents))
    loaded = state.loaded(model)
    for document in body.documents:
        state.check_text(document.text)
    values = await state.inference.run(review_values, loaded, [document.text for document in body.documents])
    version = values_version(loaded)
    rows = [
        InboxDocument(document=document.id, text=document.text, values=of_text, version=version)
        for document, of_text in zip(body.documents, values, strict=True)
    ]
    stored, known = await state.in_thread(state.database.add_documents, model, rows)
    return schemas.ReviewStored(stored=stored, known=known)


@review.post("/{document_id}", summary="Skip a document, or make it pending again", dependencies=Writing)
async def set_status(model: str, document_id: str, body: schemas.StatusBody, state: State) -> schemas.StatusAnswer:
    """Set the status of a document. Feedback that names a document sets its status to done."""
    state.served(model)
    if not await state.in_thread(state.database.set_status, model, document_id, body.status):
        detail = f"the id must be that of a document of the inbox, but {document_id[:80]!r} is not; see /review"
        raise ProblemError(404, detail)
    return schemas.StatusAnswer(id=document_id, status=body.status)


async def score_again(state: ServerState, model: str, loaded: LoadedModel) -> None:
    """Score documents again that an older version of the model scored, up to a limit."""
    old = await state.in_thread(state.database.outdated, model, values_version(loaded), SCORED_AT_ONCE)
    by_id: dict[str, dict[str, float]] = {}
    for start in range(0, len(old), MAX_BATCH):  # in batches: other requests are answered in between
        some = old[start : start + MAX_BATCH]
        values = await state.inference.run(review_values, loaded, [each.text for each in some])
        by_id |= {each.id: of_text for each, of_text in zip(some, values, strict=True)}
    if by_id:
        await state.in_thread(state.database.update_values, model, values_version(loaded), by_id)


async def progress(state: ServerState, model: str) -> schemas.ReviewProgress:
    """Return how many documents of the inbox are in each status."""
    return schemas.ReviewProgress(**await state.in_thread(state.database.inbox_counts, model))


async def add_inbox_file(state: ServerState, model: str, path: str) -> None:
    """Add the documents of a file that the inbox does not have yet; they are scored when they are first requested."""
    stored = known = 0
    tagger = state.loaded(model).tagger
    records = iter_records(path, columns=tagger.columns_, options=ReadOptions(fields=tagger.fields_))
    while batch := await state.in_thread(lambda: list(islice(records, READ_AT_ONCE))):
        texts = ((record.id, record.text or "") for record in batch)
        rows = [InboxDocument(document=id, text=text) for id, text in texts if text.strip()]
        new, old = await state.in_thread(state.database.add_documents, model, rows)
        stored += new
        known += old
    logger.info("inbox of %s: %d documents of the file are new, %d were there", model, stored, known)


def review_values(model: LoadedModel, texts: list[str]) -> list[dict[str, float]]:
    """Return the values of each text, by order; the highest value is reviewed first."""
    tagger = model.tagger
    top = shortlist(tagger, texts, SHOWN)
    values = {STORED_AS[order]: order_values(order, tagger, texts, top, SHOWN) for order in orders_of(model)}
    rows = [{name: float(of_all[row]) for name, of_all in values.items()} for row in range(len(texts))]
    return [{**row, "random": chance(text)} for row, text in zip(rows, texts, strict=True)]


def orders_of(model: LoadedModel) -> list[ScoredOrder]:
    """Return the orders whose values the model can tell of any text."""
    orders: list[ScoredOrder] = ["uncertain", "rare"]
    if isinstance(model.tagger.model, HasMembers):
        orders.append("disagreement")
    return orders


def values_version(model: LoadedModel) -> str:
    """Return what values of documents are stored with: another one, and they are made again."""
    return f"{model.version}.{DEFINITION}"
