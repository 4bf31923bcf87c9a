"""The labels of an evaluation as a part of its page: a table to search and sort, with the errors behind each row.

Figures are columns of numbers, packed by deflate: 100,000 labels take about a megabyte. The script computes precision,
recall and F1 from the counts.
"""

import zlib
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from labelspace.experiment.by_label import LabelDetails, LabelExample, LabelReport
from labelspace.report.page import asset, paragraph
from labelspace.report.terminal import json_text, shortened
from labelspace.types import Doubles, Ints, Longs, TopK

N_CONFUSED = 20_000  # labels whose confusions are shown: those of 100,000 labels would double the size of the page
MAX_PACKED = 1_800_000  # bytes: a page of 2 MB still opens at once on a phone
NAME_LENGTH = 100
N_NAMES = 12  # labels that are listed with an example


def label_section(report: LabelReport, command: str | None) -> str:
    """Return the part of the page; ``command`` explains a document if its label and id are added to it."""
    n_shown, packed = packed_labels(report, command)
    said = (
        f"{report.decision[0].upper()}{report.decision[1:]}. The worst labels come first: those of the lowest F1, of "
        "equal ones those of more documents. Errors are missed documents and wrong answers. Click a label to see what "
        "it is confused with."
    )
    more = f" The {len(report.details):,} worst labels have telling words and examples." if report.details else ""
    if len(report.order) > N_CONFUSED:
        more += f" Confusions are there for the {N_CONFUSED:,} worst labels; the file of --by-label has all."
    if len(report.order) > n_shown:
        more += f" Only the {n_shown:,} worst labels fit into this page; the file has all {len(report.order):,}."
    return (
        f"<section id='labels'><h2>By label</h2>{paragraph(said + more)}{_controls(report)}"
        "<p id='label-count' role='status'>This table needs a browser of 2023 or later, with JavaScript.</p>"
        "<div class='wide' role='region' aria-label='Figures of labels' tabindex='0'>"
        "<table id='label-table'><thead></thead><tbody></tbody></table></div>"
        "<nav id='label-pages' aria-label='Pages of labels'></nav></section>"
        f"<script type='text/plain' id='label-data'>{packed}</script>"
    )


def label_script() -> str:
    """Return the script of the table."""
    return asset("by_label/page.js")


def label_style() -> str:
    """Return the style of the table."""
    return asset("by_label/page.css")


def _controls(report: LabelReport) -> str:
    fields = {"search": ("Label contains", "search")}
    if report.labels.hierarchy is not None:
        fields["branch"] = ("Under a label that contains", "search")
    fields |= {"least": ("Documents: from", "number"), "most": ("to", "number")}
    boxes = "".join(
        f"<label>{escape(title)} <input id='label-{name}' type='{kind}' autocomplete='off'></label>"
        for name, (title, kind) in fields.items()
    )
    return f"<form id='label-filter'>{boxes}</form>"


def packed_labels(report: LabelReport, command: str | None) -> tuple[int, str]:
    """Return how many of the worst labels fit into a page, and these as the script reads them."""
    n = len(report.order)
    while True:
        columns = json_text(label_columns(report, report.order[:n], command), separators=(",", ":"))
        packed = b64encode(zlib.compress(columns.encode(), 9)).decode()
        if len(packed) <= MAX_PACKED or n <= N_CONFUSED:
            return n, packed
        n = max(N_CONFUSED, int(0.95 * n * MAX_PACKED / len(packed)))


def label_columns(report: LabelReport, rows: Longs, command: str | None) -> dict[str, Any]:
    """Return what the script reads: a column per figure, and details of the first rows."""
    counts, confused = report.figures.counts, report.confusions
    entries = _entries(report, rows)
    place = np.full(len(report.labels), -1, np.int64)
    place[entries] = np.arange(len(entries))
    return {
        "names": [shortened(report.labels.names[label], NAME_LENGTH) for label in entries.tolist()],
        "parents": _parents(report, entries, place),
        "n": counts.true[rows].tolist(),
        "training": report.training_documents[rows].tolist(),
        "answered": counts.predicted[rows].tolist(),
        "right": counts.hits[rows].tolist(),
        "ap": _rounded(100 * report.figures.average_precision[rows], 1),
        "threshold": _rounded(report.figures.best_threshold[rows], 3),
        "bestF1": _rounded(100 * report.figures.best_f1[rows], 1),
        "instead": _confused(confused.given_instead, rows, place),
        "beside": _confused(confused.missing_beside, rows, place),
        "details": [_details(report.labels.names[label], each) for label, each in report.details.items()],
        "command": command,
    }


def _entries(report: LabelReport, rows: Longs) -> Longs:
    """Return the labels of the rows, and then further ones: confused with these, and above these."""
    first = rows[:N_CONFUSED]
    confused = np.concatenate([some.labels[first].ravel() for some in report.confusions])
    further = [confused[confused >= 0]]
    if report.labels.hierarchy is not None:
        further.append(report.labels.hierarchy.ancestors[rows].indices)
    return np.concatenate([rows, np.setdiff1d(np.concatenate(further), rows)]).astype(np.int64)


def _parents(report: LabelReport, entries: Longs, place: Longs) -> list[int | list[int]] | None:
    """Return the places of the parents of each entry; None without a hierarchy."""
    if report.labels.hierarchy is None:
        return None
    above = report.labels.hierarchy.parents[entries]
    places = [some[some >= 0] for some in np.split(place[above.indices], above.indptr[1:-1])]
    # One number for the usual single parent keeps the page small.
    return [int(some[0]) if len(some) == 1 else some.tolist() for some in places]


def _rounded(values: Doubles, digits: int) -> list[float | None]:
    return [None if np.isnan(value) else round(value, digits) for value in values.tolist()]


def _confused(confused: TopK, rows: Longs, place: Longs) -> list[list[int]]:
    """Return for each of the first rows the places of labels, each followed by its number of documents."""
    first = rows[:N_CONFUSED]
    labels: Ints = confused.labels[first]
    pairs = np.stack([place[labels], confused.scores[first].clip(0).astype(np.int64)], axis=2)
    return [some[known].ravel().tolist() for some, known in zip(pairs, labels >= 0, strict=True)]


def _details(name: str, details: LabelDetails) -> list[Any]:
    """Return the whole name of a label, its words, the wrong answers and the missed documents."""
    examples = ([_example(each) for each in some] for some in (details.false_positives, details.false_negatives))
    return [name, details.words, *examples]


def _example(example: LabelExample) -> list[Any]:
    listed = (_listed(names) for names in (example.given, example.answered))
    return [example.id, example.text, example.score, *listed]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - N_NAMES} more" if len(names) > N_NAMES else ""
    return ", ".join(shortened(name, NAME_LENGTH) for name in names[:N_NAMES]) + more
