"""An evaluation as one HTML page that works offline: metrics, how sure the model is, figures by groups of labels."""

from collections.abc import Mapping
from html import escape
from typing import Any

from labelspace.report.by_label.section import label_script, label_style
from labelspace.report.curves import precision_coverage_svg, reliability_svg
from labelspace.report.page import html_figure, html_page, html_table, paragraph
from labelspace.report.tables import cost_line, evaluated_on, figure_groups, group_cells, metric_rows, threshold_rows


def evaluation_page(figures: Mapping[str, Any], model: str, method: str, data: str, labels: str | None = None) -> str:
    """Return the page of the figures of ``experiment.evaluate``, with the names of the model, its method and the data.

    ``labels`` is the part of the page with figures of each label, if any.

    >>> figures = {"P@1": 50.0, "n": 2, "n_without_labels": 0, "n_labels": 3, "by_frequency": {"head": {"recall": 9.0}}}
    >>> figures |= {"predict_seconds": 0, "latency_ms_p50": 0, "latency_ms_p99": 0, "model_mb": 1}
    >>> "<h1>mine on test.csv</h1>" in evaluation_page(figures, "mine", "neighbors", "test.csv")
    True
    """
    facts = [f"Method {method}. {evaluated_on(figures)}.", *_warnings(figures), f"P{cost_line(figures)[1:]}."]
    parts = [f"<h1>{escape(f'{model} on {data}')}</h1>", *map(paragraph, facts)]
    ranks, rows = metric_rows(figures)
    parts += ["<h2>Metrics, in percent</h2>", html_table(["", *ranks], rows)]
    if "ci" in figures:
        said = (
            "In parentheses: 95 % confidence intervals, which say how far a figure would move with other test "
            "documents of the same kind (bootstrap over the documents; the model stays as it is)."
        )
        parts.append(paragraph(said))
    if "precision_coverage" in figures:
        parts.append(_how_sure(figures, method))
    for title, groups, columns in figure_groups(figures):
        rows = [[name, *group_cells(values, columns)] for name, values in groups.items()]
        parts += [f"<h2>{escape(title[0].upper() + title[1:])}</h2>", html_table(["", *columns.values()], rows)]
    title = f"labelspace: {model} on {data}"
    if labels is None:
        return html_page(title, parts)
    return html_page(title, [*parts, labels], label_style(), label_script())


def _warnings(figures: Mapping[str, Any]) -> list[str]:
    """Say what limits the meaning of the figures."""
    seen, unknown = figures.get("seen_in_training"), figures.get("n_unknown_labels")
    said = [f"{seen:.1f} % of these documents were in the training data."] if seen else []
    return said + ([f"{unknown:,} of their labels are unknown to the model, and count as missed."] if unknown else [])


def _how_sure(figures: Mapping[str, Any], method: str) -> str:
    """Return the two diagrams side by side, each with its meaning, and the figures at thresholds."""
    said, charts = "", _precision_coverage(figures)
    if "reliability" in figures:
        charts = _reliability(figures) + charts
    else:
        said = paragraph(
            f"There is no reliability diagram: the scores of {method} order labels, but are not fitted to be "
            "probabilities. Those of blend, the default method, are."
        )
    table = html_table(["labels whose score reaches a threshold", "%", "threshold"], threshold_rows(figures))
    note = (
        "The best threshold, and those of coverage, are chosen on these very documents: no other threshold does "
        "better here, and on other documents it will do a little worse."
    )
    if "expected_threshold" in figures:
        note += " The one of the probabilities has the largest expected micro F1, and is chosen without true labels."
    return f"<h2>How sure is it?</h2>{said}<div class='charts'>{charts}</div>{table}{paragraph(note)}"


def _reliability(figures: Mapping[str, Any]) -> str:
    key = next(key for key in figures if key.startswith("ECE@"))
    said = (
        f"On average, the probability of a label among the first {key.split('@')[1]} is {figures[key]:.1f} percentage "
        f"points away from how often it is right ({key} {figures[key]:.2f} %). Points on the dashed line are "
        "exactly right, below it the model is too sure; vertical lines are 95 % intervals."
    )
    return html_figure("Are the probabilities right?", paragraph(said), reliability_svg(figures["reliability"]))


def _precision_coverage(figures: Mapping[str, Any]) -> str:
    marked = {percent: figures[f"coverage_at_precision_{percent}"] for percent in (90, 95)}
    each = []
    for percent, coverage in marked.items():
        kept = f"with {percent} % precision, {coverage:.1f} % of the right labels"
        each.append(kept if coverage else f"{percent} % precision is not reached")
    said = (
        "Keep only labels above a threshold on the score: the higher it is, the fewer are kept (to the left) and the "
        f"more of them are right. Kept at most: {'; '.join(each)}."
    )
    curve = precision_coverage_svg(figures["precision_coverage"], marked)
    return html_figure("How much can be kept?", paragraph(said), curve)
