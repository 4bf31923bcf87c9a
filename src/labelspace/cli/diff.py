"""The command diff."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from labelspace.cli.arguments import DataPath, Json, Reading
from labelspace.cli.console import console, print_json, print_line, write_page
from labelspace.cli.evaluate import evaluated_documents
from labelspace.cli.notes import note_label_files


def diff(
    model_a: Annotated[Path, Argument(metavar="MODEL_A", help="The old model, a folder.")],
    model_b: Annotated[Path, Argument(metavar="MODEL_B", help="The new model, a folder.")],
    data: DataPath,
    html: Annotated[Path | None, Option(metavar="FILE", help="Write a page with the changed labels.")] = None,
    as_json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Show which documents and labels change from one model to another, for better and worse, and what is chance.

    Both answer the test documents of DATA, or all documents of a file. Each answers the labels that reach its own
    threshold, as in `labelspace evaluate --by-label`.
    """
    from labelspace.experiment.model_diff import model_diff
    from labelspace.report.model_diff import diff_page, diff_report
    from labelspace.tagger import Tagger

    old, new = Tagger.load(model_a), Tagger.load(model_b)
    _, old_documents = evaluated_documents(data, old, reading)
    file, documents = evaluated_documents(data, new, reading)
    found = model_diff(old, new, old_documents, documents, data.resolve().name)
    if html is not None:
        write_page(html, diff_page(found, model_a.resolve().name, model_b.resolve().name))
    if as_json:
        print_json({**found.as_json(), **({} if html is None else {"html": str(html)})})
        return
    note_label_files(file, new.columns_)
    console().print(diff_report(found))
    if html is not None:
        print_line(f"saved: {html}")
