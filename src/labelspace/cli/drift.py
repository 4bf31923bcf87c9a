"""The command drift."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from labelspace.cli.arguments import Json, ModelPath, Reading
from labelspace.cli.console import console, print_json
from labelspace.cli.notes import SEEN, note


def drift(
    model: ModelPath,
    data: Annotated[
        str, Argument(metavar="DATA", help="A file of recent documents, with or without labels; - for stdin.")
    ],
    reference: Annotated[
        str | None,
        Option(
            metavar="FILE", help="Documents to compare with, that the model did not learn from, such as a test file."
        ),
    ] = None,
    as_json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Tell whether documents have moved away from those that a model learned from, and what to do.

    Unknown words, the probability of the best label, calibration if documents have labels, and labels that are
    suggested more often than they were given in training. DATA may be larger than memory.
    """
    from labelspace.errors import DataError
    from labelspace.experiment.drift import find_drift
    from labelspace.experiment.labeled_batches import LabeledDocuments
    from labelspace.report.drift import drift_report
    from labelspace.tagger import Tagger

    if data == "-" == reference:
        raise DataError("only one of DATA and --reference can be the standard input, but both are; name a file")
    tagger = Tagger.load(model)
    documents = LabeledDocuments.of_file(tagger, data, reading)
    known = None if reference is None else LabeledDocuments.of_file(tagger, reference, reading)
    found = find_drift(documents, known)
    figures = found.as_json(tagger.labels_.names)
    if as_json:
        print_json(figures)
        return
    console().print(drift_report(figures))
    if found.seen is not None and 100 * found.seen >= SEEN:
        share = f"about {100 * found.seen:.0f} % of these documents were in the training data"
        note(f"{share}: the figures say little about new ones")
