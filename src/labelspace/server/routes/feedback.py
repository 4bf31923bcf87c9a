"""Store what people decided: at once, to be learned later, and withdrawn on request."""

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Body, Query

from labelspace.server import schemas
from labelspace.server.database import Feedback, new_id
from labelspace.server.problems import ProblemError
from labelspace.server.routes.labels import rest_of_path
from labelspace.server.served_model import LoadedModel
from labelspace.server.state import ServerState, State, Writing

router = APIRouter(prefix="/v1/models/{model}/feedback", tags=["feedback"], dependencies=Writing)


@router.post("", status_code=201, response_model=schemas.FeedbackAnswer, summary="Store decisions on documents")
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
) -> schemas.FeedbackList:
    """List feedback with its texts; since it has texts, this needs a write key."""
    state.served(model)
    found = await state.in_thread(state.database.feedback, model, limit, offset)
    total = await state.in_thread(state.database.count_feedback, model)
    return schemas.FeedbackList(feedback=[schemas.StoredFeedback(**asdict(each)) for each in found], total=total)


@router.delete("/" + rest_of_path("feedback_id"), response_model=schemas.Withdrawn, summary="Take feedback back")
async def withdraw(model: str, feedback_id: str, state: State) -> schemas.Withdrawn:
    """Delete feedback; its document of the inbox is pending again."""
    state.served(model)
    if not await state.in_thread(state.database.withdraw_feedback, model, feedback_id):
        raise ProblemError(
            404, f"the id must be that of stored feedback, but {feedback_id[:80]!r} is not; see /feedback"
        )
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
            detail = (
                f"a label must be one of the model's {len(known):,}, but {unknown[:80]!r} is none; search /labels?q="
            )
            raise ProblemError(400, f"{detail}, or send it in added with allow_new_labels")
        both = set(entry.rejected) & {*entry.accepted, *entry.added}
        if both:
            raise ProblemError(
                400, f"a label is right or wrong, but {min(both)[:80]!r} is in both lists; leave one out"
            )
        if not (entry.accepted or entry.rejected or entry.added):
            raise ProblemError(400, "feedback must name a label, but accepted, rejected and added are empty; name one")
