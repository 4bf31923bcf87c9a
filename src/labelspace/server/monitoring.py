"""Count requests for Prometheus, summed over the workers; by routes and models only, never by texts or labels."""

import os
import tempfile
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # where prometheus_client shares the numbers of processes
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)
DOCUMENTS = (1, 2, 4, 8, 16, 32, 64)


class Monitoring:
    """The counters of this worker."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        counter = partial(Counter, registry=registry)
        histogram = partial(Histogram, registry=registry)
        by_request = ["route", "method", "status"]
        self.requests = counter("labelspace_requests", "Requests, by route, method and status.", by_request)
        duration = "Seconds from the head of a request to the end of its answer."
        self.seconds = histogram("labelspace_request_duration_seconds", duration, ["route"], buckets=SECONDS)
        now = "Requests that are being answered."
        self.in_progress = Gauge("labelspace_requests_in_progress", now, registry=registry, multiprocess_mode="livesum")
        self.batch = histogram("labelspace_batch_documents", "Documents that were tagged together.", buckets=DOCUMENTS)
        self.documents = counter("labelspace_documents", "Documents tagged, by model.", ["model"])
        self.feedback = counter("labelspace_feedback", "Entries of feedback stored.", ["model"])
        self.reloads = counter("labelspace_model_loads", "Models loaded, and loads that failed.", ["model", "result"])

    def text(self) -> bytes:
        """Return the counters in Prometheus' text format, summed over all workers of the server."""
        if FOLDER not in os.environ:
            return generate_latest(self._registry)
        shared = CollectorRegistry()
        MultiProcessCollector(shared)  # type: ignore[no-untyped-call]
        return generate_latest(shared)

    def close(self) -> None:
        """Remove this worker from the requests in progress, as it ends."""
        if FOLDER in os.environ:
            mark_process_dead(os.getpid())  # type: ignore[no-untyped-call]


def share_between_processes() -> tempfile.TemporaryDirectory[str]:
    """Let processes that are started from now on sum their counters, in a folder that is removed at the end."""
    folder = tempfile.TemporaryDirectory(prefix="labelspace-metrics-")
    os.environ[FOLDER] = folder.name
    return folder
