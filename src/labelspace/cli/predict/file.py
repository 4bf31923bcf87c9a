"""Predictions for the documents of a file: printed as JSON lines, or written to a file."""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import nullcontext
from math import isinf
from typing import TYPE_CHECKING

from labelspace.cli.console import print_json, print_line
from labelspace.cli.exit_codes import print_error
from labelspace.cli.notes import note
from labelspace.report.predictions import PredictRequest, predictions

if TYPE_CHECKING:  # heavy imports happen inside the functions, so that --help stays fast
    from pathlib import Path

    from labelspace.data.answer_files import Prediction
    from labelspace.data.read_options import ReadOptions
    from labelspace.labels.tag_options import TagOptions
    from labelspace.tagger import Tagger

LINE_INTERVAL = 10.0  # seconds between two lines of progress


def check_out(out: Path, file: str | None) -> None:
    """Raise DataError if the predictions cannot be written, before any work."""
    from labelspace.data.answer_files import answer_format
    from labelspace.errors import DataError

    if file is None:
        raise DataError(f"--out is for the documents of a file, but no --input is given with {out}; add --input FILE")
    answer_format(out)
    if out.exists() and os.path.exists(file) and os.path.samefile(out, file):
        raise DataError(f"--out must be another file than --input, but both are {out}; give another name")
    if out.is_dir():
        raise DataError(f"--out must be a file, but {out} is a folder; give a name such as {out}/answers.csv")


def predict_stream(
    file: str, request: PredictRequest, reading: ReadOptions, out: Path | None = None, quiet: bool = False
) -> None:
    """Print one JSON line per document of a file, in order, or write ``out``; a batch is in memory at a time.

    Say how many documents the model could not read.
    """
    from labelspace.data.answer_files import writing_answers
    from labelspace.data.source import iter_records
    from labelspace.report.terminal import json_text

    tagger, options = request.tagger, request.options
    problems, done = Counter[str](), Tally(quiet or out is None)
    n_labels = len(tagger.labels_)
    answers = nullcontext(_print) if out is None else writing_answers(out, request.display, n_labels, json_text)
    records = iter_records(file, tagger.ready_made, tagger.columns_, reading.following(tagger.fields_))
    with answers as add:
        for prediction in predictions(records, file, request, problems):
            add(prediction)
            done.count(len(prediction.labels))
    if out is not None and quiet:
        print_json({"out": str(out), "documents": done.n, "labels": done.n_labels})
    elif out is not None:
        print_line(f"wrote {out}: {done.n:,} documents, {done.n_labels:,} labels")
    if not quiet:
        note_precision(tagger, options)
        note_problems(problems, done.n)


def note_problems(problems: Counter[str], n: int) -> None:
    """Say in how many of n documents the model reads nothing."""
    from labelspace.tagger.answers import PLURAL

    for problem, count in problems.items():
        note(f"{count:,} of {n:,} documents {PLURAL[problem]}; their labels are those of every such document")


def _print(prediction: Prediction) -> None:
    print_json(prediction.as_json)


class Tally:
    """Count documents and labels, and print the counts on stderr every few seconds unless quiet."""

    def __init__(self, quiet: bool) -> None:
        self.n = self.n_labels = 0
        self._quiet = quiet
        self._start = self._last = time.monotonic()

    def count(self, n_labels: int) -> None:
        """Count a document with this number of labels."""
        self.n += 1
        self.n_labels += n_labels
        now = time.monotonic()
        if not self._quiet and now - self._last >= LINE_INTERVAL:
            self._last = now
            print_error(f"tagging: {self.n:,} documents ({self.n / (now - self._start):,.0f} per second)")


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
