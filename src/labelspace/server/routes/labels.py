"""Search labels while their name is typed, look them up, and list them level by level."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from starlette.convertors import PathConvertor, register_url_convertor

from labelspace.labels.selection import select_labels
from labelspace.server import schemas
from labelspace.server.problems import ProblemError
from labelspace.server.routes.suggest import Json
from labelspace.server.served_model import LoadedModel
from labelspace.server.state import State, server_state

router = APIRouter(prefix="/v1/models/{model}", tags=["labels"])
MAX_NARROWER = 100
PARENT = "The label whose children are listed; if there are several, the last one."


class TextConvertor(PathConvertor):
    """Match the rest of a path as any text: label names, and ids that clients choose, may have slashes and line ends.

    The convertor ``path`` of Starlette ends at the first line end.
    """

    regex = "(?s:.*)"


register_url_convertor("text", TextConvertor())


def rest_of_path(name: str) -> str:
    """Return the pattern of a parameter that takes the rest of a path.

    >>> "/labels/" + rest_of_path("label")
    '/labels/{label:text}'
    """
    return f"{{{name}:text}}"


@router.get("/labels", response_model=schemas.LabelsAnswer, summary="Search labels by the beginning of their words")
async def find_labels(
    model: str,
    request: Request,
    q: schemas.LabelQuery = "",
    limit: schemas.LabelLimit = 20,
    under: schemas.Branch = None,
) -> Response:
    """Find labels whose name starts with the query, then labels with words that do, then labels with one typo."""
    state = server_state(request)
    return Json(await state.in_thread(found_labels, state.loaded(model), q, limit, under))


def found_labels(model: LoadedModel, query: str, limit: int, under: str | None) -> dict[str, Any]:
    """Search labels, in a branch of the hierarchy if one is given."""
    branch = None if under is None else select_labels(model.tagger.labels_, under=model.labels.unique_name(under))
    allowed = None if branch is None else branch.allowed
    details, found = model.labels, model.search.find(query, limit, allowed)
    rows = [{**details[at], "description": details.description(at), "match": match} for at, match in found]
    return {"labels": rows}


@router.get("/labels/" + rest_of_path("label"), response_model=schemas.LabelAnswer, summary="Look up a label")
async def look_up(model: str, label: str, state: State) -> Response:
    """Look up a label by its name, URI or id, with its description, synonyms, broader and narrower labels."""
    return Json(await state.in_thread(label_answer, state.loaded(model), label))


def label_answer(model: LoadedModel, label: str) -> dict[str, Any]:
    """Return a label with synonyms, broader and narrower labels."""
    details = model.labels
    at = details.find(label)
    if at is None:
        n = len(details.labels)
        detail = f"a label must be a name, a URI or an id, but {label[:80]!r} is none of {n:,}; search /labels?q="
        raise ProblemError(404, detail)
    narrower = details.narrower(at)
    return {
        **details[at],
        "description": details.description(at),
        "synonyms": details.labels.shown_synonyms(at),
        "broader": [details[above] for above in details.broader(at)],
        "narrower": [details[below] for below in narrower[:MAX_NARROWER]],
        "n_narrower": len(narrower),
    }


@router.get("/tree", response_model=schemas.TreeAnswer, summary="One level of the hierarchy")
async def tree(
    model: str,
    state: State,
    path: Annotated[list[str] | None, Query(max_length=100, description=PARENT)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
) -> Response:
    """List the children of a label, or the roots; without a hierarchy, all labels."""
    parent = path[-1] if path else ""
    return Json(await state.in_thread(level, state.loaded(model), parent, limit, offset))


def level(model: LoadedModel, parent: str, limit: int, offset: int) -> dict[str, Any]:
    """Return the children of a label, or the roots."""
    details = model.labels
    at = details.find(parent) if parent else None
    if parent and at is None:
        raise ProblemError(404, f"path must be a label, but {parent[:80]!r} is none; leave path out for the roots")
    listed = details.roots() if at is None else details.narrower(at)
    return {"items": [tree_item(model, label) for label in listed[offset : offset + limit]], "total": len(listed)}


def tree_item(model: LoadedModel, label: int) -> dict[str, Any]:
    """Return a label as an item of a level."""
    shown = model.labels[label]
    n_below = model.labels.n_below(label)
    return {
        "value": shown["label"],
        "alias": shown["label"],  # the name in annotations of Label Studio
        "hint": shown["synonym"] or "",
        "isLeaf": n_below == 0,
        "id": label,
        "name": shown["name"],
        "count": shown["count"],
        "n_below": n_below,
    }
