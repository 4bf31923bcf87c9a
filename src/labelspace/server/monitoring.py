"""Count requests for Prometheus, summed over the workers; by routes and models only, never by texts or labels.

The figures of drift are of the last documents that one worker tagged, the one that has written last: each worker has a
random part of the documents.
"""

import os
import tempfile
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from labelspace.experiment.drift import FEW, LEARN, LOOK, NOTHING, Drift

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # where prometheus_client shares the numbers of processes
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)
DOCUMENTS = (1, 2, 4, 8, 16, 32, 64)
VERDICTS = (FEW, NOTHING, LOOK, LEARN)
DRIFT = {
    "documents": "The last documents tagged by a worker, with k >= 5 and no options: what the figures are of.",
    "unknown_words_ratio": "Share of the words of the documents that the model does not know.",
    "unknown_words_expected_ratio": "Share of unknown words to expect in documents like those of the training.",
    "top_probability": "Mean probability of the best label of the documents.",
    "labels_changed": "Labels that are suggested more often than they were given in training, beyond chance.",
    "reviewed_documents": "Documents among the last with feedback on their labels: what the calibration error is of.",
    "calibration_error": "ECE@5: mean gap between a probability and how often such suggestions were accepted.",
    "verdict": "0: too few documents. 1: nothing to do. 2: look at labels that changed. 3: learn from such documents.",
}


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
        self._drift = self._drift_gauges()
        self.reloads = counter("labelspace_model_loads", "Models loaded, and loads that failed.", ["model", "result"])

    def _drift_gauges(self) -> dict[str, Gauge]:
        of_one = partial(Gauge, labelnames=["model"], registry=self._registry, multiprocess_mode="livemostrecent")
        return {name: of_one(f"labelspace_drift_{name}", meaning) for name, meaning in DRIFT.items()}

    def set_drift(self, model: str, drift: Drift) -> None:
        """Set the gauges of a model to its figures of drift; an unknown figure has no gauge."""
        counts = drift.counts
        unknown, expected = counts.unknown_words, drift.reference.unknown_words
        values: dict[str, float | None] = {
            "documents": counts.n,
            "unknown_words_ratio": None if unknown is None else unknown.value,
            "unknown_words_expected_ratio": None if expected is None else expected.value,
            "top_probability": counts.top_probability.value if drift.calibrated and counts.n else None,
            "labels_changed": len(drift.changed_labels.labels) if drift.calibrated else None,
            "reviewed_documents": counts.n_labeled,
            "calibration_error": None if counts.calibration is None else counts.calibration.value,
            "verdict": VERDICTS.index(drift.advice),
        }
        for name, value in values.items():
            if value is not None:
                self._drift[name].labels(model).set(value)

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
