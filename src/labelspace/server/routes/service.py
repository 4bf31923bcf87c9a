"""The service itself: what it serves, within which limits, how good it is, and whether it is ready."""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from labelspace.models.capabilities import HasLabelPoints, require
from labelspace.report.curves import precision_coverage_svg, reliability_svg
from labelspace.report.map import map_page
from labelspace.server import schemas
from labelspace.server.job import EVALUATE
from labelspace.server.monitoring import MEDIA_TYPE
from labelspace.server.problems import ProblemError
from labelspace.server.routes.page import hashed_policy
from labelspace.server.routes.review import progress
from labelspace.server.routes.suggest import Json
from labelspace.server.served_model import LoadedModel
from labelspace.server.state import ServerState, State, server_state
from labelspace.version import __version__

router = APIRouter()
SHOWN_FIGURES = ("P@1", "P@3", "P@5", "nDCG@1", "nDCG@3", "nDCG@5", "PSP@1", "PSP@3", "PSP@5", "R@5", "RP@5", "ECE@5")
MARKED = (90, 95)  # precisions, percent


@router.get("/v1", response_model=schemas.ServiceAnswer, tags=["service"], summary="Models, limits, version")
@router.get("/v1/", response_model=schemas.ServiceAnswer, include_in_schema=False)
async def service(state: State) -> dict[str, Any]:
    """What the service offers."""
    settings = state.settings
    return {
        "name": "labelspace",
        "title": "labelspace REST API",
        "version": __version__,
        "models": list(state.models),
        "limits": asdict(settings.limits),
        "authentication": "none" if settings.api_key_file is None else "key",
        "read_only": settings.read_only,
    }


@router.get("/v1/models", response_model=schemas.ModelsAnswer, tags=["service"], summary="All served models")
async def models(state: State) -> dict[str, Any]:
    """With the same facts as for a single one."""
    return {"models": [await model_answer(state, name) for name in state.models]}


@router.get("/v1/models/{model}", response_model=schemas.ModelAnswer, tags=["service"], summary="A served model")
async def model(model: str, state: State) -> dict[str, Any]:
    """Method, members, labels, version, size, thresholds, and figures where they were measured."""
    return await model_answer(state, model)


@router.get(
    "/v1/models/{model}/figures", response_model=schemas.FiguresAnswer, tags=["service"], summary="How good a model is"
)
async def figures(model: str, request: Request) -> Response:
    """All figures of ``labelspace evaluate`` on the test documents of ``--data``, and diagrams."""
    state = server_state(request)
    loaded = state.loaded(model)
    found = await state.in_thread(state.database.figures, model, loaded.version)
    if found is not None:
        return Json({"state": "ready", **found, "svg": diagrams(found["figures"])})
    jobs = await state.in_thread(state.database.jobs)
    if any(job.model == model and job.kind == EVALUATE and job.state in ("queued", "running") for job in jobs):
        return Json({"state": "running"})
    raise ProblemError(
        404, f"figures need test documents, but none were measured for this version of {model}; start the server with "
        "--data DATA, a folder with test.*",
    )  # fmt: skip


def diagrams(figures: dict[str, Any]) -> dict[str, str | None]:
    """The reliability diagram and the precision-coverage curve."""
    marked = {percent: figures[f"coverage_at_precision_{percent}"] for percent in MARKED}
    reliability = reliability_svg(figures["reliability"]) if "reliability" in figures else None
    return {
        "reliability": reliability,
        "precision_coverage": precision_coverage_svg(figures["precision_coverage"], marked),
    }


@router.get("/v1/models/{model}/map", response_class=HTMLResponse, tags=["service"], summary="The map of the labels")
async def label_map(model: str, state: State) -> HTMLResponse:
    """The labels on the Poincaré disk, as one page, for a model that has points."""
    loaded = state.loaded(model)
    require(loaded.tagger.model, HasLabelPoints)
    page = await state.in_thread(drawn_map, loaded, model)
    return HTMLResponse(page, headers={"Content-Security-Policy": hashed_policy(page)})


def drawn_map(loaded: LoadedModel, name: str) -> str:
    """The page of the map."""
    points = require(loaded.tagger.model, HasLabelPoints).label_points()
    return map_page(points, loaded.tagger.labels_, f"Labels of {name}")


async def model_answer(state: ServerState, name: str) -> dict[str, Any]:
    """All about a model."""
    loaded = state.loaded(name)
    found = await state.in_thread(state.database.figures, name, loaded.version)
    measured = None if found is None else found["figures"]
    return {
        "id": name,
        **loaded.about,
        "ready": True,
        "figures": None if measured is None else {key: measured[key] for key in SHOWN_FIGURES if key in measured},
        "can_learn": state.settings.data is not None and not state.settings.read_only,
        "n_feedback": await state.in_thread(state.database.count_feedback, name),
        "n_inbox": await progress(state, name),
    }


@router.get("/livez", response_model=schemas.HealthAnswer, tags=["health"], summary="Whether the process lives")
async def livez() -> dict[str, Any]:
    """Always, where it can be asked."""
    return {"status": "ok"}


@router.get(
    "/readyz",
    response_model=schemas.HealthAnswer,
    tags=["health"],
    summary="Whether every model has answered once",
    responses={503: {"description": "A model is being loaded, or cannot be loaded.", "model": schemas.HealthAnswer}},
)
async def readyz(state: State) -> Response:
    """Not before a text was tagged: the first one compiles kernels."""
    if state.is_ready:
        return JSONResponse({"status": "ready", "detail": None})
    waiting = [model for model in state.models.values() if model.current is None]
    detail = "; ".join(f"{model.name}: {model.error or 'is being loaded'}" for model in waiting)
    detail = detail or "another worker is loading its models"
    return JSONResponse({"status": "not ready", "detail": detail}, 503, {"Retry-After": "1"})


@router.get("/metrics", tags=["health"], summary="Counters for Prometheus", response_class=Response)
async def metrics(state: State) -> Response:
    """Of all workers."""
    return Response(await state.in_thread(state.monitoring.text), media_type=MEDIA_TYPE)
