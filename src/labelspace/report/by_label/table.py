"""Figures of each label as a file, and those of the worst labels as a table for the terminal."""

import csv
from collections.abc import Sequence
from pathlib import Path

from rich.console import Group

from labelspace.data.answer_files.answer_columns import LabelDisplay
from labelspace.data.files import writing_text
from labelspace.experiment.by_label import LabelReport
from labelspace.report.tables import filled_table
from labelspace.report.terminal import shortened

COLUMNS = (
    "label",
    "path",
    "n",
    "training_documents",
    "answered",
    "right",
    "precision",
    "recall",
    "f1",
    "average_precision",
    "best_threshold",
    "best_f1",
    "given_instead",
    "missing_beside",
    "words",
)
N_SHOWN = 10  # labels on the terminal
NAME_LENGTH = 40


def write_label_csv(path: Path, report: LabelReport) -> None:
    """Write a row per label that is true or answered somewhere, the worst first; what is not defined is empty."""
    shown = LabelDisplay(report.labels).shown
    with writing_text(path) as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for label in report.order.tolist():
            row = report.row(label)
            lists = {name: confused_text(row[name]) for name in ("given_instead", "missing_beside")}
            words = report.details[label].words if label in report.details else []
            writer.writerow({**row, **lists, "path": shown(label).path, "words": " ".join(words)})


def confused_text(confused: Sequence[tuple[str, int]]) -> str:
    """Return labels with their numbers of documents as one text.

    >>> confused_text([("rye", 3), ("oat", 1)])
    'rye (3); oat (1)'
    """
    return "; ".join(f"{name} ({n})" for name, n in confused)


def worst_labels_table(report: LabelReport) -> Group:
    """Return a table of the labels of the lowest F1."""
    rows = []
    for label in report.order[:N_SHOWN].tolist():
        row = report.row(label)
        figures = ["" if row[name] is None else f"{row[name]:.1f}" for name in ("precision", "recall", "f1")]
        confused = [
            shortened(confused_text(row[name][:1]), NAME_LENGTH) for name in ("given_instead", "missing_beside")
        ]
        rows.append([shortened(row["label"], NAME_LENGTH), str(row["n"]), *figures, *confused])
    headings = ["", "n", "precision", "recall", "F1", "given instead", "missing beside"]
    return filled_table(f"{len(rows)} worst of {len(report.order):,} labels; {report.decision}", headings, rows)
