"""Learning from feedback in the background, and models replaced while they are served."""

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
    responses={409: documented("There is nothing to train on, or a training is under way.")},
)
async def learn(model: str, state: State) -> schemas.JobAnswer:
    """A job trains the model again on the data of ``--data`` and the feedback, and compares both on held-out documents.

    The new one is served, in the place of the old, if it is no worse. Meanwhile the old one answers.
    """
    state.served(model)
    if state.settings.data is None:
        raise ProblemError(
            409, "learning needs the training data, but the server was started without; start it with --data DATA, the "
            f"folder or file that {model} was trained on",
        )  # fmt: skip
    job = await start_job(state, model, LEARN)
    if job is None:
        raise ProblemError(
            409, f"one training of a model runs at a time, but one of {model} does already; see /v1/jobs"
        )
    return job_answer(job)


@router.get("/jobs", response_model=schemas.JobsAnswer, summary="Work in the background, newest first")
async def list_jobs(state: State) -> schemas.JobsAnswer:
    """Trainings and evaluations."""
    return schemas.JobsAnswer(jobs=[job_answer(job) for job in await state.in_thread(state.database.jobs)])


@router.get("/jobs/{job_id}", response_model=schemas.JobAnswer, summary="How far a job is, and what came of it")
async def show_job(job_id: Annotated[str, Path(max_length=200)], state: State) -> schemas.JobAnswer:
    """Poll it while its state is queued or running."""
    job = await state.in_thread(state.database.job, job_id)
    if job is None:
        raise ProblemError(404, f"the id must be that of a job, but {job_id[:80]!r} is not; see /v1/jobs")
    return job_answer(job)


@router.post(
    "/models/{model}/reload",
    response_model=schemas.ReloadAnswer,
    summary="Read the model's folder again",
    dependencies=Writing,
    responses={409: documented("What is in the folder cannot be loaded; the old model is served on.")},
)
async def reload(model: str, state: State) -> schemas.ReloadAnswer:
    """A folder that was replaced is also noticed by itself, by every worker within a second or two."""
    served = state.served(model)
    previous = None if served.current is None else served.current.version
    try:
        loaded = await state.in_thread(served.load)
    except (LabelspaceError, OSError) as error:
        state.monitoring.reloads.labels(model, "failed").inc()
        raise ProblemError(409, f"{error}; the model of before is served on") from error
    state.monitoring.reloads.labels(model, "loaded").inc()
    return schemas.ReloadAnswer(
        model=model, version=loaded.version, previous=previous, changed=loaded.version != previous
    )


def job_answer(job: Job) -> schemas.JobAnswer:
    """A job as an answer."""
    return schemas.JobAnswer(
        id=job.id, model=job.model, kind=job.kind, state=job.state, step=job.step, progress=job.progress,
        created=job.created, ended=job.ended, error=job.error, result=job.result,
    )  # fmt: skip
