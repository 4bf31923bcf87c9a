"""The command explain."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from labelspace.cli.arguments import Json, ModelPath, Reading, as_words, given_text
from labelspace.cli.console import console, print_json, print_line, write_page
from labelspace.cli.evaluate import evaluated_documents
from labelspace.cli.notes import note

if TYPE_CHECKING:
    from labelspace.data.read_options import ReadOptions
    from labelspace.tagger import Tagger


def explain(
    model: ModelPath,
    document: Annotated[str, Argument(metavar="TEXT", help="A text, or - for stdin.")],
    label: Annotated[
        list[str] | None, Option(metavar="NAME", help="The label to explain; repeatable. Default: the best ones.")
    ] = None,
    k: Annotated[int, Option(min=1, help="Number of labels to explain.")] = 3,
    page: Annotated[
        Path | None, Option("--html", metavar="FILE", help="Write an HTML page that works offline.")
    ] = None,
    of: Annotated[
        Path | None,
        Option(
            metavar="DATA", help="Explain a document of DATA: TEXT is its id, or its number from 0 if there are none."
        ),
    ] = None,
    as_json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Say why a text has its labels: words, phrases, similar documents, members of the ensemble.

    Words that speak for a label are green, those against it red; without
    colors they are in [brackets], with a minus if they speak against it.
    """
    from labelspace.errors import DataError, ParameterError
    from labelspace.report.explanation import explanation_report
    from labelspace.report.explanation_page import explanations_page
    from labelspace.report.tree import counted
    from labelspace.tagger import Tagger

    tagger = Tagger.load(model)
    if tagger.ready_made:
        rule = "explain takes a text, but the model was trained on ready-made features"
        raise DataError(f"{rule}; use Tagger.explain with a row")
    if of is not None:
        text = document_text(of, document, tagger, reading)
    elif as_words(reading):
        raise ParameterError(f"{as_words(reading)[0]} is for a file of documents; name it with --of, or leave it out")
    else:
        text = given_text(document, tagger)
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


def document_text(data: Path, name: str, tagger: Tagger, reading: ReadOptions) -> str:
    """Return the text of the document with this id; raise DataError if there is none."""
    from labelspace.errors import DataError

    file, documents = evaluated_documents(data, tagger, reading)
    ids = list(map(str, range(len(documents)))) if documents.ids is None else documents.ids
    if documents.texts is None:
        raise DataError(f"explain takes texts, but {file} holds ready-made features; use Tagger.explain with a row")
    if name not in ids:
        hint = f"they are called {ids[0]!r} and so on" if len(ids) else "it is empty"
        raise DataError(f"--of {file} must have the document {name[:80]!r}, but has not; {hint}")
    return documents.texts[ids.index(name)]
