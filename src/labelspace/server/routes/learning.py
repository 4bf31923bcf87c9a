"""Learn from feedback, list the versions of a model, and go back to one."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Body

from labelspace.errors import ModelError
from labelspace.models.capabilities import PartialFit
from labelspace.server import learning_schemas, schemas
from labelspace.server.database import Job
from labelspace.server.job import LEARN, n_kept, start_job
from labelspace.server.learning import go_back
from labelspace.server.problems import ProblemError, documented
from labelspace.server.state import ServerState, State, Writing
from labelspace.tagger.versions import ListedVersion, history

router = APIRouter(prefix="/v1/models/{model}", tags=["learning"])
NEEDS_DATA = "The method needs training data that the server was started without, or another change of the model runs."
GONE: dict[int | str, dict[str, Any]] = {
    409: documented("The version is not kept, or another change of the model runs.")
}


@router.post(
    "/learn",
    status_code=202,
    response_model=schemas.JobAnswer,
    summary="Learn from feedback",
    dependencies=Writing,
    responses={409: documented(NEEDS_DATA)},
)
async def learn(model: str, state: State, body: Annotated[learning_schemas.LearnBody | None, Body()] = None) -> Job:
    """Start a job that learns the feedback that was not learned yet, or trains the model again.

    The job compares both versions on held-out documents, and the new one is used unless it is worse. Meanwhile the old
    one answers.
    """
    asked = body or learning_schemas.LearnBody()
    loaded = state.loaded(model)
    can_go_on = isinstance(loaded.tagger.model, PartialFit)
    if state.settings.data is None and (asked.full or not can_go_on):
        what = "a full training" if asked.full else f"{loaded.tagger.model.name} cannot go on learning: a full training"
        detail = f"{what} needs the training data, but the server was started without; start it with --data DATA"
        raise ProblemError(409, f"{detail}, the folder or file that {model} was trained on")
    return await changing_job(state, model, LEARN, asked.model_dump())


async def changing_job(state: ServerState, model: str, kind: str, asked: dict[str, Any]) -> Job:
    """Start a job that makes a version of a model; raise ProblemError if another one does so."""
    job = await start_job(state, model, kind, asked)
    if job is None:
        detail = f"one change of a model runs at a time, but one of {model} does already; see /v1/jobs"
        raise ProblemError(409, detail)
    return job


@router.get("/versions", summary="The versions of a model")
async def versions(model: str, state: State) -> learning_schemas.VersionsAnswer:
    """List the versions, oldest first: what each learned, and its nDCG@5 on documents that it did not learn from."""
    listed = await state.in_thread(history, state.served(model).folder)
    return learning_schemas.VersionsAnswer(model=model, versions=list(map(version_answer, listed)))


def version_answer(listed: ListedVersion) -> learning_schemas.VersionAnswer:
    """Return a version as it is answered."""
    values = asdict(replace(listed.version, held_out=None))
    held_out = listed.version.held_out
    if held_out is not None:
        figures = {"old": None if held_out.old is None else held_out.old._asdict(), "new": held_out.new._asdict()}
        values["held_out"] = {"source": held_out.source, "n": held_out.n, **figures}
    return learning_schemas.VersionAnswer(**values, is_current=listed.is_current, is_kept=listed.is_kept)


@router.post("/rollback", summary="Go back to a version", dependencies=Writing, responses=GONE)
async def rollback(model: str, body: learning_schemas.RollbackBody, state: State) -> learning_schemas.RollbackAnswer:
    """Go back to a kept version, which becomes a new one; feedback that later versions learned is new again."""
    served = state.served(model)
    folder = Path(served.folder)
    try:
        made = await state.in_thread(go_back, folder, state.database, model, body.to, n_kept(state.settings))
    except ModelError as error:
        raise ProblemError(409, str(error)) from error
    loaded = await state.in_thread(served.load)
    state.monitoring.reloads.labels(model, "loaded").inc()
    return learning_schemas.RollbackAnswer(model=model, version=loaded.version, number=made.number, restored=body.to)
