"""The inbox: documents to review, those first that tell the model most."""

from typing import Annotated

from fastapi import APIRouter, Query

from labelspace.models.capabilities import HasMembers, require
from labelspace.server import schemas
from labelspace.server.database import InboxDocument
from labelspace.server.inference import MAX_BATCH
from labelspace.server.problems import ProblemError
from labelspace.server.review_values import review_values
from labelspace.server.served_model import LoadedModel
from labelspace.server.state import ServerState, State, Writing

router = APIRouter(prefix="/v1/models/{model}/review", tags=["review"])
SCORED_AT_ONCE = 256  # documents whose values are of an older model, and are made again before an answer


@router.get("", response_model=schemas.ReviewAnswer, summary="The next documents to review")
async def next_documents(
    model: str,
    state: State,
    order: Annotated[schemas.ReviewOrder, Query(description="What comes first.")] = "uncertainty",
    n: Annotated[int, Query(ge=1, le=100)] = 20,
) -> schemas.ReviewAnswer:
    """Pending documents, by uncertainty, by disagreement of the members, rare labels first, or at random."""
    loaded = state.loaded(model)
    if order == "disagreement":
        require(loaded.tagger.model, HasMembers)
    await score_again(state, model, loaded)
    found = await state.beside(state.database.pending, model, order, n)
    documents = [
        schemas.ReviewDocument(id=each.id, document=each.document, text=each.text, value=each.values.get(order, 0.0))
        for each in found
    ]
    return schemas.ReviewAnswer(documents=documents, progress=await progress(state, model))


@router.post(
    "", status_code=201, response_model=schemas.ReviewStored, summary="Add documents to the inbox", dependencies=Writing
)
async def add_documents(model: str, body: schemas.ReviewBody, state: State) -> schemas.ReviewStored:
    """A text that is in the inbox already is not added again."""
    state.check_documents(len(body.documents))
    loaded = state.loaded(model)
    for document in body.documents:
        state.check_text(document.text)
    texts = [document.text for document in body.documents]
    values = await state.inference.run(review_values, loaded, texts)
    rows = [
        InboxDocument(document=document.id, text=document.text, values=of_text, version=loaded.version)
        for document, of_text in zip(body.documents, values, strict=True)
    ]
    stored, known = await state.beside(state.database.add_documents, model, rows)
    return schemas.ReviewStored(stored=stored, known=known)


@router.post(
    "/{document_id}",
    response_model=schemas.StatusAnswer,
    summary="Skip a document, or take it up",
    dependencies=Writing,
)
async def set_status(model: str, document_id: str, body: schemas.StatusBody, state: State) -> schemas.StatusAnswer:
    """Feedback that names a document makes it done."""
    state.served(model)
    if not await state.beside(state.database.set_status, model, document_id, body.status):
        raise ProblemError(
            404, f"the id must be that of a document of the inbox, but {document_id[:80]!r} is not; see /review"
        )
    return schemas.StatusAnswer(id=document_id, status=body.status)


async def score_again(state: ServerState, model: str, loaded: LoadedModel) -> None:
    """Make the values of some documents that an older version of the model scored."""
    old = await state.beside(state.database.outdated, model, loaded.version, SCORED_AT_ONCE)
    by_id: dict[str, dict[str, float]] = {}
    for start in range(0, len(old), MAX_BATCH):  # other requests are answered in between
        some = old[start : start + MAX_BATCH]
        values = await state.inference.run(review_values, loaded, [each.text for each in some])
        by_id |= {each.id: of_text for each, of_text in zip(some, values, strict=True)}
    if by_id:
        await state.beside(state.database.update_values, model, loaded.version, by_id)


async def progress(state: ServerState, model: str) -> schemas.ReviewProgress:
    """How far the review is."""
    return schemas.ReviewProgress(**await state.beside(state.database.inbox_counts, model))
