"""The command that tags: predict."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelspace.cli.arguments import Consistent, Json, ModelPath, Places
from labelspace.cli.console import console, print_json

if TYPE_CHECKING:  # heavy imports happen inside the commands, so that --help stays quick
    from labelspace.tagger import Tagger, Tags


def predict(
    model: ModelPath,
    texts: Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help="Texts to tag.")] = None,
    file: Annotated[
        str | None,
        typer.Option(
            "--input", metavar="FILE", help="JSON lines, CSV, Parquet or plain lines (- for stdin); prints JSON lines."
        ),
    ] = None,
    k: Places = 5,
    least: Annotated[
        float | None,
        typer.Option("--min-probability", metavar="P", help="Leave labels out that are right less often than this."),
    ] = None,
    consistent: Consistent = False,
    as_json: Json = False,
) -> None:
    """Tag texts from the command line, or a file of any size as JSON lines that keep the ids."""
    from labelspace.errors import DataError
    from labelspace.report.tables import tags_table
    from labelspace.tagger import Tagger

    if bool(texts) == bool(file):
        raise DataError("predict takes texts or --input FILE, one of the two; write: labelspace predict MODEL 'a text'")
    tagger = Tagger.load(model)
    k = min(k, len(tagger.labels_))  # places beyond the labels would only be filled to be left out again
    if file is not None:
        predict_stream(tagger, file, k, least, consistent)
        return
    top = tagger.confident(texts or [], k, least, consistent)
    if as_json:
        pairs = zip(texts or [], tagger.named(top), strict=True)
        print_json({"results": [{"text": text, "labels": as_objects(tags)} for text, tags in pairs]})
        return
    why = {} if least is None else {"none": f"no label is right with a probability of {least:g} or more"}
    for text, labels, scores in zip(texts or [], top.labels.tolist(), top.scores.tolist(), strict=True):
        console().print(tags_table(text, labels, scores, tagger.labels_, **why))


def predict_stream(tagger: Tagger, file: str, k: int, least: float | None, consistent: bool) -> None:
    """One JSON line a document, in order, a batch in memory at a time."""
    from labelspace.data.source import iter_records
    from labelspace.experiment import predict_records

    records = iter_records(file, ready_made=not tagger.takes_texts, columns=tagger.columns_)
    for record, tags in predict_records(tagger, records, k, file, least, consistent):
        sys.stdout.write(json.dumps({"id": record.id, "labels": as_objects(tags)}, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def as_objects(tags: Tags) -> list[dict[str, Any]]:
    """Tags of one document for JSON."""
    return [{"label": name, "score": round(score, 6)} for name, score in tags]
