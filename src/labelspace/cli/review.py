"""The command review."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option

from labelspace.cli.arguments import ModelPath, Reading
from labelspace.cli.console import console, print_json, print_line
from labelspace.cli.notes import SEEN, note

if TYPE_CHECKING:  # heavy imports happen inside the functions, so that --help stays fast
    from labelspace.experiment.review import Review

ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst")
StreamPath = Annotated[
    str, Argument(metavar="DATA", help="A file of documents, with or without labels; - for the standard input.")
]


def review(
    model: ModelPath,
    data: StreamPath,
    order: Annotated[
        Literal["uncertain", "disagreement", "rare", "suspicious", "random"],
        Option(
            help="uncertain: the first suggestion is likely wrong. disagreement: members of an ensemble differ. rare: "
            "a label of few documents is in doubt. suspicious: the model finds a given label impossible. random."
        ),
    ] = "uncertain",
    n: Annotated[int, Option("-n", min=1, help="Number of documents; a tenth of them is drawn at random.")] = 50,
    k: Annotated[int, Option(min=1, help="Number of suggestions per document.")] = 5,
    seed: Annotated[int, Option(help="Of the documents that are drawn at random.")] = 0,
    out: Annotated[
        Path | None, Option(metavar="FILE", help="Write the documents there, as .jsonl, to be filled and learned.")
    ] = None,
    as_json: Annotated[
        bool, Option("--json", help="Print one JSON object per document on stdout and nothing else.")
    ] = False,
    *,
    reading: Reading,
) -> None:
    """Choose the documents of DATA that are worth a person's minute, best first.

    A person fills ``labels`` and ``rejected`` of the JSON lines, and `labelspace learn` reads them. DATA may be larger
    than memory.
    """
    from labelspace.data.files import writing_text
    from labelspace.experiment.labeled_batches import LabeledDocuments
    from labelspace.experiment.review import check_order, choose_documents
    from labelspace.report.review import review_table
    from labelspace.report.terminal import json_text
    from labelspace.tagger import Tagger

    check_out(out, data)
    tagger = Tagger.load(model)
    check_order(tagger, order)
    found = choose_documents(LabeledDocuments.of_file(tagger, data, reading), order, n, k, seed)
    rows = [document.as_json(found.calibrated) for document in found.documents]
    if out is not None:
        with writing_text(out) as file:
            file.writelines(json_text(row) + "\n" for row in rows)
        if as_json:
            print_json({"out": str(out), "documents": len(rows), "read": found.n_read})
        else:
            print_line(f"wrote {out}: {len(rows):,} of {found.n_read:,} documents")
    elif as_json:
        for row in rows:
            print_json(row)
    else:
        console().print(review_table(found))
    if not as_json:
        note_review(found, n)


def check_out(out: Path | None, data: str) -> None:
    """Raise DataError if the documents cannot be written, before any work."""
    from labelspace.errors import DataError

    if out is None:
        return
    if not out.name.lower().endswith(ENDINGS):
        rule = f"the name of a file of documents to review must end with {', '.join(ENDINGS)}"
        raise DataError(f"{rule}, but is {out.name!r}; rename it")
    if out.is_dir():
        raise DataError(f"--out must be a file, but {out} is a folder; give a name such as {out}/review.jsonl")
    if out.exists() and os.path.exists(data) and os.path.samefile(out, data):
        raise DataError(f"--out must be another file than DATA, but both are {out}; give another name")


def note_review(found: Review, n: int) -> None:
    """Say what limits the choice: documents that the model learned from, and fewer documents than were asked for."""
    if found.order == "suspicious" and not found.n_labeled:
        note("no document has a label, so none is suspicious; name the column with --labels, or take another order")
    elif len(found.documents) < min(n, found.n_read - found.n_empty):
        chosen = sum(document.order == found.order for document in found.documents)
        note(f"{chosen:,} documents have something to review in the order {found.order}; the others have a value of 0")
    if found.n_empty:
        note(f"{found.n_empty:,} of {found.n_read:,} documents are empty, and left out")
    if not found.calibrated and found.order in ("uncertain", "rare"):
        note("the model is not calibrated: doubt is how near the second label comes to the first, and no probability")
    if found.seen is not None and 100 * found.seen >= SEEN:
        share = f"about {100 * found.seen:.0f} % of these documents were in the training data"
        if found.order == "suspicious":
            meaning = "the model has learned their wrong labels too, and finds fewer of them"
            note(f"{share}: {meaning}; `labelspace data check --deep` judges them by models that have not seen them")
        else:
            note(f"{share}: the model is surer of them than of new ones")
