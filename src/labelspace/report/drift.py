"""Figures of drift as tables for the terminal, each with what it means."""

from collections.abc import Mapping
from typing import Any

from rich.console import Group

from labelspace.report.tables import filled_table, plain

MEANINGS = {
    "unknown_words": "of the different words of a document; such words say nothing to the model",
    "top_probability": "how sure the model is of its best label, on average",
    "calibration": "the mean gap between a probability and how often such suggestions are right",
}
NOT_KNOWN = "not known"
SMALLEST = 1e-4  # p that is shown


def drift_report(figures: Mapping[str, Any]) -> Group:
    """Return the figures of ``experiment.drift`` as tables, and the verdict."""
    words, best, calibration = (figures[name] for name in ("unknown_words", "top_probability", "calibration"))
    rows = [
        [
            "unknown words",
            _percent(words["mean"]),
            _percent(words["expected"]),
            _mark(words),
            MEANINGS["unknown_words"],
        ],
        ["best label", _percent(best["mean"]), _percent(best["expected"]), _mark(best), MEANINGS["top_probability"]],
    ]
    if figures["n_labeled"]:
        gap = f"{_percent(calibration['by_chance'])} by chance"
        name = f"ECE@5, {figures['n_labeled']:,} documents"
        rows.append([name, _percent(calibration["ECE@5"]), gap, _mark(calibration), MEANINGS["calibration"]])
    title = f"{figures['n']:,} documents, compared with {figures['reference']}"
    headings = ["", "%", "expected", "", "what it is"]
    parts = [filled_table(title, headings, rows, left=len(headings))]
    labels = figures["labels"]
    if labels["n_tested"]:
        changed = f"{labels['n_changed']:,} of {labels['n_tested']:,} labels changed"
        cells = [
            [each["label"], *(_percent(each[key]) for key in ("suggested", "expected", "before")), _p(each["p"])]
            for each in labels["changed"]
        ]
        if cells:
            columns = ["label", "suggested", "expected", "before", "p"]
            how = "% of the documents: suggested with p >= 0.5, expected by the probabilities, and before"
            parts.append(filled_table(f"{changed}; {how}", columns, cells))
        else:
            parts.append(Group(plain(f"{changed} by more than chance"), plain("")))
    return Group(*parts, plain(figures["verdict"], "bold"))


def _percent(value: float | None) -> str:
    return NOT_KNOWN if value is None else f"{value:.2f}"


def _mark(figure: Mapping[str, Any]) -> str:
    return "changed" if figure["changed"] else ""


def _p(value: float) -> str:
    return f"< {SMALLEST:g}" if value < SMALLEST else f"{value:.4f}"
