"""The command predict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelspace.cli.arguments import Consistent, Json, ModelPath, TopKOption
from labelspace.cli.console import console, print_json

if TYPE_CHECKING:  # heavy imports happen inside the commands, so that --help stays fast
    from labelspace.tagger import Tagger, Tags


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
    consistent: Consistent = False,
    as_json: Json = False,
) -> None:
    """Tag texts, or the documents of a file of any size.

    For a file, prints one JSON object per document, with its id.
    """
    from labelspace.errors import DataError
    from labelspace.report.tables import tags_table
    from labelspace.tagger import Tagger

    if bool(texts) == bool(file):
        raise DataError("predict needs either texts or --input FILE; write: labelspace predict MODEL 'a text'")
    tagger = Tagger.load(model)
    k = min(k, len(tagger.labels_))  # the rest would be padding
    if file is not None:
        predict_stream(tagger, file, k, min_probability, consistent)
        return
    top = tagger.predict_topk(texts or [], k, min_probability=min_probability, consistent=consistent)
    if as_json:
        pairs = zip(texts or [], tagger.named(top), strict=True)
        print_json({"results": [{"text": text, "labels": as_objects(tags)} for text, tags in pairs]})
        return
    reason = {}
    if min_probability is not None:
        reason["no_tags"] = f"no label has a probability of at least {min_probability:g}"
    for text, labels, scores in zip(texts or [], top.labels.tolist(), top.scores.tolist(), strict=True):
        console().print(tags_table(text, labels, scores, tagger.labels_, **reason))


def predict_stream(tagger: Tagger, file: str, k: int, min_probability: float | None, consistent: bool) -> None:
    """Print one JSON line per document, in order, with one batch in memory at a time."""
    from labelspace.data.source import iter_records

    records = iter_records(file, ready_made=tagger.ready_made, columns=tagger.columns_)
    for record, tags in tagger.tag_stream(records, k, min_probability, consistent, file):
        print_json({"id": record.id, "labels": as_objects(tags)})


def as_objects(tags: Tags) -> list[dict[str, Any]]:
    """The tags of one document as plain values."""
    return [{"label": name, "score": round(score, 6)} for name, score in tags]
