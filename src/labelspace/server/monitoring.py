"""Counters for Prometheus, added up over the workers. Names of routes and models only: no text, no label."""

import os
import tempfile

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # where prometheus_client shares the numbers of processes
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)
DOCUMENTS = (1, 2, 4, 8, 16, 32, 64)


class Monitoring:
    """The numbers of this worker, and a text with those of all."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self._registry = registry
        self.requests = Counter(
            "labelspace_requests", "Requests, by route, method and status.", ["route", "method", "status"],
            registry=registry,
        )  # fmt: skip
        self.seconds = Histogram(
            "labelspace_request_duration_seconds", "Seconds from the head of a request to the end of its answer.",
            ["route"], buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self.in_progress = Gauge(
            "labelspace_requests_in_progress", "Requests that are being answered.", registry=registry,
            multiprocess_mode="livesum",
        )  # fmt: skip
        self.batch = Histogram(
            "labelspace_batch_documents", "Documents that were tagged together.", buckets=DOCUMENTS, registry=registry
        )
        self.documents = Counter("labelspace_documents", "Documents tagged, by model.", ["model"], registry=registry)
        self.feedback = Counter("labelspace_feedback", "Entries of feedback stored.", ["model"], registry=registry)
        self.reloads = Counter(
            "labelspace_model_loads", "Models loaded, and loads that failed.", ["model", "result"], registry=registry
        )

    def text(self) -> bytes:
        """All numbers, in Prometheus' text format; of all workers where there are several."""
        if FOLDER not in os.environ:
            return generate_latest(self._registry)
        shared = CollectorRegistry()
        MultiProcessCollector(shared)  # type: ignore[no-untyped-call]
        return generate_latest(shared)

    def close(self) -> None:
        """This worker ends: what it has in progress is over."""
        if FOLDER in os.environ:
            mark_process_dead(os.getpid())  # type: ignore[no-untyped-call]


def share_between_processes() -> tempfile.TemporaryDirectory[str]:
    """Let processes that are started from now on add up their numbers; in a folder that is removed at the end."""
    folder = tempfile.TemporaryDirectory(prefix="labelspace-metrics-")
    os.environ[FOLDER] = folder.name
    return folder
