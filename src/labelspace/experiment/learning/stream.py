"""Let a saved model go on learning from a stream: each batch is tagged before it is learned, and measured.

1. A batch is what came: a number of documents, or those of some seconds.
2. The model tags its documents, and P@1, P@3 and P@5 are counted: prequential evaluation, "test, then train".
3. The model learns from the batch.
4. After some documents, and at the end, the model is saved as its next version, and the one before it is kept.

Documents of the held-out sample are left out. A stream cannot be given again, so that no version is refused: one that
is worse is reported, and ``labelspace rollback`` goes back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labelspace import metrics, store
from labelspace.data.learning_files import LearningStream, Row, StreamSettings
from labelspace.data.read_options import ReadOptions
from labelspace.errors import DataError
from labelspace.experiment.learning.batches import Batches
from labelspace.experiment.learning.comparison import Change, HeldOut, changed, document_values, true_labels
from labelspace.experiment.learning.held_out import LearningDocuments, given_held_out, without_held_out
from labelspace.experiment.learning.learn import Learned, check_target, opened, save_version
from labelspace.experiment.timing import Seconds, timed
from labelspace.tagger import Tagger
from labelspace.tagger import learning as tagger_learning
from labelspace.tagger.lineage import Origin, learned_version
from labelspace.tagger.versions import VersionedModel
from labelspace.types import Dataset

KS = (1, 3, 5)
LAST = 1000  # documents of the second figures


@dataclass(frozen=True)
class StreamOptions:
    """How a stream is followed."""

    batch: int = 100  # documents
    every: float = 60.0  # seconds after which a smaller batch is learned
    save_every: int = 1000  # documents
    waits: bool = False  # for a file to grow, until it is stopped
    skips_errors: bool = False
    n_kept: int = store.KEPT


class BatchFigures(NamedTuple):
    """What was read and learned so far, and the figures of the tags that were made before the learning."""

    n: int  # documents so far
    n_batch: int
    n_skipped: int  # lines that could not be read, so far
    n_labels: int
    so_far: dict[str, float]  # P@k in percent; none without a document with labels
    last: dict[str, float]  # over the last documents
    seconds: float
    cpu_seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        values = self._asdict()
        values["seconds"] = round(self.seconds, 3)
        values["cpu_seconds"] = round(self.cpu_seconds, 3)
        return values


@dataclass
class Report:
    """Functions that are called as a stream goes on."""

    batch: Callable[[BatchFigures], None]
    saved: Callable[[Learned], None]
    skipped: Callable[[DataError], None]


class Prequential:
    """P@k of documents that were tagged before they were learned; those without labels do not count."""

    def __init__(self) -> None:
        self._sums = np.zeros(len(KS))
        self._n = 0
        self._last: deque[np.ndarray] = deque(maxlen=LAST)

    def add(self, tagger: Tagger, documents: Dataset) -> None:
        """Tag documents, and count how many tags are right."""
        Y = true_labels(tagger, documents)
        top = tagger.predict_topk(tagger.inputs_of(documents), max(KS))
        values = metrics.per_document(Y, top, ks=KS, propensity_from="test")
        table = np.stack([values[f"P@{k}"].numerators for k in KS], axis=1)  # (n, len(KS))
        self._sums += table.sum(axis=0)
        self._n += len(table)
        self._last.extend(table)

    def so_far(self) -> dict[str, float]:
        """Return the figures over all documents so far, in percent."""
        return _percent(self._sums / self._n) if self._n else {}

    def last(self) -> dict[str, float]:
        """Return the figures over the last documents, in percent."""
        return _percent(np.mean(self._last, axis=0)) if self._last else {}


def _percent(values: np.ndarray) -> dict[str, float]:
    return {f"P@{k}": round(100 * float(value), 4) for k, value in zip(KS, values, strict=True)}


@dataclass
class _Unsaved:
    """What was learned since the last version."""

    n_labels: int  # before
    n: int = 0
    wall: float = 0.0
    cpu: float = 0.0
    left_out: tuple[str, ...] = ()


class Follower:
    """Learns from a stream; ``stop`` ends it after the batch, and may be called by a signal handler."""

    def __init__(
        self,
        folder: Path,
        stream: str | Path,
        *,
        out: Path | None = None,
        held_out: Path | None = None,
        reading: ReadOptions | None = None,
        options: StreamOptions | None = None,
    ) -> None:
        self.folder, self.path, self.out, self.held_out_file = folder, stream, out, held_out
        self.reading = reading or ReadOptions()
        self.options = options or StreamOptions()
        self._stream: LearningStream | None = None
        self._batches: Batches[Row | DataError] | None = None
        self._is_stopped = False

    def stop(self) -> None:
        """End after the batch that is being learned, and save it."""
        self._is_stopped = True
        if self._stream is not None:
            self._stream.stop()
        if self._batches is not None:
            self._batches.stop()

    def run(self, report: Report) -> BatchFigures:
        """Learn until the stream ends or is stopped, and save; return the figures of all documents.

        Raises the error of the first line that cannot be read, unless these are skipped: what came before it is saved.
        """
        check_target(self.folder, self.out)
        with opened(self.folder, self.out) as (tagger, versions):
            run = _Run(self, tagger, versions, report)
            self._stream = run.stream
            self._batches = Batches(run.stream.rows(), self.options.batch, self.options.every)
            if self._is_stopped:  # meanwhile
                self.stop()
            try:
                for rows in self._batches:
                    run.learn(rows)
            except Exception:  # what was learned before it must not be lost
                run.save()
                raise
            run.save()
            return run.figures(0)


class _Run:
    """One run of a follower: the model, and what it learned so far."""

    def __init__(self, follower: Follower, tagger: Tagger, versions: VersionedModel, report: Report) -> None:
        self.follower, self.tagger, self.versions, self.report = follower, tagger, versions, report
        reading = follower.reading.following(tagger.fields_)
        columns = tagger.columns_ if reading.columns is None else reading.columns
        n_features = tagger.model.n_features_ if tagger.ready_made else None
        settings = StreamSettings(columns, reading, n_features)
        self.stream = LearningStream(follower.path, settings, waits=follower.options.waits)
        self.held_out: HeldOut | None = given_held_out(tagger, follower.held_out_file, None, follower.reading)
        self.values = None if self.held_out is None else document_values(tagger, self.held_out.documents)
        self.prequential = Prequential()
        self.unsaved = _Unsaved(len(tagger.labels_))
        self.n = self.n_skipped = self.n_held_out = 0
        self.wall = self.cpu = 0.0

    def learn(self, rows: list[Row | DataError]) -> None:
        """Tag and learn a batch, and save the model if it is time; raise the first error, unless they are skipped."""
        errors: dict[int, DataError] = {}
        documents, rejected = self.stream.dataset(rows, self.tagger.labels_, errors.__setitem__)
        first = min(errors, default=len(rows))
        if errors and not self.follower.options.skips_errors:
            documents, rejected = self.stream.dataset(rows[:first], self.tagger.labels_, errors.__setitem__)
        else:
            self.n_skipped += len(errors)
            for number in sorted(errors):
                self.report.skipped(errors[number])
        if documents is not None:
            self._learn(LearningDocuments(documents, rejected))
        if errors and not self.follower.options.skips_errors:
            raise errors[first]

    def _learn(self, given: LearningDocuments) -> None:
        given = given.judged()
        chosen = without_held_out(self.tagger, given, self.held_out)
        n = len(chosen.documents)
        self.n_held_out += len(given.documents) - n
        if n == 0:
            return
        with timed() as taken:
            self.prequential.add(self.tagger, chosen.documents)
            left_out = tagger_learning.learn(self.tagger, chosen.documents, chosen.rejected)
        self.n += n
        self.wall += taken.wall
        self.cpu += taken.cpu
        self.unsaved.n += n
        self.unsaved.wall += taken.wall
        self.unsaved.cpu += taken.cpu
        self.unsaved.left_out = tuple(left_out)
        self.report.batch(self.figures(n))
        if self.unsaved.n >= self.follower.options.save_every:
            self.save()

    def figures(self, n_batch: int) -> BatchFigures:
        """Return the figures so far."""
        so_far, last = self.prequential.so_far(), self.prequential.last()
        n_labels = len(self.tagger.labels_)
        return BatchFigures(self.n, n_batch, self.n_skipped, n_labels, so_far, last, self.wall, self.cpu)

    def save(self) -> None:
        """Save what was learned since the last version as the next one, if anything was."""
        unsaved = self.unsaved
        if not unsaved.n:
            return
        change = self._change()
        notes = [] if change is None or not change.is_fall else [self._fall(change)]
        version = learned_version(
            self.tagger,
            self.versions.next_number(),
            unsaved.n,
            unsaved.n_labels,
            unsaved.left_out,
            Origin(Path(self.follower.path).name),
            None if change is None else change.figures,
        )
        save_version(self.tagger, self.versions, version, self.follower.out, self.follower.options.n_kept)
        self.unsaved = _Unsaved(len(self.tagger.labels_))
        folder = self.follower.out or self.follower.folder
        taken = Seconds(unsaved.wall, unsaved.cpu)
        self.report.saved(Learned(version, folder, taken, change, self.n_held_out, notes))

    def _change(self) -> Change | None:
        """Return the change on the held-out documents since the last version."""
        if self.held_out is None or self.values is None:
            return None
        before = self.values
        self.values = document_values(self.tagger, self.held_out.documents)
        return changed(before, self.values, self.held_out.source)

    def _fall(self, change: Change) -> str:
        if not change.is_loss:
            return f"{change}: this may be chance"
        back = f"labelspace rollback {self.follower.out or self.follower.folder}"
        return f"{change}: more than chance; the version is saved all the same, and `{back}` goes back"
