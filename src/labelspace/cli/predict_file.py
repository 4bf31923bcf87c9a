"""Predictions for the documents of a file: printed as JSON lines, or written to a file."""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import nullcontext
from math import isinf
from typing import TYPE_CHECKING, Any, NamedTuple

from labelspace.cli.console import print_json, print_line
from labelspace.cli.exit_codes import print_error
from labelspace.cli.notes import note

if TYPE_CHECKING:  # heavy imports happen inside the functions, so that --help stays fast
    from collections.abc import Iterator
    from pathlib import Path

    from labelspace.answers import Answer, TagOptions
    from labelspace.data.answer_files import LabelDisplay, Prediction
    from labelspace.data.read_options import ReadOptions
    from labelspace.tagger import Tagger

LINE_INTERVAL = 10.0  # seconds between two lines of progress


def check_out(out: Path, file: str | None) -> None:
    """Refuse what cannot be written, before any work."""
    from labelspace.data.answer_files import answer_format
    from labelspace.errors import DataError

    if file is None:
        raise DataError(f"--out is for the documents of a file, but no --input is given with {out}; add --input FILE")
    answer_format(out)
    if out.exists() and os.path.exists(file) and os.path.samefile(out, file):
        raise DataError(f"--out must be another file than --input, but both are {out}; give another name")
    if out.is_dir():
        raise DataError(f"--out must be a file, but {out} is a folder; give a name such as {out}/answers.csv")


class FileRequest(NamedTuple):
    """What is asked of a file of documents."""

    tagger: Tagger
    file: str
    k: int
    options: TagOptions
    display: LabelDisplay
    reading: ReadOptions


def predict_stream(request: FileRequest, out: Path | None = None, quiet: bool = False) -> None:
    """Print one JSON line per document, in order, or write ``out``; a batch is in memory at a time.

    Say how many documents had no content.
    """
    from labelspace.data.answer_files import writing_answers
    from labelspace.report.terminal import json_text
    from labelspace.unread import PLURAL

    tagger, options = request.tagger, request.options
    problems, done = Counter[str](), Tally(quiet or out is None)
    n_labels = len(tagger.labels_)
    answers = nullcontext(_print) if out is None else writing_answers(out, request.display, n_labels, json_text)
    with answers as add:
        for prediction in predictions(request, problems):
            add(prediction)
            done.count(len(prediction.labels))
    if out is not None and quiet:
        print_json({"out": str(out), "documents": done.n, "labels": done.n_labels})
    elif out is not None:
        print_line(f"wrote {out}: {done.n:,} documents, {done.n_labels:,} labels")
    if not quiet:
        note_precision(tagger, options)
    for problem, count in problems.items() if not quiet else ():
        note(f"{count:,} of {done.n:,} documents {PLURAL[problem]}; their labels are those of any such document")


def predictions(request: FileRequest, problems: Counter[str]) -> Iterator[Prediction]:
    """The predictions for the documents of a file; counts documents that say nothing to the model by ``problems``."""
    from labelspace.data.answer_files import Prediction
    from labelspace.data.source import iter_records
    from labelspace.unread import Unread

    tagger, file, k, options, display, reading = request
    unread, index = Unread(tagger, k, options), tagger.labels_.index
    records = iter_records(file, tagger.ready_made, tagger.columns_, reading.following(tagger.fields_))
    for record, answer in tagger.answer_stream(records, k, file, **options):
        problem = unread((record.features if tagger.ready_made else record.text) or "", answer.tags)
        problems.update([problem] if problem is not None else [])
        row = {"id": record.id, **as_plain(answer, problem, options, display)}
        labels, scores = [index[name] for name, _ in answer.tags], [score for _, score in answer.tags]
        yield Prediction(record, labels, scores, row)


def _print(prediction: Prediction) -> None:
    print_json(prediction.as_json)


class Tally:
    """Documents and labels so far, said on stderr every few seconds unless quiet."""

    def __init__(self, quiet: bool) -> None:
        self.n = self.n_labels = 0
        self._quiet = quiet
        self._start = self._last = time.monotonic()

    def count(self, n_labels: int) -> None:
        """Count a document with so many labels."""
        self.n += 1
        self.n_labels += n_labels
        now = time.monotonic()
        if not self._quiet and now - self._last >= LINE_INTERVAL:
            self._last = now
            print_error(f"tagging: {self.n:,} documents ({self.n / (now - self._start):,.0f} per second)")


def as_plain(answer: Answer, note: str | None, options: TagOptions, display: LabelDisplay) -> dict[str, Any]:
    """The tags of one document as plain values, what was left out, and a note where the model reads nothing in it."""
    plain: dict[str, Any] = {"labels": [display.as_json(name, score) for name, score in answer.tags]}
    if options.get("min_probability") is not None or options.get("precision") is not None:
        plain["left_out"] = [
            {**display.as_json(label.label, label.score), "reason": label.reason} for label in answer.left_out
        ]
    return plain if note is None else {**plain, "note": note}


def note_precision(tagger: Tagger, options: TagOptions) -> None:
    """Say what --precision keeps, or that it cannot be reached."""
    precision, consistent = options.get("precision"), options.get("consistent", False)
    if precision is None:
        return
    found = tagger.precision_threshold(precision, consistent)
    if found.confidence is None:
        highest = tagger.precision_thresholds(consistent).highest
        shown = "none was shown" if highest is None else f"the highest shown is {highest:g}"
        reached = "reaches" if isinf(found.threshold) else "was shown to reach"
        note(f"no threshold {reached} a precision of {precision:g} on held-out documents; {shown}")
    if not isinf(found.threshold):
        kept = f"kept what has a probability of at least {found.threshold:.3g}"
        share, coverage = f"{100 * precision:g} % of such labels", f"coverage {100 * found.coverage:.0f} %"
        by_estimate = ", by estimate" if found.confidence is None else ""
        note(f"{kept}: {share} were right on held-out documents{by_estimate} ({coverage})")
