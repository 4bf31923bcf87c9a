"""The command explain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from labelspace.cli.arguments import Json, ModelPath, given_text
from labelspace.cli.console import console, print_json, print_line, write_page
from labelspace.cli.notes import note


def explain(
    model: ModelPath,
    text: Annotated[str, Argument(metavar="TEXT", help="A text, or - for stdin.")],
    label: Annotated[
        list[str] | None, Option(metavar="NAME", help="The label to explain; repeatable. Default: the best ones.")
    ] = None,
    k: Annotated[int, Option(min=1, help="Number of labels to explain.")] = 3,
    page: Annotated[
        Path | None, Option("--html", metavar="FILE", help="Write an HTML page that works offline.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say why a text has its labels: words, phrases, similar documents, members of the ensemble.

    Words that speak for a label are green, those against it red; without
    colors they are in [brackets], with a minus if they speak against it.
    """
    from labelspace.errors import DataError
    from labelspace.report.explanation import explanation_report
    from labelspace.report.explanation_page import explanations_page
    from labelspace.report.tree import counted
    from labelspace.tagger import Tagger

    tagger = Tagger.load(model)
    if tagger.ready_made:
        rule = "explain takes a text, but the model was trained on ready-made features"
        raise DataError(f"{rule}; use Tagger.explain with a row")
    text = given_text(text, tagger)
    explanations = tagger.explain(text, label, k)
    if page is not None:
        write_page(page, explanations_page(text, explanations, model.resolve().name))
    if as_json:
        print_json({"text": text, "explanations": [explanation.to_dict() for explanation in explanations]})
        return
    if page is not None:
        print_line(f"{page}: why {counted(len(explanations), 'label')}")
        return
    if not tagger.reads([text])[0]:
        note("the text has no word that the model knows; its labels are those of every such text")
    out = console()
    for explanation in explanations:
        out.print(explanation_report(text, explanation, out.color_system is not None and out.is_terminal))
