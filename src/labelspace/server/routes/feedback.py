"""Store what people decided, and offer documents of an inbox for review, first those where a decision tells the most.

Feedback is stored at once, to be learned later, and withdrawn on request. The orders of the inbox are:

- ``uncertainty``: the expected number of wrong decisions among the best labels, the sum of p (1 - p); for scores that
  are no probabilities, how near the second label comes to the first.
- ``disagreement``: how much the lists of the members of an ensemble differ, 1 - the mean overlap of two of them.
- ``rare``: the largest p (1 - p) of a label with at most 5 training documents.
- ``random``: by a hash of the text, the same for every model: for figures that no order biases.
"""

import hashlib
import logging
from itertools import combinations, islice
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Body, Query

from labelspace.data.read_options import ReadOptions
from labelspace.data.source import iter_records
from labelspace.models.capabilities import HasMembers, require
from labelspace.server import schemas
from labelspace.server.database import Feedback, InboxDocument, new_id
from labelspace.server.inference import MAX_BATCH
from labelspace.server.problems import ProblemError
from labelspace.server.routes.labels import rest_of_path
from labelspace.server.served_model import LoadedModel, Options, Tagged
from labelspace.server.state import ServerState, State, Writing
from labelspace.types import TopK

logger = logging.getLogger("labelspace.server")
router = APIRouter(prefix="/v1/models/{model}/feedback", tags=["feedback"], dependencies=Writing)
review = APIRouter(prefix="/v1/models/{model}/review", tags=["review"])
SCORED_AT_ONCE = 256  # documents with values of an older model that are scored again before an answer
READ_AT_ONCE = 256  # documents of a file that are stored in one transaction
N_BEST = 5  # labels of a document that its values are made from
RARE = 5  # training documents that a rare label has, at most


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
    """Delete feedback; its document of the inbox is pending again."""
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
    order: Annotated[schemas.ReviewOrder, Query(description="The order of the documents.")] = "uncertainty",
    n: Annotated[int, Query(ge=1, le=100)] = 20,
) -> schemas.ReviewAnswer:
    """List pending documents, ordered by uncertainty, by disagreement of the members, by rare labels, or at random."""
    loaded = state.loaded(model)
    if order == "disagreement":
        require(loaded.tagger.model, HasMembers)
    await score_again(state, model, loaded)
    found = await state.in_thread(state.database.pending, model, order, n)
    documents = [
        schemas.ReviewDocument(id=each.id, document=each.document, text=each.text, value=each.values.get(order, 0.0))
        for each in found
    ]
    return schemas.ReviewAnswer(documents=documents, progress=await progress(state, model))


@review.post("", status_code=201, summary="Add documents to the inbox", dependencies=Writing)
async def add_documents(model: str, body: schemas.ReviewBody, state: State) -> schemas.ReviewStored:
    """Add documents; a text that is already in the inbox is not added again."""
    state.check_documents(len(body.documents))
    loaded = state.loaded(model)
    for document in body.documents:
        state.check_text(document.text)
    values = await state.inference.run(review_values, loaded, [document.text for document in body.documents])
    rows = [
        InboxDocument(document=document.id, text=document.text, values=of_text, version=loaded.version)
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
    old = await state.in_thread(state.database.outdated, model, loaded.version, SCORED_AT_ONCE)
    by_id: dict[str, dict[str, float]] = {}
    for start in range(0, len(old), MAX_BATCH):  # in batches: other requests are answered in between
        some = old[start : start + MAX_BATCH]
        values = await state.inference.run(review_values, loaded, [each.text for each in some])
        by_id |= {each.id: of_text for each, of_text in zip(some, values, strict=True)}
    if by_id:
        await state.in_thread(state.database.update_values, model, loaded.version, by_id)


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
    found = model.tag(texts, N_BEST, Options())
    values = []
    for text, tagged in zip(texts, found, strict=True):
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        values.append({**_of_answer(model, tagged), "random": int.from_bytes(digest[:6], "big") / 2**48})
    if isinstance(model.tagger.model, HasMembers):
        lists = list(model.tagger.predict_members(texts, N_BEST).values())
        for row, each in enumerate(values):
            each["disagreement"] = disagreement(lists, row)
    return values


def _of_answer(model: LoadedModel, tagged: Tagged) -> dict[str, float]:
    if tagged.probabilities is None:
        best, second = (*tagged.scores, 0.0, 0.0)[:2]
        unsure = second / best if best > 0 else 1.0
        spread = [unsure] * len(tagged.labels)
        uncertainty = float(np.clip(unsure, 0, 1))
    else:
        spread = [p * (1 - p) for p in tagged.probabilities]
        uncertainty = sum(spread)
    counts = (model.labels[label]["count"] for label in tagged.labels)
    rare = max((each for count, each in zip(counts, spread, strict=True) if count <= RARE), default=0.0)
    return {"uncertainty": uncertainty, "rare": rare}


def disagreement(lists: list[TopK], row: int) -> float:
    """Return 1 - the mean overlap (Jaccard) of the lists of two members.

    >>> one, other = TopK.from_scores([[0.9, 0.8, 0.1]], k=2), TopK.from_scores([[0.1, 0.8, 0.9]], k=2)
    >>> round(disagreement([one, other], 0), 3)
    0.667
    """
    sets = [{label for label in top.labels[row].tolist() if label >= 0} for top in lists]
    overlaps = [len(a & b) / max(len(a | b), 1) for a, b in combinations(sets, 2)]
    return 1 - sum(overlaps) / len(overlaps) if overlaps else 0.0
