"""Serve a model by the Model Context Protocol, so that an agent tags with the labels of a real vocabulary.

Each tool is a request of the HTTP service: the same schema, limits, answer and errors. What a tool is given was written
by a language model, perhaps after it read a text from a stranger: it may be anything.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp

from labelspace.errors import LabelspaceError
from labelspace.report.terminal import json_text, printable
from labelspace.server import schemas
from labelspace.server.database import open_database
from labelspace.server.gate import ROLE, Gate, with_cors
from labelspace.server.loading import running
from labelspace.server.monitoring import Monitoring
from labelspace.server.problems import FAILED, ProblemError, described
from labelspace.server.routes.feedback import add_feedback
from labelspace.server.routes.labels import found_labels, label_answer
from labelspace.server.routes.suggest import explain_answer, suggest_answer
from labelspace.server.settings import Settings, read_api_keys
from labelspace.server.state import ServerState, check_role
from labelspace.version import __version__

logger = logging.getLogger("labelspace.server")
PATH = "/mcp"
WAIT_SECONDS = 0.02  # between two looks at a model that is loading
INSTRUCTIONS = (
    "Tags texts with labels of a fixed vocabulary. Call suggest first, then choose among its labels; search_labels "
    "finds labels that were not suggested. Answer with the exact `label` of a result, never with a label of your own."
)
# Errors of the HTTP service name its paths: these are the tools in their place.
REMEDIES = {
    "search /labels?q=": "find it with search_labels",
    ", or send it in added with allow_new_labels": "",
    "see /docs for what is expected": "see the input schema of the tool",
}
Context = ServerRequestContext[ServerState]
Run = Callable[[ServerState, str, Any], Awaitable[dict[str, Any]]]


class ToolKind(NamedTuple):
    """A tool: what a language model is told about it, its input and output, and the function that answers."""

    description: str
    body: type[schemas.Body]
    answer: type[schemas.Answer]
    run: Run
    writes: bool = False


async def search_labels(state: ServerState, model: str, body: schemas.SearchBody) -> dict[str, Any]:
    """Return the labels that match a search."""
    return await state.in_thread(found_labels, state.loaded(model), body.query, body.limit, body.under)


async def label_info(state: ServerState, model: str, body: schemas.LabelBody) -> dict[str, Any]:
    """Return a label with synonyms, broader and narrower labels."""
    return await state.in_thread(label_answer, state.loaded(model), body.label)


async def store_decision(state: ServerState, model: str, body: schemas.DecisionBody) -> dict[str, Any]:
    """Store a decision under the name of its maker, else of this protocol."""
    entry = schemas.FeedbackBody(**{**body.model_dump(), "by": body.by or "mcp"})
    return (await add_feedback(model, [entry], state)).model_dump()


TOOLS = {
    "suggest": ToolKind(
        "Return the labels of the vocabulary that fit a text best, best first, each with its path in the hierarchy, "
        "its description and, if the model is calibrated, the probability that it is right. Ask for k=20 to 50 if you "
        "choose among them yourself. include, exclude and under restrict the labels; min_probability and precision "
        "leave out unsure ones. If `note` is not null, the model knows no word of the text, and the labels mean "
        "nothing.",
        schemas.SuggestBody,
        schemas.SuggestAnswer,
        suggest_answer,
    ),
    "explain": ToolKind(
        "Return the evidence for labels of a text: words that speak for or against them, matching names, and similar "
        "training documents. Give `labels` to explain these; without it the k best are explained.",
        schemas.ExplainBody,
        schemas.ExplainAnswer,
        explain_answer,
    ),
    "search_labels": ToolKind(
        "Find labels of the vocabulary by the beginning of a name or synonym, by its words, and with one typo. It "
        "compares letters, not meanings: try several words.",
        schemas.SearchBody,
        schemas.LabelsAnswer,
        search_labels,
    ),
    "label_info": ToolKind(
        "Return one label by its name, URI or id, with its description, synonyms, broader and narrower labels, and the "
        "number of training documents that have it (count).",
        schemas.LabelBody,
        schemas.LabelAnswer,
        label_info,
    ),
    "feedback": ToolKind(
        "Store which labels of a text a person found right and wrong. A model may learn from it later, so call it only "
        "for decisions of a person, not for your own.",
        schemas.DecisionBody,
        schemas.FeedbackAnswer,
        store_decision,
        writes=True,
    ),
}


def create_server(settings: Settings) -> Server[ServerState]:
    """Return the server of the first model of these settings; read-only settings have no tool that writes."""
    offered = {name: tool for name, tool in TOOLS.items() if not (tool.writes and settings.read_only)}

    async def list_tools(context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[described_tool(name, tool) for name, tool in offered.items()])

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        try:
            answer = await called(offered, context, params)
        except Exception as error:
            if not isinstance(error, (ProblemError, LabelspaceError, ValidationError, TimeoutError)):
                logger.exception("the tool %s failed", params.name[:80])
            return CallToolResult(content=[TextContent(type="text", text=refusal(error, settings))], is_error=True)
        text = json_text(answer, separators=(",", ":"))
        return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=answer)

    return Server(
        "labelspace",
        version=__version__,
        instructions=INSTRUCTIONS,
        lifespan=lambda server: running_state(settings),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


@asynccontextmanager
async def running_state(settings: Settings) -> AsyncIterator[ServerState]:
    """Load the model, and open the database; without feedback it is one that ends with the server."""
    with TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/feedback.db" if settings.read_only else settings.database_url
        state = ServerState(settings, open_database(url), Monitoring())
        async with running(state):
            yield state


def described_tool(name: str, tool: ToolKind) -> Tool:
    """Return a tool as clients see it."""
    hints = ToolAnnotations(read_only_hint=not tool.writes, destructive_hint=False, open_world_hint=False)
    return Tool(
        name=name,
        description=tool.description,
        input_schema=tool.body.model_json_schema(),
        output_schema=tool.answer.model_json_schema(mode="serialization"),
        annotations=hints,
    )


async def called(offered: dict[str, ToolKind], context: Context, params: CallToolRequestParams) -> dict[str, Any]:
    """Return the answer of a tool; a call waits for a model that is loading."""
    tool = offered.get(params.name)
    if tool is None:
        detail = f"a tool must be one of {', '.join(offered)}, but is {params.name[:80]!r}; call one of these"
        raise ProblemError(404, detail)
    if tool.writes and context.request is not None:  # over HTTP; a process on its own pipe is its user's
        check_role(context.request.scope.get(ROLE))
    body, state = tool.body.model_validate(params.arguments or {}), context.lifespan_context
    model = state.models[state.default_model]
    async with asyncio.timeout(state.settings.limits.timeout_seconds):
        while model.current is None and model.error is None:
            await asyncio.sleep(WAIT_SECONDS)
        return await tool.run(state, model.name, body)


def refusal(error: Exception, settings: Settings) -> str:
    """Return the line for an error: the rule, the value and the remedy, by tools in place of paths."""
    match error:
        case ValidationError():
            line = described(error.errors())
        case ProblemError() | LabelspaceError():
            line = str(error)
        case TimeoutError():
            seconds = settings.limits.timeout_seconds
            line = f"an answer must take at most {seconds:g} s, but this one took longer; send less, or try again"
        case _:
            line = FAILED
    for path, tool in REMEDIES.items():
        line = line.replace(path, tool)
    return printable(line)


async def serve_stdio(settings: Settings) -> None:
    """Answer the process at the other end of stdin and stdout until it closes them."""
    server = create_server(settings)
    async with stdio_server() as (requests, answers):
        await server.run(requests, answers, server.create_initialization_options())


def http_app(settings: Settings) -> ASGIApp:
    """Return the application that answers ``POST /mcp``, each request on its own, behind the gate of the service."""
    sessions = StreamableHTTPSessionManager(create_server(settings), json_response=True, stateless=True)
    routes = [Route(PATH, StreamableHTTPASGIApp(sessions), methods=["POST"])]
    keys = None if settings.api_key_file is None else read_api_keys(settings.api_key_file)
    app = Starlette(routes=routes, lifespan=lambda app: sessions.run())
    return with_cors(Gate(app, settings, keys, Monitoring()), settings.cors_origins)
