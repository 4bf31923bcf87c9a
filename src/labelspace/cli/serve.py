"""The command serve."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from typer import Argument, Option

from labelspace.cli.arguments import OptionGroup
from labelspace.cli.cluster import ADDRESS
from labelspace.cli.console import print_line
from labelspace.cli.notes import note
from labelspace.server.settings import RequestLimits

if TYPE_CHECKING:
    from labelspace.server.settings import Settings

CLUSTER = "On a cluster (--cluster)"
DEFAULTS = RequestLimits()


class ServeClusterOptions(NamedTuple):
    """The options of models on a cluster."""

    address: Annotated[str | None, ADDRESS] = None
    replicas: Annotated[
        int | None, Option(min=1, rich_help_panel=CLUSTER, help="Processes that each hold a whole model.")
    ] = None
    shards: Annotated[
        int | None, Option(min=1, rich_help_panel=CLUSTER, help="Processes that each hold a part of the labels.")
    ] = None

    def check(self) -> None:
        """Raise ParameterError if these options do not go together."""
        from labelspace.errors import ParameterError

        if self.address is None and (self.replicas or self.shards):
            raise ParameterError("--replicas and --shards are processes of a cluster, but there is none; add --cluster")
        if self.address is not None and (self.replicas is None) == (self.shards is None):
            given = "neither is given" if self.replicas is None else "both are given"
            remedy = "use --replicas N for load, or --shards N for a model that fits no single machine"
            rule = "a cluster holds either replicas of a model or shards of its labels"
            raise ParameterError(f"{rule}, but {given}; {remedy}")


class StoreOptions(NamedTuple):
    """The options of what the server reads and writes next to its models."""

    data: Annotated[
        Path | None,
        Option(
            metavar="DATA", help="What the model was trained on: for full trainings, and for figures by its test.*."
        ),
    ] = None
    inbox: Annotated[Path | None, Option(metavar="FILE", help="Documents to review, as for `predict --input`.")] = None
    database: Annotated[
        str | None,
        Option(
            metavar="URL",
            help="Where feedback is stored: sqlite:///FILE or postgresql://... "
            "Default: MODEL.feedback.db next to the model.",
        ),
    ] = None
    keep_versions: Annotated[
        int | None,
        Option(metavar="N", min=0, help="Older versions that are kept when a model learns, to go back to. Default: 5."),
    ] = None


class AccessOptions(NamedTuple):
    """The options of who may ask, and for what."""

    api_key_file: Annotated[
        Path | None, Option(metavar="FILE", help="File of keys, one on a line: 'read KEY' or 'write KEY'.")
    ] = None
    no_auth: Annotated[bool, Option(help="Let other machines use the server without a key.")] = False
    read_only: Annotated[bool, Option(help="Take no feedback and no other changes.")] = False
    cors_origin: Annotated[
        list[str] | None,
        Option(metavar="ORIGIN", help="Website that may use the API, such as https://a.org. Repeatable."),
    ] = None
    allowed_host: Annotated[
        list[str] | None, Option(metavar="NAME", help="Further name of this machine that requests may use. Repeatable.")
    ] = None


def _limit(help: str, min: float = 1) -> Any:  # noqa: ANN401 - of typer
    return Option(min=min, rich_help_panel="Limits of a request", help=help)


class LimitOptions(NamedTuple):
    """The limits of a request."""

    max_body_bytes: Annotated[int, _limit("Bytes of a request.")] = DEFAULTS.max_body_bytes
    max_documents: Annotated[int, _limit("Documents of a batch.")] = DEFAULTS.max_documents
    max_text_characters: Annotated[int, _limit("Characters of a text.")] = DEFAULTS.max_text_characters
    max_k: Annotated[int, _limit("Labels per document.")] = DEFAULTS.max_k
    max_concurrent_requests: Annotated[
        int, _limit("Requests that one worker answers at a time; others are answered with 429.")
    ] = DEFAULTS.max_concurrent_requests
    timeout_seconds: Annotated[float, _limit("Seconds until a request is given up.", min=0.1)] = (
        DEFAULTS.timeout_seconds
    )


def serve(
    models: Annotated[
        list[str], Argument(metavar="MODEL...", help="Folders saved by `labelspace train`, also as NAME=FOLDER.")
    ],
    host: Annotated[str, Option(help="Address to listen on; one that other machines reach needs keys.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    workers: Annotated[int, Option(min=1, help="Processes that answer; they share a model.")] = 1,
    *,
    cluster: Annotated[ServeClusterOptions, Option(parser=OptionGroup.of(ServeClusterOptions))],
    stores: Annotated[StoreOptions, Option(parser=OptionGroup.of(StoreOptions))],
    access: Annotated[AccessOptions, Option(parser=OptionGroup.of(AccessOptions))],
    limits: Annotated[LimitOptions, Option(parser=OptionGroup.of(LimitOptions))],
    access_log: Annotated[bool, Option(help="Log route, status and time of each request; never a text.")] = False,
) -> None:
    """Serve models over HTTP, with a page to work in: suggestions, reasons, label search, feedback, review, learning.

    `http://127.0.0.1:8000/docs` lists the API. Ctrl-C ends the server.
    """
    from labelspace.errors import require

    require("fastapi", "serve", "labelspace serve")
    require("uvicorn", "serve", "labelspace serve")
    from labelspace.server import supervisor
    from labelspace.server.settings import Settings, parse_models

    settings = Settings(
        models=parse_models(models),
        host=host,
        port=port,
        workers=workers,
        database=stores.database,
        no_auth=access.no_auth,
        read_only=access.read_only,
        cors_origins=access.cors_origin or [],
        allowed_hosts=access.allowed_host or [],
        access_log=access_log,
        limits=RequestLimits(**limits._asdict()),
        data=_text(stores.data),
        inbox=_text(stores.inbox),
        keep_versions=stores.keep_versions,
        api_key_file=_text(access.api_key_file),
    )
    cluster.check()
    check_files(settings)
    supervisor.check(settings)
    with on_cluster(settings, cluster) as served, supervisor.reserve(served) as reserved:
        say_where(served, reserved.getsockname()[1])
        supervisor.serve(served, reserved)


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


@contextmanager
def on_cluster(settings: "Settings", options: ServeClusterOptions) -> "Iterator[Settings]":
    """Yield the settings of a server, after its models are loaded on the cluster if there is one."""
    if options.address is None:
        yield settings
        return
    from labelspace.cluster import connect
    from labelspace.cluster.serving import serving

    with connect(options.address) as cluster:
        note(f"cluster: {cluster.described}")
        n_actors = options.shards or options.replicas or 1
        with serving(cluster, settings.models, n_actors, sharded=options.shards is not None) as served:
            n, kind = served.n_actors, "shard" if served.sharded else "replica"
            note(f"each model is on the cluster in {n} {kind}{'s' * (n > 1)}")
            yield replace(settings, cluster=asdict(served))


def check_files(settings: "Settings") -> None:
    """Load every model and open the data once, to report what is wrong with them before the server starts."""
    from labelspace.data.source import open_source
    from labelspace.errors import DataError
    from labelspace.server.served_model import check_reads_text
    from labelspace.tagger import Tagger

    for folder in settings.models.values():
        check_reads_text(Tagger.load(folder), folder)
    if settings.data is not None:
        open_source(settings.data)
    if settings.inbox is not None and not Path(settings.inbox).is_file():
        raise DataError(f"--inbox must be a file of documents, but {settings.inbox} is none; check the path")


def say_where(settings: "Settings", port: int) -> None:
    """Print what is served, and where."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    listed = ", ".join(settings.models)
    workers = f"{settings.workers} worker{'s' if settings.workers > 1 else ''}"
    print_line(f"serving {listed} at http://{host}:{port} with {workers}; the API is at http://{host}:{port}/docs")
    if not settings.read_only:
        note(f"feedback goes to {settings.shown_database}")
    if settings.no_auth:
        note("everyone who can reach this machine may use the server and change its feedback: --no-auth")
