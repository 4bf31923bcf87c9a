"""Hold what the routes of one worker share: models, database, counters, and the dependencies of routes."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar, cast

from fastapi import Depends, Request

from labelspace.server.database import Database
from labelspace.server.drift_window import LEAST_K, DriftWindow
from labelspace.server.gate import ROLE
from labelspace.server.inference import Inference, RemoteInference
from labelspace.server.monitoring import Monitoring
from labelspace.server.problems import ProblemError
from labelspace.server.served_model import LoadedModel, Options, ServedModel, Tagged
from labelspace.server.settings import WRITE, Settings
from labelspace.server.supervisor import Readiness

if TYPE_CHECKING:
    from labelspace.cluster.serving import ClusterBackend

P = ParamSpec("P")
T = TypeVar("T")
DRIFT_EVERY = 100  # documents, after which the figures of drift are made again
THREADS = 4  # for the database, the search of labels and other work next to the inference


class ServerState:
    """The models of a worker, the queue of their requests, the database and the counters."""

    def __init__(self, settings: Settings, database: Database, monitoring: Monitoring) -> None:
        self.settings, self.database, self.monitoring = settings, database, monitoring
        self.models = {name: ServedModel(name, folder) for name, folder in settings.models.items()}
        self.inference = Inference(monitoring.batch.observe)
        self._cluster = None if settings.cluster is None else self._use_cluster(settings.cluster)
        self.readiness = Readiness(settings.workers)
        self._drift: dict[str, tuple[str, DriftWindow]] = {}  # by model: its version, and the last documents
        self.jobs: set[asyncio.Task[None]] = set()  # that this worker started
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="pool")

    def _use_cluster(self, fields: Mapping[str, Any]) -> "ClusterBackend":
        """Let models on other machines answer."""
        from labelspace.cluster.serving import ClusterBackend, ServingCluster

        # An answer of the cluster may take as long as the request.
        fields = {**fields, "answer_seconds": self.settings.limits.timeout_seconds}
        backend = ClusterBackend(ServingCluster(**fields))
        for name, model in self.models.items():
            model.read_tagger = partial(backend.load, name)
        self.inference = RemoteInference(backend.served.n_concurrent, self.monitoring.batch.observe)
        return backend

    @property
    def is_ready(self) -> bool:
        """Return whether every model is loaded in every worker."""
        return self.has_models and self.readiness.of_all

    @property
    def has_models(self) -> bool:
        """Return whether every model is loaded in this worker."""
        return all(model.current is not None for model in self.models.values())

    def served(self, name: str) -> ServedModel:
        """Return the model with a name."""
        if name not in self.models:
            known = ", ".join(self.models)
            raise ProblemError(404, f"a model must be one of {known}, but is {name[:80]!r}; see /v1/models")
        return self.models[name]

    def loaded(self, name: str) -> LoadedModel:
        """Return the version of a model that is served now."""
        model = self.served(name)
        if model.current is None:
            why = f" ({model.error})" if model.error else ""
            detail = f"the model {name} must be loaded, but is not yet{why}; try again"
            raise ProblemError(503, detail, {"Retry-After": "1"})
        return model.current

    @property
    def default_model(self) -> str:
        """The name of the first model, for clients that name none."""
        return next(iter(self.models))

    def check_text(self, text: str) -> None:
        """Raise ProblemError for a text that is too long."""
        limit = self.settings.limits.max_text_characters
        if len(text) > limit:
            detail = f"a text must have at most {limit} characters, but has {len(text)}; send a part of it"
            raise ProblemError(413, detail)

    def check_documents(self, n: int) -> None:
        """Raise ProblemError for a batch that is too large."""
        limit = self.settings.limits.max_documents
        if n > limit:
            raise ProblemError(413, f"a batch must have at most {limit} documents, but has {n}; send several batches")

    def check_k(self, k: int) -> None:
        """Raise ProblemError for a k that is too large."""
        if k > self.settings.limits.max_k:
            raise ProblemError(400, f"k must be at most {self.settings.limits.max_k}, but is {k}; ask for fewer labels")

    async def tag(self, name: str, texts: list[str], k: int, options: Options) -> tuple[LoadedModel, list[Tagged]]:
        """Return the k best labels of texts; several requests are answered together."""
        self.check_documents(len(texts))
        self.check_k(k)
        for text in texts:
            self.check_text(text)
        model = self.loaded(name)
        options = options.of_known_labels(model.labels)
        group = (name, model.version, k, options)
        found = await self.inference.map(lambda batch: model.tag(batch, k, options), texts, group)
        self.monitoring.documents.labels(name).inc(len(texts))
        if not options.given and k >= LEAST_K:
            self._watch(name, model, texts, found)
        return model, found

    def drift_window(self, name: str, model: LoadedModel) -> DriftWindow:
        """Return the last documents of a version of a model; those of the version before are forgotten."""
        version, window = self._drift.get(name, ("", None))
        if window is None or version != model.version:
            window = DriftWindow(model.tagger)
            self._drift[name] = (model.version, window)
        return window

    def _watch(self, name: str, model: LoadedModel, texts: list[str], found: list[Tagged]) -> None:
        """Count tagged documents for the figures of drift, which are made now and then."""
        window = self.drift_window(name, model)
        before = window.n_added // DRIFT_EVERY
        window.add(texts, [(each.labels, each.probabilities or []) for each in found])
        if window.n_added // DRIFT_EVERY != before:
            asyncio.get_running_loop().call_soon(self.publish_drift, name)

    def publish_drift(self, name: str) -> None:
        """Set the gauges of a model to the figures of drift."""
        if name in self._drift:
            self.monitoring.set_drift(name, self._drift[name][1].drift())

    async def in_thread(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function on a thread of its own pool, so that the event loop goes on."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: function(*args, **kwargs))

    def close(self) -> None:
        """End the threads, and disconnect from cluster and database."""
        self.inference.close()
        self._threads.shutdown()
        if self._cluster is not None:
            self._cluster.close()
        self.database.close()


def server_state(request: Request) -> ServerState:
    """Return the state of the worker that answers a request."""
    return cast(ServerState, request.app.state.server)


async def state_of(request: Request) -> ServerState:
    """Return the state as a dependency; FastAPI would call a function that is not async on another thread."""
    return server_state(request)


async def may_write(request: Request) -> None:
    """Raise ProblemError if the request may only read."""
    if server_state(request).settings.read_only:
        raise ProblemError(403, "this server takes no changes, since it was started with --read-only; start it without")
    check_role(request.scope.get(ROLE))


def check_role(role: str | None) -> None:
    """Raise ProblemError if a role may only read."""
    if role != WRITE:
        raise ProblemError(403, "changes need a write key, but this key may only read; use a key of a line 'write KEY'")


State = Annotated[ServerState, Depends(state_of)]
Writing: list[Any] = [Depends(may_write)]
