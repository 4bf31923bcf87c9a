"""The command evaluate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from labelspace.cli.arguments import DataPath, Evaluating, Json, Ks, ModelPath, Reading, parse_ks, with_label_files
from labelspace.cli.by_label import Labeling, explain_command
from labelspace.cli.console import console, print_json, print_line, write_page
from labelspace.cli.notes import note, note_figures, note_label_files, note_selection
from labelspace.cli.rerank import Reranking, note_reranking

if TYPE_CHECKING:
    from labelspace.data.read_options import ReadOptions
    from labelspace.experiment.evaluate import EvaluationOptions
    from labelspace.models.base import Model
    from labelspace.tagger import Tagger
    from labelspace.types import Dataset


def evaluate(
    model: ModelPath,
    data: DataPath,
    k: Ks = "1,3,5",
    *,
    evaluating: Evaluating,
    curve: Annotated[bool, Option(help="Show the metrics after each epoch too; train with --set curve=true.")] = False,
    ci: Annotated[
        bool, Option(help="Add 95 % confidence intervals: 1,000 bootstrap resamples of the documents.")
    ] = False,
    html: Annotated[
        Path | None, Option(metavar="FILE", help="Write a page with the figures, reliability and precision curves.")
    ] = None,
    labeling: Labeling,
    reranking: Reranking,
    as_json: Json = False,
    reading: Reading,
) -> None:
    """Evaluate a model on the test documents of DATA, or on all documents of a file.

    With --include, --exclude or --under, figures are among the allowed labels: other labels of the documents do not
    count, and a document with only other labels is one without labels.
    """
    from labelspace import experiment
    from labelspace.experiment.evaluate import evaluate_documents
    from labelspace.report.by_label.section import label_section
    from labelspace.report.by_label.table import worst_labels_table
    from labelspace.report.evaluation_page import evaluation_page
    from labelspace.tagger import Tagger

    ks = parse_ks(k)
    labeling.check()
    reranking.check(evaluating.get("consistent"))
    tagger = Tagger.load(model)
    reranker = reranking.reranker(tagger)
    by_epoch = training_curve(tagger.model) if curve else None
    file, documents = evaluated_documents(data, tagger, reading)
    options: EvaluationOptions = with_label_files(evaluating, tagger.labels_)
    note_selection(tagger.selection(options), quiet=as_json)
    if reranker is not None:
        options["reranker"] = reranker
    found = evaluate_documents(tagger, documents, ks, **options)
    figures = found.all_figures(ci)
    labels = labeling.write(tagger, documents, found)
    if labels is not None:
        figures["by_label"] = {"csv": str(labeling.by_label), **labels.as_json()}
    figures |= {"model_mb": experiment.megabytes(model), **({} if by_epoch is None else {"curve": by_epoch})}
    note_reranking(reranker)
    if reranker is not None and labels is not None:
        note("the figures of each label are those of the model's own order, not of the reranked one")
    if html is not None:
        part = None if labels is None else label_section(labels, explain_command(tagger, model, file, reading))
        page = evaluation_page(figures, model.resolve().name, tagger.model.name, data.resolve().name, part)
        write_page(html, page)
        figures["html"] = str(html)
    if as_json:
        print_json(figures)
        return
    note_label_files(file, tagger.columns_)
    print_figures(figures)
    if labels is not None:
        console().print(worst_labels_table(labels))
        print_line(f"saved: {labeling.by_label}")


def evaluated_documents(data: Path, tagger: Tagger, reading: ReadOptions) -> tuple[Path, Dataset]:
    """Return the file of test documents and these, read like the training file unless the options say otherwise."""
    from labelspace.data.archives import is_folder
    from labelspace.data.dataset_file import read_for_model
    from labelspace.data.label_files import HIERARCHY, label_file
    from labelspace.data.source import test_file
    from labelspace.errors import DataError

    file = test_file(data) if is_folder(data) else data
    if file is None:
        raise DataError(f"{data} must have a test file, but has none; add test.*, or give a file to evaluate on")
    labels = tagger.labels_
    if label_file(file, HIERARCHY) is not None:  # it takes precedence over the model's
        labels = replace(labels, hierarchy=None)
    columns = tagger.columns_ if reading.columns is None else reading.columns
    return file, read_for_model(file, labels, columns, reading.following(tagger.fields_))


def print_figures(figures: dict[str, Any]) -> None:
    """Print the figures as tables, with what must be known about them."""
    from labelspace.report.tables import curve_table, figures_report

    console().print(figures_report(figures))
    if "curve" in figures:
        console().print(curve_table(figures["curve"]))
    note_figures(figures)
    if "html" in figures:
        print_line(f"saved: {figures['html']}")


def training_curve(model: Model) -> list[dict[str, float]]:
    """Return the metrics after each epoch that the training recorded; raise if it recorded none."""
    from labelspace.errors import ParameterError

    recorded: list[dict[str, float]] | None = model.report().get("curve")
    if not recorded:
        has_it = "curve" in model.params
        remedy = "train with --set curve=true" if has_it else "train a method that has it, such as glas"
        raise ParameterError(f"--curve needs metrics by epoch, but {model.name} recorded none; {remedy}")
    return recorded
