"""Answer ``POST /predict`` of two kinds of clients: Hugging Face's text classification, and Label Studio."""

from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from labelspace.server.problems import ProblemError
from labelspace.server.routes.label_studio import Predictions, predictions
from labelspace.server.routes.suggest import Json
from labelspace.server.served_model import LoadedModel, Options, Tagged
from labelspace.server.state import ServerState, server_state

router = APIRouter(tags=["Hugging Face and Label Studio"])
HUGGING_FACE, LABEL_STUDIO = "Hugging Face", "Label Studio"  # names in error messages


class ClassificationParameters(BaseModel):
    """Parameters of Hugging Face's clients."""

    model_config = ConfigDict(extra="forbid")
    top_k: Annotated[int, Field(ge=1)] = 5
    function_to_apply: str | None = None


class Classification(BaseModel):
    """A text, or several."""

    model_config = ConfigDict(extra="forbid")
    inputs: str | Annotated[list[str], Field(min_length=1)]
    parameters: ClassificationParameters = ClassificationParameters()


def client_of(body: object) -> str:
    """Return which client sent a body: only Label Studio sends tasks."""
    return LABEL_STUDIO if isinstance(body, dict) and "tasks" in body else HUGGING_FACE


class ClassifiedLabel(BaseModel):
    """A label of a text."""

    label: str
    score: float


class TaskPredictions(BaseModel):
    """Predictions as Label Studio takes them, one for each task."""

    results: list[dict[str, Any]]
    model_version: str


PredictAnswer = list[ClassifiedLabel] | list[list[ClassifiedLabel]] | TaskPredictions
PredictBody = Annotated[
    Annotated[Classification, Tag(HUGGING_FACE)] | Annotated[Predictions, Tag(LABEL_STUDIO)], Discriminator(client_of)
]


@router.post(
    "/predict",
    response_model=PredictAnswer,
    summary="Classify texts, or predict for tasks of Label Studio, by the first model",
)
async def predict(body: PredictBody, request: Request) -> Response:
    """Return a list of label and score for a text, a list of lists for several, or results for Label Studio's tasks."""
    state = server_state(request)
    if isinstance(body, Predictions):
        return Json(await predictions(state, body))
    if body.parameters.function_to_apply not in (None, "sigmoid", "none"):
        given = body.parameters.function_to_apply
        raise ProblemError(
            400, f"function_to_apply must be sigmoid or none, but is {given[:80]!r}; labels are independent"
        )
    return Json(await classify(state, body))


async def classify(state: ServerState, body: Classification) -> list[Any]:
    """Return the labels and scores of a text, or of several."""
    texts = [body.inputs] if isinstance(body.inputs, str) else body.inputs
    state.check_documents(len(texts))
    loaded, found = await state.tag(state.default_model, texts, body.parameters.top_k, Options())
    rows = [classified(loaded, tagged) for tagged in found]
    return rows[0] if isinstance(body.inputs, str) else rows


def classified(model: LoadedModel, tagged: Tagged) -> list[dict[str, Any]]:
    """Return labels and scores, best first."""
    rows = zip(tagged.labels, tagged.scores, strict=True)
    return [{"label": model.labels[label]["label"], "score": score} for label, score in rows]
