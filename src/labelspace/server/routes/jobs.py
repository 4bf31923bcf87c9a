"""Learn from feedback in the background, and load models again while they are served."""

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Path

from labelspace.errors import LabelspaceError
from labelspace.server import schemas
from labelspace.server.database import Job
from labelspace.server.job import LEARN, start_job
from labelspace.server.problems import ProblemError, documented
from labelspace.server.state import State, Writing

router = APIRouter(prefix="/v1", tags=["learning"])


@router.post(
    "/models/{model}/learn",
    status_code=202,
    response_model=schemas.JobAnswer,
    summary="Train again with the feedback",
    dependencies=Writing,
    responses={409: documented("The server was started without training data, or a training already runs.")},
)
async def learn(model: str, state: State) -> schemas.JobAnswer:
    """Start a job that trains the model again on the data of ``--data`` and the feedback.

    The job compares both models on held-out documents; the new one replaces the old one if it is no worse. Meanwhile
    the old one answers.
    """
    state.served(model)
    if state.settings.data is None:
        detail = "learning needs the training data, but the server was started without; start it with --data DATA"
        raise ProblemError(409, f"{detail}, the folder or file that {model} was trained on")
    job = await start_job(state, model, LEARN)
    if job is None:
        raise ProblemError(
            409, f"one training of a model runs at a time, but one of {model} does already; see /v1/jobs"
        )
    return job_answer(job)


@router.get("/jobs", response_model=schemas.JobsAnswer, summary="Work in the background, newest first")
async def list_jobs(state: State) -> schemas.JobsAnswer:
    """List trainings and evaluations, the newest first."""
    return schemas.JobsAnswer(jobs=[job_answer(job) for job in await state.in_thread(state.database.jobs)])


@router.get("/jobs/{job_id}", response_model=schemas.JobAnswer, summary="Progress and result of a job")
async def show_job(job_id: Annotated[str, Path(max_length=200)], state: State) -> schemas.JobAnswer:
    """Show a job. Poll this while its state is queued or running."""
    job = await state.in_thread(state.database.job, job_id)
    if job is None:
        raise ProblemError(404, f"the id must be that of a job, but {job_id[:80]!r} is not; see /v1/jobs")
    return job_answer(job)


@router.post(
    "/models/{model}/reload",
    response_model=schemas.ReloadAnswer,
    summary="Read the model's folder again",
    dependencies=Writing,
    responses={409: documented("The model in the folder cannot be loaded; the old one is still served.")},
)
async def reload(model: str, state: State) -> schemas.ReloadAnswer:
    """Load the model again in this worker. Every worker notices a replaced folder by itself within a second or two."""
    served = state.served(model)
    previous = None if served.current is None else served.current.version
    try:
        loaded = await state.in_thread(served.load)
    except (LabelspaceError, OSError) as error:
        state.monitoring.reloads.labels(model, "failed").inc()
        raise ProblemError(409, f"{error}; the old model is still served") from error
    state.monitoring.reloads.labels(model, "loaded").inc()
    return schemas.ReloadAnswer(
        model=model, version=loaded.version, previous=previous, changed=loaded.version != previous
    )


def job_answer(job: Job) -> schemas.JobAnswer:
    """Return a job as an answer."""
    return schemas.JobAnswer(**asdict(job))
