"""The command that tags: predict."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelspace.cli.arguments import Consistent, Json, ModelPath, TopKOption
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
    k: TopKOption = 5,
    min_probability: Annotated[
        float | None,
        typer.Option(
            "--min-probability", metavar="P", help="Leave out labels with a lower probability of being right."
        ),
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
    k = min(k, len(tagger.labels_))  # more would only be padded
    if file is not None:
        predict_stream(tagger, file, k, min_probability, consistent)
        return
    top = tagger.predict_topk(texts or [], k, min_probability=min_probability, consistent=consistent)
    if as_json:
        pairs = zip(texts or [], tagger.named(top), strict=True)
        print_json({"results": [{"text": text, "labels": as_objects(tags)} for text, tags in pairs]})
        return
    why = {}
    if min_probability is not None:
        why["none"] = f"no label is right with a probability of {min_probability:g} or more"
    for text, labels, scores in zip(texts or [], top.labels.tolist(), top.scores.tolist(), strict=True):
        console().print(tags_table(text, labels, scores, tagger.labels_, **why))


def predict_stream(tagger: Tagger, file: str, k: int, min_probability: float | None, consistent: bool) -> None:
    """One JSON line per document, in order, a batch in memory at a time."""
    from labelspace.data.source import iter_records

    records = iter_records(file, ready_made=tagger.ready_made, columns=tagger.columns_)
    for record, tags in tagger.tag_stream(records, k, min_probability, consistent, file):
        sys.stdout.write(json.dumps({"id": record.id, "labels": as_objects(tags)}, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def as_objects(tags: Tags) -> list[dict[str, Any]]:
    """Tags of one document for JSON."""
    return [{"label": name, "score": round(score, 6)} for name, score in tags]
