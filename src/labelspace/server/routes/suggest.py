"""Suggest labels, and explain suggestions."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from labelspace.report.terminal import json_text
from labelspace.server import schemas
from labelspace.server.served_model import LoadedModel, Options, Tagged
from labelspace.server.state import ServerState, State, server_state

router = APIRouter(prefix="/v1/models/{model}", tags=["suggestions"])
DIGITS = 6


class Json(Response):
    """A JSON answer that is not validated against its schema, which would take longer than tagging."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:  # noqa: ANN401 - plain values
        """Return the content as JSON that every parser reads."""
        return json_text(content, separators=(",", ":")).encode()


@router.post("/suggest", response_model=schemas.SuggestAnswer, summary="Suggest labels for a text")
async def suggest(model: str, body: schemas.SuggestBody, request: Request) -> Response:
    """Return the k best labels of a text, best first, each with its probability if the model is calibrated."""
    return Json(await suggest_answer(server_state(request), model, body))


async def suggest_answer(state: ServerState, model: str, body: schemas.SuggestBody) -> dict[str, Any]:
    """Return the k best labels of a text, with reasons if they are requested."""
    loaded, found = await state.tag(model, [body.text], body.k, options_of(body))
    answer = document_answer(loaded, found[0], body.language)
    for suggestion in answer["suggestions"]:
        suggestion["description"] = loaded.labels.description(suggestion["id"])
    if body.explain and answer["suggestions"]:
        labels = [suggestion["label"] for suggestion in answer["suggestions"]]
        reasons = await state.inference.run(explanations, loaded, body.text, labels, None)
        for suggestion, reason in zip(answer["suggestions"], reasons, strict=True):
            suggestion["explanation"] = reason
    return {"model": model, "version": loaded.version, **answer}


@router.post("/suggest-batch", response_model=schemas.SuggestBatchAnswer, summary="Suggest labels for several texts")
async def suggest_batch(model: str, body: schemas.SuggestBatchBody, request: Request) -> Response:
    """Return the k best labels of each document, in the order of the documents."""
    state = server_state(request)
    loaded, found = await state.tag(model, [each.text for each in body.documents], body.k, options_of(body))
    rows = zip(body.documents, found, strict=True)
    results = [{"id": document.id, **document_answer(loaded, tagged, body.language)} for document, tagged in rows]
    return Json({"model": model, "version": loaded.version, "results": results})


@router.post("/explain", response_model=schemas.ExplainAnswer, summary="Explain why a text has labels")
async def explain(model: str, body: schemas.ExplainBody, state: State) -> Response:
    """Explain labels by the words, names, similar documents and members that support them.

    ``start`` and ``end`` of a word count code points.
    """
    return Json(await explain_answer(state, model, body))


async def explain_answer(state: ServerState, model: str, body: schemas.ExplainBody) -> dict[str, Any]:
    """Return the reasons for labels of a text."""
    state.check_text(body.text)
    state.check_k(body.k if body.labels is None else len(body.labels))
    loaded = state.loaded(model)
    found = await state.inference.run(explanations, loaded, body.text, body.labels, body.k)
    return {"model": model, "version": loaded.version, "explanations": found}


def options_of(body: schemas.TagOptionsBody) -> Options:
    """Return the options that a request gives; defaults are left out, so that equal requests are equal."""
    given = []
    for name in schemas.TAG_OPTIONS:
        value = getattr(body, name)
        if value is None or value is False or value == []:
            continue
        given.append((name, tuple(value) if isinstance(value, list) else value))
    return Options(tuple(given))


def document_answer(model: LoadedModel, tagged: Tagged, language: str | None = None) -> dict[str, Any]:
    """Return the answer for one document as plain values, with names in a language if labels have them."""
    names = model.tagger.labels_.names
    sure: list[Any] = tagged.probabilities or [None] * len(tagged.labels)
    rows = enumerate(zip(tagged.labels, tagged.scores, sure, strict=True), 1)
    return {
        "suggestions": [
            {**model.labels.named(label, language), "rank": rank, "score": score, "probability": probability}
            for rank, (label, score, probability) in rows
        ],
        "left_out": [
            {**each._asdict(), "label": names[each.label], "score": round(each.score, DIGITS)}
            for each in tagged.left_out
        ],
        "note": tagged.note,
    }


def explanations(model: LoadedModel, text: str, labels: list[str] | None, k: int | None) -> list[Mapping[str, Any]]:
    """Explain the labels of a text, as plain values."""
    found = model.tagger.explain(text, labels=labels, k=k or 3)
    return [
        {**each.to_dict(), "marked": [{**word._asdict(), "share": round(word.share, DIGITS)} for word in each.marked()]}
        for each in found
    ]
