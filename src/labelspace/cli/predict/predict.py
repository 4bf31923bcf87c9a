"""The command predict."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from labelspace.cli.arguments import (
    Answering,
    AnswerOptions,
    DocumentReading,
    Json,
    ModelPath,
    OptionGroup,
    given_text,
    with_label_files,
)
from labelspace.cli.console import console, print_json, print_line
from labelspace.cli.exit_codes import print_error
from labelspace.cli.notes import note, note_precision, note_problems, note_selection
from labelspace.cli.predict.cluster import ClusterRequest, PredictClusterOptions, predict_on_cluster
from labelspace.cli.rerank import Reranking, RerankOptions, note_reranking
from labelspace.report.predictions import PredictRequest, about_precision, as_plain, predictions

if TYPE_CHECKING:  # heavy imports happen inside the functions, so that --help stays fast
    from labelspace.data.read_options import ReadOptions
    from labelspace.data.records import Record
    from labelspace.labels.tag_options import TagOptions
    from labelspace.tagger.answers import DocumentAnswer


def predict(
    model: ModelPath,
    texts: Annotated[list[str] | None, Argument(metavar="[TEXT]...", help="Texts to tag; - for stdin.")] = None,
    file: Annotated[
        str | None,
        Option(
            "--input",
            metavar="FILE",
            help="A file to tag: JSON lines, CSV, Parquet or one text per line; - for stdin. With --cluster also a "
            "folder of files.",
        ),
    ] = None,
    out: Annotated[
        str | None,
        Option(
            metavar="FILE",
            help="Write the predictions of --input there; the format by its ending: .jsonl, .csv, .tsv, .parquet, "
            ".npz or .txt (scores), .annif.jsonl. All but .parquet and .npz also with .gz or .zst. With --cluster: a "
            "folder.",
        ),
    ] = None,
    *,
    answering: Answering,
    cluster: Annotated[PredictClusterOptions, Option(parser=OptionGroup.of(PredictClusterOptions))],
    reranking: Reranking,
    as_json: Json = False,
    reading: DocumentReading,
) -> None:
    """Tag texts, or the documents of a file of any size.

    For a file, prints one JSON object per document, with its id, or writes the file --out. With --cluster, any number
    of files is tagged on many machines; after an interrupt, the same command continues.
    """
    from labelspace.data.answer_files import LabelDisplay
    from labelspace.errors import DataError
    from labelspace.tagger import Tagger

    if bool(texts) == bool(file):
        raise DataError("predict needs either texts or --input FILE; write: labelspace predict MODEL 'a text'")
    on_cluster = ClusterRequest(cluster, model, file, out, answering.language, reading)
    on_cluster.check()
    reranking.check(answering.options.get("consistent"))
    check_here(answering, reranking, cluster)
    if out is not None and cluster.address is None:
        check_out(Path(out), file, answering.with_details)
    tagger = Tagger.load(model)
    reranker = reranking.reranker(tagger, answering.language)
    are_probabilities = tagger.gives_probabilities and reranker is None
    display = LabelDisplay(tagger.labels_, answering.language, are_probabilities, answering.with_details)
    k = min(answering.k, len(tagger.labels_))  # the rest would be padding
    options: TagOptions = with_label_files(answering.options, tagger.labels_)
    note_selection(tagger.selection(options), quiet=as_json)
    request = PredictRequest(tagger, k, options, display, reranker)
    if cluster.address is not None:
        predict_on_cluster(on_cluster, request, quiet=as_json)
    elif file is not None:
        predict_stream(file, request, reading, None if out is None else Path(out), quiet=as_json)
    else:
        predict_texts([given_text(text, tagger) for text in texts or []], request, as_json)
    note_reranking(reranker)


def check_here(answering: AnswerOptions, reranking: RerankOptions, cluster: PredictClusterOptions) -> None:
    """Raise ParameterError if what only this machine can do is asked of a cluster."""
    from labelspace.errors import ParameterError

    if cluster.address is not None and (answering.with_details or reranking.rerank):
        option = "--shortlist" if answering.with_details else "--rerank"
        raise ParameterError(f"{option} is for this machine, but --cluster is given; leave one of the two out")


def predict_texts(texts: list[str], request: PredictRequest, as_json: bool) -> None:
    """Print the labels of texts."""
    tagger, options, display = request.tagger, request.options, request.display
    answers = request.answers(texts)
    problems = [answer.problem(text) for text, answer in zip(texts, answers, strict=True)]
    if as_json:
        rows = zip(texts, answers, problems, strict=True)
        results = [{"text": text, **as_plain(answer, problem, options, display)} for text, answer, problem in rows]
        print_json({**about_precision(tagger, options), "results": results})
        return
    note_texts(texts, problems)
    note_precision(tagger, options)
    print_answers(texts, answers, request)


def note_texts(texts: list[str], problems: list[str | None]) -> None:
    """Say which texts are names of files, and in which the model reads nothing."""
    for number, (text, problem) in enumerate(zip(texts, problems, strict=True), 1):
        if os.path.isfile(text):
            note(f"text {number} is the name of a file, and was tagged as a text; to tag the file: --input {text}")
        elif problem is not None:
            note(f"text {number} {problem}; its labels are those of every such text")


def print_answers(texts: list[str], answers: list[DocumentAnswer], request: PredictRequest) -> None:
    """Print a table for each text."""
    from dataclasses import replace

    from labelspace.report.tables import shortlist_table, tags_table

    tagger, options, display = request.tagger, request.options, request.display
    space = replace(tagger.labels_, names=display.names())
    reason, (probability, precision) = {}, (options.get("min_probability"), options.get("precision"))
    if probability is not None:
        reason["no_tags"] = f"no label has a probability of at least {probability:g}"
    elif precision is not None:
        reason["no_tags"] = f"no label is sure enough for a precision of {precision:g}"
    for text, answer in zip(texts, answers, strict=True):
        if display.with_details and answer.labels:
            console().print(shortlist_table(text, as_plain(answer, None, options, display)["labels"]))
        else:
            console().print(tags_table(text, answer.labels, answer.scores, space, **reason))


LINE_INTERVAL = 10.0  # seconds between two lines of progress


def check_out(out: Path, file: str | None, with_details: bool) -> None:
    """Raise DataError if the predictions cannot be written, before any work."""
    from labelspace.data.answer_files import answer_format
    from labelspace.errors import DataError

    if file is None:
        raise DataError(f"--out is for the documents of a file, but no --input is given with {out}; add --input FILE")
    if answer_format(out) != ".jsonl" and with_details:
        raise DataError(f"descriptions are written to .jsonl, but --shortlist is given with {out}; use --k, or .jsonl")
    if out.exists() and os.path.exists(file) and os.path.samefile(out, file):
        raise DataError(f"--out must be another file than --input, but both are {out}; give another name")
    if out.is_dir():
        raise DataError(f"--out must be a file, but {out} is a folder; give a name such as {out}/answers.csv")


def predict_stream(
    file: str, request: PredictRequest, reading: ReadOptions, out: Path | None = None, quiet: bool = False
) -> None:
    """Print one JSON line per document of a file, in order, or write ``out``; a batch is in memory at a time.

    Documents of a pipe are answered before more is waited for. Say how many documents the model could not read.
    """
    from labelspace.data.answer_files import writing_answers
    from labelspace.data.archives import is_data_file
    from labelspace.data.source import iter_records
    from labelspace.report.terminal import json_text

    tagger, options = request.tagger, request.options
    problems, done = Counter[str](), Tally(quiet or out is None)
    n_labels = len(tagger.labels_)
    answers = (
        nullcontext(lambda prediction: print_json(prediction.as_json))
        if out is None
        else writing_answers(out, request.display, n_labels, json_text)
    )
    records = iter_records(file, tagger.ready_made, tagger.columns_, reading.following(tagger.fields_))
    with answers as add:

        def answer(documents: Iterable[Record]) -> None:
            for prediction in predictions(documents, file, request, problems):
                add(prediction)
                done.count(len(prediction.labels))

        if is_data_file(Path(file)):
            answer(records)
        else:
            answer_as_they_come(records, answer)
    if out is not None and quiet:
        print_json({"out": str(out), "documents": done.n, "labels": done.n_labels})
    elif out is not None:
        print_line(f"wrote {out}: {done.n:,} documents, {done.n_labels:,} labels")
    if not quiet:
        note_precision(tagger, options)
        note_problems(problems, done.n)


def answer_as_they_come(records: Iterable[Record], answer: Callable[[list[Record]], None]) -> None:
    """Answer the documents of a pipe or a terminal before more is waited for; many at once if they are there."""
    from labelspace.data.waiting_input import before_waiting
    from labelspace.tagger.inputs import MAX_DOCUMENTS

    pending: list[Record] = []

    def answer_pending() -> None:
        answer(pending)
        pending.clear()
        sys.stdout.flush()

    with before_waiting(answer_pending):
        for record in records:
            pending.append(record)
            if len(pending) >= MAX_DOCUMENTS:
                answer_pending()
    answer_pending()


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
