"""Serve the API of Annif 1.x for its clients: a project is a model.

It is tested with the package ``annif-client``. ``learn`` stores feedback; only /learn starts a training.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from labelspace.server.database import Feedback
from labelspace.server.problems import ProblemError, ProblemResponse, documented
from labelspace.server.routes.feedback import store_feedback
from labelspace.server.routes.suggest import Json
from labelspace.server.served_model import LoadedModel, Options, Tagged
from labelspace.server.state import State, Writing, server_state

router = APIRouter(prefix="/v1", tags=["Annif"])
UNKNOWN_LANGUAGE = "und"  # the code of ISO 639


class AnnifDocument(BaseModel):
    """A document of a batch."""

    text: str
    document_id: str | None = None
    metadata: dict[str, Any] | None = None


class AnnifBatch(BaseModel):
    """Documents to tag."""

    documents: Annotated[list[AnnifDocument], Field(min_length=1)]


class AnnifSubject(BaseModel):
    """A label, by its URI or name."""

    uri: str | None = None
    label: str | None = None


class AnnifExample(BaseModel):
    """A document with its labels."""

    text: Annotated[str, Field(min_length=1)]
    subjects: Annotated[list[AnnifSubject], Field(min_length=1)]
    metadata: dict[str, Any] | None = None


class AnnifResult(BaseModel):
    """A suggested label."""

    uri: str
    label: str
    notation: str | None
    score: float


class AnnifResults(BaseModel):
    """The suggestions for a text."""

    results: list[AnnifResult]


class AnnifBatchResult(AnnifResults):
    """The suggestions for a document of a batch."""

    document_id: str | None


@router.get("/projects", summary="The served models as projects")
async def projects(state: State) -> dict[str, Any]:
    """List the served models as projects."""
    return {"projects": [project_answer(state.loaded(name), name) for name in state.models]}


@router.get("/projects/{project}", summary="A served model as a project")
async def project(project: str, state: State) -> dict[str, Any]:
    """Describe a served model as a project."""
    return project_answer(state.loaded(project), project)


@router.post("/projects/{project}/suggest", response_model=AnnifResults, summary="Suggest labels, form-encoded")
async def suggest(
    project: str,
    request: Request,
    text: Annotated[str, Form(min_length=1)],
    limit: Annotated[int, Form(ge=1)] = 10,
    threshold: Annotated[float, Form(ge=0, le=1)] = 0.0,
    language: Annotated[str | None, Form(max_length=100)] = None,
) -> Response:
    """Suggest labels with a score of at least the threshold, with names in ``language`` if the vocabulary has them."""
    state = server_state(request)
    loaded, found = await state.tag(project, [text], limit, Options())
    return Json({"results": results(loaded, found[0], threshold, language)})


@router.post(
    "/projects/{project}/suggest-batch",
    response_model=list[AnnifBatchResult],
    summary="Suggest labels for several documents",
)
async def suggest_batch(
    project: str,
    body: AnnifBatch,
    request: Request,
    limit: Annotated[int, Query(ge=1)] = 10,
    threshold: Annotated[float, Query(ge=0, le=1)] = 0.0,
    language: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """Suggest labels for several documents, in their order."""
    state = server_state(request)
    loaded, found = await state.tag(project, [each.text for each in body.documents], limit, Options())
    rows = zip(body.documents, found, strict=True)
    answers = ((each.document_id, results(loaded, tagged, threshold, language)) for each, tagged in rows)
    return Json([{"document_id": id, "results": found} for id, found in answers])


@router.post("/projects/{project}/learn", status_code=204, summary="Store documents with labels", dependencies=Writing)
async def learn(project: str, examples: list[AnnifExample], state: State) -> Response:
    """Store documents as feedback; a subject that the model does not know is an error."""
    state.check_documents(len(examples))
    loaded = state.loaded(project)
    entries = []
    for each in examples:
        state.check_text(each.text)
        labels = await state.in_thread(subject_names, loaded, each.subjects)
        entries.append(Feedback(text=each.text, accepted=labels, version=loaded.version))
    if entries:
        await store_feedback(state, project, entries)
    return Response(status_code=204)


@router.post(
    "/detect-language",
    status_code=501,
    summary="Not offered",
    response_class=ProblemResponse,
    responses={501: documented("Always.")},
)
async def detect_language() -> None:
    """Answer that the service does not detect languages."""
    detail = "language detection is a part of Annif that this service does not offer; use another package"
    raise ProblemError(501, detail)


def project_answer(model: LoadedModel, name: str) -> dict[str, Any]:
    """Describe a model as a project."""
    languages = model.labels.languages or [UNKNOWN_LANGUAGE]
    return {
        "project_id": name,
        "name": name,
        "language": UNKNOWN_LANGUAGE,
        "vocab": {"vocab_id": name, "languages": languages, "size": len(model.tagger.labels_), "loaded": True},
        "vocab_language": UNKNOWN_LANGUAGE,
        "backend": {"backend_id": model.tagger.model.name},
        "is_trained": True,
        "modification_time": model.created,
    }


def results(model: LoadedModel, tagged: Tagged, threshold: float, language: str | None) -> list[dict[str, Any]]:
    """Return suggestions in Annif's form; a label without a URI has its unique name in place of it."""
    found = []
    for number, score in zip(tagged.labels, tagged.scores, strict=True):
        if score >= threshold:
            label = model.labels.named(number, language)
            uri = label["uri"] or label["label"]
            found.append({"uri": uri, "label": label["name"], "notation": label["notation"], "score": score})
    return found


def subject_names(model: LoadedModel, subjects: list[AnnifSubject]) -> list[str]:
    """Return the unique names of labels that are given by URI or by name."""
    known, names = model.tagger.labels_, []
    for subject in subjects:
        given = [each.removeprefix("<").removesuffix(">") for each in (subject.uri, subject.label) if each]
        found = next((label for each in given if (label := known.find(each)) is not None), None)
        if found is None:
            shown = " / ".join(given)[:80]
            raise ProblemError(400, f"a subject must be a label of the model, but {shown!r} is none; search /labels?q=")
        names.append(known.names[found])
    return list(dict.fromkeys(names))
