"""Edit the labels of a model: each edit is a job that makes a version."""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter

from labelspace.server import learning_schemas, schemas
from labelspace.server.database import Job
from labelspace.server.job import LABELS
from labelspace.server.learning import LabelRequest
from labelspace.server.problems import ProblemError, documented
from labelspace.server.routes.labels import rest_of_path
from labelspace.server.routes.learning import changing_job
from labelspace.server.state import ServerState, State, Writing

router = APIRouter(prefix="/v1/models/{model}", tags=["labels"])
BUSY: dict[int | str, dict[str, Any]] = {409: documented("Another change of the model runs.")}
EDITED = rest_of_path("label")


@router.post(
    "/labels",
    status_code=202,
    response_model=schemas.JobAnswer,
    summary="Add a label",
    dependencies=Writing,
    responses=BUSY,
)
async def add_label(model: str, body: learning_schemas.AddLabelBody, state: State) -> Job:
    """Start a job that adds a label, by texts that have it or only by its names; a retired label is used again."""
    state.check_documents(len(body.examples))
    for text in body.examples:
        state.check_text(text)
    names = tuple(body.alt)
    edit = LabelRequest("add", body.name, alt=names, description=body.description, examples=tuple(body.examples))
    return await edit_label(state, model, edit)


@router.patch(
    "/labels/" + EDITED,
    status_code=202,
    response_model=schemas.JobAnswer,
    summary="Rename a label, or give it further names or a description",
    dependencies=Writing,
    responses=BUSY,
)
async def change_label(model: str, label: str, body: learning_schemas.ChangeLabelBody, state: State) -> Job:
    """Start a job that changes the names or the description of a label, which is given by its name, URI or id."""
    if body.name is None and not body.alt and body.description is None:
        rule = "a change of a label must have a name, further names or a description, but has none"
        raise ProblemError(400, f"{rule}; send name")
    found = unique_name(state, model, label)
    edit = LabelRequest("change", found, name=body.name, alt=tuple(body.alt), description=body.description)
    return await edit_label(state, model, edit)


@router.delete(
    "/labels/" + EDITED,
    status_code=202,
    response_model=schemas.JobAnswer,
    summary="Retire a label",
    dependencies=Writing,
    responses=BUSY,
)
async def retire_label(model: str, label: str, state: State) -> Job:
    """Start a job that retires a label: it is not suggested any more, and can be added again."""
    return await edit_label(state, model, LabelRequest("retire", unique_name(state, model, label)))


@router.post(
    f"/labels/{EDITED}/merge",
    status_code=202,
    response_model=schemas.JobAnswer,
    summary="Merge a label into another one",
    dependencies=Writing,
    responses=BUSY,
)
async def merge_label(model: str, label: str, body: learning_schemas.MergeLabelBody, state: State) -> Job:
    """Start a job that merges a label into another one, which is answered for both from now on."""
    into = unique_name(state, model, body.into, status=400)
    return await edit_label(state, model, LabelRequest("merge", unique_name(state, model, label), into=into))


def unique_name(state: ServerState, model: str, label: str, status: int = 404) -> str:
    """Return the unique name of a label that is given by name, URI or id."""
    labels = state.loaded(model).labels
    found = labels.find(label)
    if found is None:
        detail = f"a label must be a name, a URI or an id, but {label[:80]!r} is none of {len(labels.labels):,}"
        raise ProblemError(status, f"{detail}; search /labels?q=")
    return str(labels.labels.names[found])


async def edit_label(state: ServerState, model: str, edit: LabelRequest) -> Job:
    """Start a job that edits a label, after a look whether this is possible."""
    edit.check(state.loaded(model).tagger)
    return await changing_job(state, model, LABELS, asdict(edit))
