"""The command mcp."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from typer import Option

from labelspace.cli.arguments import ModelPath, OptionGroup
from labelspace.cli.notes import note
from labelspace.cli.serve import check_files

if TYPE_CHECKING:
    from labelspace.server.settings import Settings

PANEL = "Over HTTP (--http)"
API_KEYS = "File of keys, one on a line: 'read KEY' or 'write KEY'."


class HttpOptions(NamedTuple):
    """The options of a server over HTTP; None stands for the default of ``Settings``."""

    http: Annotated[bool, Option(help="Answer over HTTP (streamable), in place of stdin and stdout.")] = False
    host: Annotated[
        str | None, Option(rich_help_panel=PANEL, help="Address to listen on; another than 127.0.0.1 needs keys.")
    ] = None
    port: Annotated[
        int | None, Option(min=0, max=65535, rich_help_panel=PANEL, help="Port; 0 takes a free one. Default: 8000.")
    ] = None
    api_key_file: Annotated[str | None, Option(metavar="FILE", rich_help_panel=PANEL, help=API_KEYS)] = None
    no_auth: Annotated[bool, Option(rich_help_panel=PANEL, help="Let other machines use it without a key.")] = False
    cors_origin: Annotated[
        list[str] | None,
        Option(metavar="ORIGIN", rich_help_panel=PANEL, help="Website that may use it, as https://a.org. Repeatable."),
    ] = None
    allowed_host: Annotated[
        list[str] | None,
        Option(metavar="NAME", rich_help_panel=PANEL, help="Further name of this machine. Repeatable."),
    ] = None

    def applied_to(self, settings: "Settings") -> "Settings":
        """Return settings with these options; raise ParameterError if they are given without --http."""
        from labelspace.errors import ParameterError

        given = {name: value for name, value in self._asdict().items() if name != "http" and value}
        if self.port is not None:
            given["port"] = self.port
        if given and not self.http:
            flag = f"--{next(iter(given)).replace('_', '-')}"
            raise ParameterError(f"{flag} is for a server over HTTP, but there is none; add --http, or leave it out")
        lists = {f"{name}s": given.pop(name, []) for name in ("cors_origin", "allowed_host")}
        return replace(settings, **given, **lists)


def mcp(
    model: ModelPath,
    *,
    http: Annotated[HttpOptions, Option(parser=OptionGroup.of(HttpOptions))],
    feedback: Annotated[
        Path | None,
        Option(
            metavar="FOLDER",
            help="Offer the tool feedback, and store decisions there, in NAME.feedback.db, as `serve` does next to a "
            "model.",
        ),
    ] = None,
) -> None:
    """Serve a model to agents by the Model Context Protocol: suggest, explain, search_labels, label_info, feedback.

    An agent starts it as a process: {"command": "labelspace", "args": ["mcp", "MODEL"]}.
    """
    from labelspace.errors import require
    from labelspace.kernels.threads import THREADS_VARIABLE

    require("mcp", "mcp", "labelspace mcp")
    require("fastapi", "mcp", "labelspace mcp")
    from labelspace.server import mcp as server
    from labelspace.server import supervisor
    from labelspace.server.settings import Settings, parse_models

    os.environ.setdefault(THREADS_VARIABLE, "1")  # a text is too short for threads: they double its time
    models = parse_models([str(model)])
    database = database_in(feedback, next(iter(models)))
    settings = http.applied_to(Settings(models, read_only=feedback is None, database=database))
    check_files(settings)
    if feedback is not None:
        supervisor.check(settings)
    if http.http:
        serve_http(settings)
    else:
        asyncio.run(server.serve_stdio(settings))


def database_in(folder: Path | None, model: str) -> str | None:
    """Return the address of the database of a model in a folder, which is made; None without a folder."""
    if folder is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    return f"sqlite:///{folder.resolve() / model}.feedback.db"


def serve_http(settings: "Settings") -> None:
    """Answer over HTTP until Ctrl-C."""
    from labelspace.server.http_server import http_server
    from labelspace.server.mcp import PATH, http_app
    from labelspace.server.supervisor import reserve

    with reserve(settings) as reserved:
        port = reserved.getsockname()[1]
        app = http_app(replace(settings, port=port))
        note(f"serving {next(iter(settings.models))} at http://{settings.host}:{port}{PATH}")
        http_server(app).run(sockets=[reserved])
