"""The command predict."""

from __future__ import annotations

import os
from collections import Counter
from math import isinf
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelspace.cli.arguments import Consistent, Exclude, Include, Json, ModelPath, TopKOption, Under
from labelspace.cli.console import console, print_json
from labelspace.cli.notes import note, note_selection

if TYPE_CHECKING:  # heavy imports happen inside the commands, so that --help stays fast
    from labelspace.answers import Answer, TagOptions
    from labelspace.tagger import Tagger


def predict(
    model: ModelPath,
    texts: Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help="Texts to tag.")] = None,
    file: Annotated[
        str | None,
        typer.Option(
            "--input", metavar="FILE", help="A file to tag: JSON lines, CSV, Parquet or one text per line; - for stdin."
        ),
    ] = None,
    k: TopKOption = 5,
    min_probability: Annotated[
        float | None, typer.Option("--min-probability", metavar="P", help="Leave out labels with a lower probability.")
    ] = None,
    precision: Annotated[
        float | None,
        typer.Option(
            "--precision",
            metavar="P",
            help="Keep labels of which at least this share is right, by thresholds learned on held-out documents.",
        ),
    ] = None,
    consistent: Consistent = False,
    include: Include = None,
    exclude: Exclude = None,
    under: Under = None,
    as_json: Json = False,
) -> None:
    """Tag texts, or the documents of a file of any size.

    For a file, prints one JSON object per document, with its id.
    """
    from labelspace.errors import DataError
    from labelspace.labels.selection import with_files
    from labelspace.tagger import Tagger
    from labelspace.unread import Unread

    if bool(texts) == bool(file):
        raise DataError("predict needs either texts or --input FILE; write: labelspace predict MODEL 'a text'")
    tagger = Tagger.load(model)
    k = min(k, len(tagger.labels_))  # the rest would be padding
    options: TagOptions = {
        "min_probability": min_probability,
        "precision": precision,
        "consistent": consistent,
        "include": with_files(include, tagger.labels_),
        "exclude": with_files(exclude, tagger.labels_),
        "under": under,
    }
    note_selection(tagger.selection(options), quiet=as_json)
    if file is not None:
        predict_stream(tagger, file, k, options, quiet=as_json)
        return
    texts = texts or []
    answers = tagger.answer_batch(texts, k, **options)
    unread = Unread(tagger, k, options)
    problems = [unread(text, answer.tags) for text, answer in zip(texts, answers, strict=True)]
    if as_json:
        rows = zip(texts, answers, problems, strict=True)
        results = [{"text": text, **as_plain(answer, problem, options)} for text, answer, problem in rows]
        print_json({**about_precision(tagger, options), "results": results})
        return
    note_texts(texts, problems)
    note_precision(tagger, options)
    print_answers(tagger, texts, answers, options)


def note_texts(texts: list[str], problems: list[str | None]) -> None:
    """Say which texts are names of files, or say nothing to the model."""
    for number, (text, problem) in enumerate(zip(texts, problems, strict=True), 1):
        if os.path.isfile(text):
            note(f"text {number} is the name of a file, and was tagged as a text; to tag the file: --input {text}")
        elif problem is not None:
            note(f"text {number} {problem}; its labels are those of any such text")


def print_answers(tagger: Tagger, texts: list[str], answers: list[Answer], options: TagOptions) -> None:
    """Print a table for each text."""
    from labelspace.report.tables import tags_table

    reason, (probability, precision) = {}, (options.get("min_probability"), options.get("precision"))
    if probability is not None:
        reason["no_tags"] = f"no label has a probability of at least {probability:g}"
    elif precision is not None:
        reason["no_tags"] = f"no label is sure enough for a precision of {precision:g}"
    for text, answer in zip(texts, answers, strict=True):
        labels = [tagger.labels_.index[name] for name, _ in answer.tags]
        console().print(tags_table(text, labels, [score for _, score in answer.tags], tagger.labels_, **reason))


def predict_stream(tagger: Tagger, file: str, k: int, options: TagOptions, quiet: bool = False) -> None:
    """Print one JSON line per document, in order, with one batch in memory at a time; say how many had no content."""
    from labelspace.data.source import iter_records
    from labelspace.unread import PLURAL, Unread

    unread, problems, n = Unread(tagger, k, options), Counter[str](), 0
    records = iter_records(file, ready_made=tagger.ready_made, columns=tagger.columns_)
    for record, answer in tagger.answer_stream(records, k, file, **options):
        problem = unread((record.features if tagger.ready_made else record.text) or "", answer.tags)
        print_json({"id": record.id, **as_plain(answer, problem, options)})
        problems.update([problem] if problem is not None else [])
        n += 1
    if not quiet:
        note_precision(tagger, options)
    for problem, count in problems.items() if not quiet else ():
        note(f"{count:,} of {n:,} documents {PLURAL[problem]}; their labels are those of any such document")


def as_plain(answer: Answer, note: str | None, options: TagOptions) -> dict[str, Any]:
    """The tags of one document as plain values, what was left out, and a note where the model reads nothing in it."""
    plain: dict[str, Any] = {"labels": [{"label": name, "score": round(score, 6)} for name, score in answer.tags]}
    if options.get("min_probability") is not None or options.get("precision") is not None:
        plain["left_out"] = [{**label._asdict(), "score": round(label.score, 6)} for label in answer.left_out]
    return plain if note is None else {**plain, "note": note}


def about_precision(tagger: Tagger, options: TagOptions) -> dict[str, Any]:
    """What was asked for by --precision, and what it keeps; nothing without it."""
    precision = options.get("precision")
    if precision is None:
        return {}
    found = tagger.precision_threshold(precision, options.get("consistent", False))
    threshold = None if isinf(found.threshold) else round(found.threshold, 6)
    kept = {"threshold": threshold, "coverage": round(found.coverage, 6), "confidence": found.confidence}
    return {"precision": {"asked": precision, **kept}}


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
