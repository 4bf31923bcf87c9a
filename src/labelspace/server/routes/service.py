"""Describe the service: its models, limits, figures and state, and its jobs."""

from typing import Annotated, Any

from fastapi import APIRouter, Path
from fastapi.responses import HTMLResponse, JSONResponse, Response

from labelspace.errors import LabelspaceError
from labelspace.models.capabilities import HasLabelPoints, PartialFit, require
from labelspace.report.curves import precision_coverage_svg, reliability_svg
from labelspace.report.map import map_page
from labelspace.server import schemas
from labelspace.server.database import ACTIVE, Job
from labelspace.server.job import EVALUATE
from labelspace.server.monitoring import MEDIA_TYPE
from labelspace.server.problems import ProblemError, documented
from labelspace.server.routes.feedback import progress
from labelspace.server.routes.page import hashed_policy
from labelspace.server.routes.suggest import Json
from labelspace.server.state import ServerState, State, Writing
from labelspace.version import __version__

router = APIRouter(prefix="/v1", tags=["service"])
health = APIRouter(tags=["health"])
learning = APIRouter(prefix="/v1", tags=["learning"])
SHOWN_FIGURES = ("P@1", "P@3", "P@5", "nDCG@1", "nDCG@3", "nDCG@5", "PSP@1", "PSP@3", "PSP@5", "R@5", "RP@5", "ECE@5")
MARKED = (90, 95)  # precisions, percent


@router.get("", response_model=schemas.ServiceAnswer, summary="Models, limits, version")
@router.get("/", response_model=schemas.ServiceAnswer, include_in_schema=False)
async def service(state: State) -> dict[str, Any]:
    """Describe the service: models, limits, version and authentication."""
    settings = state.settings
    return {
        "name": "labelspace",
        "title": "labelspace REST API",
        "version": __version__,
        "models": list(state.models),
        "limits": settings.limits,
        "authentication": "none" if settings.api_key_file is None else "key",
        "read_only": settings.read_only,
    }


@router.get("/models", response_model=schemas.ModelsAnswer, summary="All served models")
async def models(state: State) -> dict[str, Any]:
    """List the served models, each with the same fields as at /v1/models/{model}."""
    return {"models": [await model_answer(state, name) for name in state.models]}


@router.get("/models/{model}", response_model=schemas.ModelAnswer, summary="A served model")
async def model(model: str, state: State) -> dict[str, Any]:
    """Describe a model: method, members, labels, version, size, thresholds, and figures if they were measured."""
    return await model_answer(state, model)


@router.get("/models/{model}/figures", response_model=schemas.FiguresAnswer, summary="How good a model is")
async def figures(model: str, state: State) -> Response:
    """Return all figures of ``labelspace evaluate`` on the test documents of ``--data``, and diagrams."""
    loaded = state.loaded(model)
    found = await state.in_thread(state.database.figures, model, loaded.version)
    if found is not None:
        return Json({"state": "ready", **found, "svg": diagrams(found["figures"])})
    jobs = await state.in_thread(state.database.jobs)
    if any(job.model == model and job.kind == EVALUATE and job.state in ACTIVE for job in jobs):
        return Json({"state": "running"})
    detail = f"figures need test documents, but this version of {model} has not been evaluated"
    raise ProblemError(404, f"{detail}; start the server with --data DATA, a folder with test.*")


def diagrams(figures: dict[str, Any]) -> dict[str, str | None]:
    """Draw the reliability diagram and the precision-coverage curve."""
    marked = {percent: figures[f"coverage_at_precision_{percent}"] for percent in MARKED}
    reliability = reliability_svg(figures["reliability"]) if "reliability" in figures else None
    coverage = precision_coverage_svg(figures["precision_coverage"], marked)
    return {"reliability": reliability, "precision_coverage": coverage}


@router.get("/models/{model}/map", response_class=HTMLResponse, summary="The map of the labels")
async def label_map(model: str, state: State) -> HTMLResponse:
    """Return a page with the labels on the Poincaré disk, for a model with label points."""
    tagger = state.loaded(model).tagger
    points = require(tagger.model, HasLabelPoints)
    page = await state.in_thread(lambda: map_page(points.label_points(), tagger.labels_, f"Labels of {model}"))
    return HTMLResponse(page, headers={"Content-Security-Policy": hashed_policy(page)})


async def model_answer(state: ServerState, name: str) -> dict[str, Any]:
    """Return the description of a model."""
    loaded = state.loaded(name)
    found = await state.in_thread(state.database.figures, name, loaded.version)
    measured = None if found is None else found["figures"]
    may_write = not state.settings.read_only
    has_data = state.settings.data is not None
    return {
        "id": name,
        **loaded.about,
        "ready": True,
        "figures": None if measured is None else {key: measured[key] for key in SHOWN_FIGURES if key in measured},
        "can_learn": may_write and (has_data or isinstance(loaded.tagger.model, PartialFit)),
        "can_train": may_write and has_data,
        "n_feedback": await state.in_thread(state.database.count_feedback, name),
        "n_new_feedback": await state.in_thread(state.database.count_new_feedback, name),
        "n_inbox": await progress(state, name),
    }


@health.get("/livez", response_model=schemas.HealthAnswer, summary="Check that the process is alive")
async def livez() -> dict[str, Any]:
    """Report that the process is alive."""
    return {"status": "ok"}


@health.get(
    "/readyz",
    response_model=schemas.HealthAnswer,
    summary="Check that every model is ready",
    responses={503: {"description": "A model is still loading, or cannot be loaded.", "model": schemas.HealthAnswer}},
)
async def readyz(state: State) -> Response:
    """Report whether every model is ready: it has tagged a first text, which compiles its kernels."""
    if state.is_ready:
        return JSONResponse({"status": "ready", "detail": None})
    waiting = [model for model in state.models.values() if model.current is None]
    detail = "; ".join(f"{model.name}: {model.error or 'is being loaded'}" for model in waiting)
    detail = detail or "another worker is loading its models"
    return JSONResponse({"status": "not ready", "detail": detail}, 503, {"Retry-After": "1"})


@health.get("/metrics", summary="Counters for Prometheus", response_class=Response)
async def metrics(state: State) -> Response:
    """Return the Prometheus counters, summed over all workers, and the figures of drift."""
    for name in state.models:
        state.publish_drift(name)
    return Response(await state.in_thread(state.monitoring.text), media_type=MEDIA_TYPE)


@learning.get("/jobs", response_model=schemas.JobsAnswer, summary="Work in the background, newest first")
async def list_jobs(state: State) -> dict[str, list[Job]]:
    """List trainings and evaluations, the newest first."""
    return {"jobs": await state.in_thread(state.database.jobs)}


@learning.get("/jobs/{job_id}", response_model=schemas.JobAnswer, summary="Progress and result of a job")
async def show_job(job_id: Annotated[str, Path(max_length=200)], state: State) -> Job:
    """Show a job. Poll this while its state is queued or running."""
    job = await state.in_thread(state.database.job, job_id)
    if job is None:
        raise ProblemError(404, f"the id must be that of a job, but {job_id[:80]!r} is not; see /v1/jobs")
    return job


@learning.post(
    "/models/{model}/reload",
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
    changed = loaded.version != previous
    return schemas.ReloadAnswer(model=model, version=loaded.version, previous=previous, changed=changed)
