"""The command predict."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelspace.cli.arguments import Consistent, Exclude, Include, Json, ModelPath, TopKOption, Under
from labelspace.cli.console import console, print_json
from labelspace.cli.notes import note, note_selection

if TYPE_CHECKING:  # heavy imports happen inside the commands, so that --help stays fast
    from labelspace.tagger import Tagger, TagOptions, Tags

EMPTY = "is empty"
UNKNOWN = "has no word that the model knows"
PLURAL = {EMPTY: "are empty", UNKNOWN: "have no word that the model knows"}


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
    include: Include = None,
    exclude: Exclude = None,
    under: Under = None,
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
    options: TagOptions = {
        "min_probability": min_probability,
        "consistent": consistent,
        "include": include,
        "exclude": exclude,
        "under": under,
    }
    note_selection(tagger.selection(options), quiet=as_json)
    if file is not None:
        predict_stream(tagger, file, k, options, quiet=as_json)
        return
    texts = texts or []
    top = tagger.predict_topk(texts, k, **options)
    named = tagger.named(top)
    unread = Unread(tagger, k, options)
    problems = [unread(text, tags) for text, tags in zip(texts, named, strict=True)]
    if as_json:
        rows = zip(texts, named, problems, strict=True)
        print_json({"results": [{"text": text, **answer(tags, problem)} for text, tags, problem in rows]})
        return
    for number, (text, problem) in enumerate(zip(texts, problems, strict=True), 1):
        if os.path.isfile(text):
            note(f"text {number} is the name of a file, and was tagged as a text; to tag the file: --input {text}")
        elif problem is not None:
            note(f"text {number} {problem}; its labels are those of any such text")
    reason = {}
    if min_probability is not None:
        reason["no_tags"] = f"no label has a probability of at least {min_probability:g}"
    for text, labels, scores in zip(texts, top.labels.tolist(), top.scores.tolist(), strict=True):
        console().print(tags_table(text, labels, scores, tagger.labels_, **reason))


def predict_stream(tagger: Tagger, file: str, k: int, options: TagOptions, quiet: bool = False) -> None:
    """Print one JSON line per document, in order, with one batch in memory at a time; say how many had no content."""
    from labelspace.data.source import iter_records

    unread, problems, n = Unread(tagger, k, options), Counter[str](), 0
    records = iter_records(file, ready_made=tagger.ready_made, columns=tagger.columns_)
    for record, tags in tagger.tag_stream(records, k, file, **options):
        problem = unread((record.features if tagger.ready_made else record.text) or "", tags)
        print_json({"id": record.id, **answer(tags, problem)})
        problems.update([problem] if problem is not None else [])
        n += 1
    for problem, count in problems.items() if not quiet else ():
        note(f"{count:,} of {n:,} documents {PLURAL[problem]}; their labels are those of any such document")


class Unread:
    """Says of a document in which the model reads nothing why that is: its labels are those of an empty one."""

    def __init__(self, tagger: Tagger, k: int, options: TagOptions) -> None:
        from scipy.sparse import csr_matrix

        empty: Any = csr_matrix((1, tagger.model.n_features_)) if tagger.ready_made else [""]
        tags = tagger.tag_batch(empty, k, **options)[0]
        self._tagger, self._empty = tagger, [label for label, _ in tags]

    def __call__(self, content: str, tags: Tags) -> str | None:
        """What is wrong with the content, a text or a row of features as text; None where nothing is."""
        if not content.strip():
            return EMPTY
        if self._tagger.ready_made or [label for label, _ in tags] != self._empty:
            return None
        return None if self._tagger.reads([content])[0] else UNKNOWN


def answer(tags: Tags, note: str | None) -> dict[str, Any]:
    """The tags of one document as plain values, with a note where the model reads nothing in it."""
    labels = [{"label": name, "score": round(score, 6)} for name, score in tags]
    return {"labels": labels} if note is None else {"labels": labels, "note": note}
