"""The command serve."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelspace.cli.cluster import ClusterOption
from labelspace.cli.console import print_line
from labelspace.cli.notes import note
from labelspace.server.settings import RequestLimits

if TYPE_CHECKING:
    from labelspace.server.settings import Settings

LIMITS, CLUSTER = "Limits of a request", "On a cluster (--cluster)"
DEFAULTS = RequestLimits()


def serve(
    models: Annotated[
        list[str], typer.Argument(metavar="MODEL...", help="Folders saved by `labelspace train`, also as NAME=FOLDER.")
    ],
    host: Annotated[str, typer.Option("--host", help="Address to listen on; others than this machine need keys.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes that answer; they share a model.")] = 1,
    cluster: ClusterOption = None,
    replicas: Annotated[
        int | None,
        typer.Option("--replicas", min=1, rich_help_panel=CLUSTER, help="Processes that each hold a whole model."),
    ] = None,
    shards: Annotated[
        int | None,
        typer.Option("--shards", min=1, rich_help_panel=CLUSTER, help="Processes that each hold a part of the labels."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", metavar="DATA", help="What the model was trained on: for /learn, and figures where it has test.*."
        ),
    ] = None,
    inbox: Annotated[
        Path | None, typer.Option("--inbox", metavar="FILE", help="Documents to review, as for `predict --input`.")
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            "--database",
            metavar="URL",
            help="Where feedback goes: sqlite:///FILE or postgresql://... Default: MODEL.feedback.db beside the model.",
        ),
    ] = None,
    api_key_file: Annotated[
        Path | None, typer.Option("--api-key-file", metavar="FILE", help="Keys, one a line: 'read KEY' or 'write KEY'.")
    ] = None,
    no_auth: Annotated[bool, typer.Option("--no-auth", help="Let other machines ask without a key.")] = False,
    read_only: Annotated[bool, typer.Option("--read-only", help="Take no feedback and no other changes.")] = False,
    cors_origin: Annotated[
        list[str] | None,
        typer.Option("--cors-origin", metavar="ORIGIN", help="Web site that may ask, as https://a.org. Repeatable."),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option("--allowed-host", metavar="NAME", help="Further name of this machine in requests. Repeatable."),
    ] = None,
    max_body_bytes: Annotated[int, typer.Option(min=1, rich_help_panel=LIMITS)] = DEFAULTS.max_body_bytes,
    max_documents: Annotated[
        int, typer.Option(min=1, rich_help_panel=LIMITS, help="Of a batch.")
    ] = DEFAULTS.max_documents,
    max_text_characters: Annotated[int, typer.Option(min=1, rich_help_panel=LIMITS)] = DEFAULTS.max_text_characters,
    max_k: Annotated[int, typer.Option(min=1, rich_help_panel=LIMITS, help="Labels per document.")] = DEFAULTS.max_k,
    max_concurrent_requests: Annotated[
        int, typer.Option(min=1, rich_help_panel=LIMITS, help="Of one worker; beyond it the answer is 429.")
    ] = DEFAULTS.max_concurrent_requests,
    timeout_seconds: Annotated[float, typer.Option(min=0.1, rich_help_panel=LIMITS)] = DEFAULTS.timeout_seconds,
    access_log: Annotated[
        bool, typer.Option("--access-log", help="Log route, status and time of each request; never a text.")
    ] = False,
) -> None:
    """Serve models over HTTP, with a page to work in: suggestions, reasons, label search, feedback, review, learning.

    `http://127.0.0.1:8000/docs` lists the API. Ctrl-C ends the server.
    """
    from labelspace.errors import require

    require("fastapi", "serve", "labelspace serve")
    require("uvicorn", "serve", "labelspace serve")
    from labelspace.server import supervisor
    from labelspace.server.processes import reserve
    from labelspace.server.settings import Settings, parse_models

    limits = RequestLimits(
        max_body_bytes, max_documents, max_text_characters, max_k, max_concurrent_requests, timeout_seconds
    )
    data_path, inbox_path, key_path = (None if path is None else str(path) for path in (data, inbox, api_key_file))
    settings = Settings(
        models=parse_models(models), host=host, port=port, workers=workers, database=database, no_auth=no_auth,
        read_only=read_only, cors_origins=cors_origin or [], allowed_hosts=allowed_host or [], access_log=access_log,
        limits=limits, data=data_path, inbox=inbox_path, api_key_file=key_path,
    )  # fmt: skip
    check_cluster(cluster, replicas, shards)
    check_files(settings)
    supervisor.check(settings)
    with on_cluster(settings, cluster, replicas, shards) as settings, reserve(settings) as reserved:
        say_where(settings, reserved.getsockname()[1])
        supervisor.serve(settings, reserved)


def check_cluster(address: str | None, replicas: int | None, shards: int | None) -> None:
    """Refuse options of a cluster that do not go together."""
    from labelspace.errors import ParameterError

    if address is None and (replicas or shards):
        raise ParameterError("--replicas and --shards are processes of a cluster, but there is none; add --cluster")
    if address is not None and (replicas is None) == (shards is None):
        given = "neither is given" if replicas is None else "both are given"
        raise ParameterError(
            f"a cluster holds either replicas of a model or shards of its labels, but {given}; "
            "use --replicas N for load, or --shards N for a model that fits no single machine"
        )


@contextmanager
def on_cluster(settings: Settings, address: str | None, replicas: int | None, shards: int | None) -> Iterator[Settings]:
    """The settings of a server whose models are on a cluster, while they are there."""
    if address is None:
        yield settings
        return
    from labelspace.cluster import connect
    from labelspace.cluster.serving import serving

    with connect(address) as cluster:
        note(f"cluster: {cluster.described}")
        with serving(cluster, settings.models, shards or replicas or 1, sharded=shards is not None) as served:
            n, kind = served.n_actors, "shard" if served.sharded else "replica"
            note(f"each model is on the cluster in {n} {kind}{'s' * (n > 1)}")
            yield replace(settings, cluster=asdict(served))


def check_files(settings: Settings) -> None:
    """Load every model once, and open the data: what is wrong with them is said before the server starts."""
    from labelspace.data.source import open_source
    from labelspace.errors import DataError
    from labelspace.tagger import Tagger

    for folder in settings.models.values():
        tagger = Tagger.load(folder)
        if tagger.ready_made:
            raise DataError(
                f"a served model must read texts, but {folder} was trained on ready-made features; train one on texts"
            )
    if settings.data is not None:
        open_source(settings.data)
    if settings.inbox is not None and not Path(settings.inbox).is_file():
        raise DataError(f"--inbox must be a file of documents, but {settings.inbox} is none; check the path")


def say_where(settings: Settings, port: int) -> None:
    """Say what is served, and where."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    listed = ", ".join(settings.models)
    workers = f"{settings.workers} worker{'s' if settings.workers > 1 else ''}"
    print_line(f"serving {listed} at http://{host}:{port} with {workers}; the API is at http://{host}:{port}/docs")
    if not settings.read_only:
        note(f"feedback goes to {settings.shown_database}")
    if settings.no_auth:
        note("everyone who can reach this machine may use the server and change its feedback: --no-auth")
