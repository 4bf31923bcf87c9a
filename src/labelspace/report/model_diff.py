"""What changes from one model to another, as tables for the terminal and as a page."""

from collections.abc import Sequence
from html import escape

from rich.console import Group

from labelspace.experiment.model_diff import DocumentChange, LabelChange, ModelDiff
from labelspace.report.page import html_page, html_table, paragraph
from labelspace.report.tables import filled_table, plain
from labelspace.report.terminal import shortened

LABEL_COLUMNS = ("label", "n", "better", "worse", "p (Holm)", "significant")
DOCUMENT_COLUMNS = ("document", "nDCG@5", "text", "better", "worse")
N_LABELS, N_DOCUMENTS = 10, 5  # on the terminal
N_ON_PAGE = 500  # labels
WIDTH = 60
STYLE = (
    ".documents th, .documents td { vertical-align: top; }"
    ".documents :is(th, td):nth-child(n + 3) { text-align: left; }"
    ".documents td:nth-child(n + 3) { white-space: normal; min-width: 9rem; overflow-wrap: anywhere; }"
    ".documents td:nth-child(3) { min-width: 14rem; } td:first-child { overflow-wrap: anywhere; }"
)


def diff_report(diff: ModelDiff) -> Group:
    """Return the figures, and the labels and documents that changed most."""
    parts = [plain(line) for line in summary(diff)]
    labels = [[shortened(row[0], WIDTH), *row[1:]] for row in map(_label_row, diff.labels[:N_LABELS])]
    tables = [filled_table("labels, the surest changes first", LABEL_COLUMNS, labels)] if labels else []
    for title, some in (("largest losses", diff.losses), ("largest gains", diff.gains)):
        rows = [[shortened(cell, WIDTH) for cell in _document_row(each)] for each in some[:N_DOCUMENTS]]
        tables += [filled_table(title, DOCUMENT_COLUMNS, rows, left=len(DOCUMENT_COLUMNS))] if rows else []
    return Group(*parts, plain(""), *tables)


def diff_page(diff: ModelDiff, old: str, new: str) -> str:
    """Return the page of what changes from the model ``old`` to the model ``new``."""
    title = f"From {old} to {new}"
    parts = [f"<h1>{escape(title)}</h1>", *map(paragraph, summary(diff))]
    shown = diff.labels[:N_ON_PAGE]
    said = f"The {len(shown):,} surest changes of {len(diff.labels):,} changed labels."
    parts += ["<h2>Labels</h2>", paragraph(said), html_table(LABEL_COLUMNS, list(map(_label_row, shown)))]
    for heading, some in (("Largest losses", diff.losses), ("Largest gains", diff.gains)):
        table = html_table(DOCUMENT_COLUMNS, list(map(_document_row, some)))
        parts += [f"<section class='documents'><h2>{heading}</h2>{table}</section>"] if some else []
    return html_page(f"labelspace: {title}", parts, STYLE)


def summary(diff: ModelDiff) -> list[str]:
    """Say what changed, and whether by more than chance."""
    change, figures = diff.change, diff.change.figures
    assert figures.old is not None
    by_chance = "may be chance" if change.low <= 0 <= change.high else "is more than chance"
    significant = [each for each in diff.labels if each.is_significant]
    better = sum(each.better > each.worse for each in significant)
    return [
        f"nDCG@5 {figures.old.value:.2f} to {figures.new.value:.2f} on {figures.n:,} documents of {figures.source}: "
        f"{change.difference:+.2f}, 95 % interval {change.low:+.2f} to {change.high:+.2f}; this {by_chance}.",
        f"Documents: {diff.n_better:,} better, {diff.n_worse:,} worse, "
        f"{figures.n - diff.n_better - diff.n_worse:,} equal.",
        f"Labels: {len(diff.labels):,} changed, {diff.n_tested:,} often enough to test; {better:,} are significantly "
        f"better, {len(significant) - better:,} worse (McNemar's test, corrected for the number of labels).",
    ]


def _label_row(each: LabelChange) -> Sequence[str]:
    p = "too few" if each.p_holm is None else f"{each.p_holm:.4f}"
    numbers = (f"{value:,}" for value in (each.n, each.better, each.worse))
    return [each.label, *numbers, p, "yes" if each.is_significant else ""]


def _document_row(each: DocumentChange) -> Sequence[str]:
    return [each.id, f"{each.difference:+.1f}", each.text, ", ".join(each.better), ", ".join(each.worse)]
