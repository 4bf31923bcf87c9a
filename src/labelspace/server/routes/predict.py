"""Answer Hugging Face's text classification and Label Studio, by the first model.

Both send ``POST /predict``. For Label Studio this is an ML backend, which also stores annotations as feedback.
"""

import re
from typing import Annotated, Any
from xml.etree.ElementTree import Element, ParseError, fromstring  # _parsed has the limits  # nosec B405

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from labelspace.server.database import Feedback, new_id
from labelspace.server.problems import ProblemError
from labelspace.server.routes.feedback import store_feedback
from labelspace.server.routes.suggest import Json
from labelspace.server.served_model import LoadedModel, Options, Tagged
from labelspace.server.state import ServerState, State, Writing, server_state
from labelspace.types import PATH_SEPARATOR

router = APIRouter(tags=["Hugging Face and Label Studio"])
SUGGESTED = 10
MAX_CONFIG = 1_000_000  # characters
CONTROLS = {"choices": "Choices", "taxonomy": "Taxonomy"}
CREATED, UPDATED = "ANNOTATION_CREATED", "ANNOTATION_UPDATED"
STORED_ACTIONS = (CREATED, UPDATED)


class Predictions(BaseModel):
    """A request of Label Studio; unused fields are ignored, as its own backends do."""

    tasks: Annotated[list[dict[str, Any]], Field(min_length=1)]
    label_config: str | None = None
    project: str | None = None
    params: dict[str, Any] | None = None
    context: dict[str, Any] | None = None


class Webhook(BaseModel):
    """An event of Label Studio."""

    action: str
    task: dict[str, Any] = {}
    annotation: dict[str, Any] = {}
    project: dict[str, Any] = {}


@router.get("/health", summary="Whether the ML backend is up")
async def health(state: State) -> dict[str, Any]:
    """Report the state of the backend to Label Studio."""
    return {"status": "UP" if state.is_ready else "LOADING", "model_class": "labelspace"}


@router.post("/setup", summary="Connect a project of Label Studio")
async def setup(state: State) -> dict[str, Any]:
    """Accept any project: its labeling configuration comes with each request."""
    return {"model_version": state.loaded(state.default_model).version}


@router.post("/webhook", status_code=201, summary="Take annotations of Label Studio as feedback", dependencies=Writing)
async def webhook(event: Webhook, state: State) -> dict[str, Any]:
    """Store choices and taxonomy labels of new and changed annotations; count labels that the model does not know."""
    if event.action not in STORED_ACTIONS:
        return {"stored": 0, "unknown_labels": 0}
    name = state.default_model
    loaded = state.loaded(name)
    config = event.project.get("label_config")
    text = task_text(event.task, read_config(config if isinstance(config, str) else None)["variable"])
    state.check_text(text)
    names = await state.in_thread(label_names, loaded, chosen_labels(event.annotation.get("result")))
    known = list(dict.fromkeys(each for each in names if each is not None))
    annotation = event.annotation.get("id")
    # Feedback of a changed annotation replaces the earlier one.
    id = f"label-studio-{annotation}" if isinstance(annotation, int) else new_id()
    entry = Feedback(id=id, text=text, accepted=known, by="label-studio", version=loaded.version)
    if event.action == UPDATED:
        await state.in_thread(state.database.withdraw_feedback, name, entry.id)
    if known:
        await store_feedback(state, name, [entry])
    return {"stored": int(bool(known)), "unknown_labels": names.count(None)}


async def predictions(state: ServerState, body: Predictions) -> dict[str, Any]:
    """Predict for each task, in the form of its labeling configuration."""
    state.check_documents(len(body.tasks))
    control = read_config(body.label_config)
    texts = [task_text(task, control["variable"]) for task in body.tasks]
    loaded, found = await state.tag(state.default_model, texts, SUGGESTED, Options())
    return {"results": [prediction(loaded, tagged, control) for tagged in found], "model_version": loaded.version}


def prediction(model: LoadedModel, tagged: Tagged, control: dict[str, str]) -> dict[str, Any]:
    """Return the labels with a score of at least 0.5, or else the best one, with the mean of their scores."""
    rows = list(zip(tagged.labels, tagged.scores, strict=True))
    kept = [(label, score) for label, score in rows if score >= 0.5] or rows[:1]
    names = [model.labels[label]["label"] for label, _ in kept]
    paths = [model.labels.steps(label, unique=bool(control["loads"])) for label, _ in kept]
    value = {"taxonomy": paths} if control["type"] == "taxonomy" else {"choices": names}
    result = {"from_name": control["from_name"], "to_name": control["to_name"], "type": control["type"], "value": value}
    score = sum(score for _, score in kept) / max(len(kept), 1)
    return {"result": [result] if kept else [], "score": score, "model_version": model.version}


def read_config(config: str | None) -> dict[str, str]:
    """Return the first choices or taxonomy of a labeling configuration, and the variable of its text.

    >>> read_config('<View><Text name="t" value="$title"/><Choices name="c" toName="t"/></View>')["variable"]
    'title'
    """
    found = {"from_name": "labels", "to_name": "text", "type": "choices", "variable": "", "loads": ""}
    if not config:
        return found
    root = _parsed(config)
    for kind, tag in CONTROLS.items():
        control = root.find(f".//{tag}")
        if control is not None:
            found |= {"from_name": control.get("name", ""), "to_name": control.get("toName", ""), "type": kind}
            found["loads"] = control.get("apiUrl", "")  # from /tree, which gives unique names
            break
    shown = next((each for each in root.iter() if each.get("name") == found["to_name"]), None)
    if shown is not None:
        found["variable"] = (shown.get("value") or "").lstrip("$")
    return found


def _parsed(config: str) -> Element:
    """Parse a labeling configuration; one with entities is an error, since they could grow without bounds."""
    try:
        if len(config) > MAX_CONFIG or re.search(r"<!(DOCTYPE|ENTITY)", config, re.IGNORECASE):
            raise ValueError("it is too long, or has a document type")
        return fromstring(config)  # noqa: S314 - without a document type there are no entities  # nosec B314
    except (ParseError, ValueError) as error:
        detail = f"label_config must be the XML of Label Studio, but is not ({error}); send it as it is"
        raise ProblemError(400, detail) from error


def task_text(task: dict[str, Any], variable: str | None) -> str:
    """Return the text of a task: that of the variable, or else the first one."""
    data = task.get("data")
    values = data if isinstance(data, dict) else {}
    given = values.get(variable) if variable else None
    text = given if isinstance(given, str) else next((each for each in values.values() if isinstance(each, str)), None)
    if text is None:
        detail = "a task must have a text in its data, but a task has none; send {'data': {'text': '...'}}"
        raise ProblemError(400, detail)
    return text


def chosen_labels(result: object) -> list[list[str]]:
    """Return the labels of an annotation, each as possible names: a taxonomy has the steps of a path.

    >>> chosen_labels([{"value": {"choices": ["tea"]}}, {"value": {"taxonomy": [["food", "bread"]]}}])
    [['tea'], ['food > bread', 'bread']]
    """
    values = [each.get("value") for each in _listed(result) if isinstance(each, dict)]
    chosen: list[list[str]] = []
    for value in values:
        if isinstance(value, dict):
            chosen += [[name] for name in _listed(value.get("choices")) if isinstance(name, str)]
            paths = ([str(step) for step in _listed(path)] for path in _listed(value.get("taxonomy")))
            chosen += [[PATH_SEPARATOR.join(path), path[-1]] for path in paths if path]
    return chosen


def label_names(model: LoadedModel, chosen: list[list[str]]) -> list[str | None]:
    """Return the first name of each label that the model knows, or None."""
    known = model.tagger.labels_.index
    return [next((name for name in names if name in known), None) for names in chosen]


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


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
        detail = f"function_to_apply must be sigmoid or none, but is {given[:80]!r}; labels are independent"
        raise ProblemError(400, detail)
    return Json(await classify(state, body))


async def classify(state: ServerState, body: Classification) -> list[Any]:
    """Return the labels and scores of a text, or of several."""
    texts = [body.inputs] if isinstance(body.inputs, str) else body.inputs
    loaded, found = await state.tag(state.default_model, texts, body.parameters.top_k, Options())
    answers = []
    for tagged in found:
        rows = zip(tagged.labels, tagged.scores, strict=True)
        answers.append([{"label": loaded.labels[label]["label"], "score": score} for label, score in rows])
    return answers[0] if isinstance(body.inputs, str) else answers
