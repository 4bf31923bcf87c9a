"""Results as tables for the terminal; the command line prints them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from labelspace.report.terminal import printable, shortened
from labelspace.types import Dataset, LabelSpace


def plain_table(*columns: str, left: int = 1) -> Table:
    """Return an empty table; the first ``left`` columns are aligned left, the others right."""
    table = Table(box=box.SIMPLE_HEAD)
    for index, column in enumerate(columns):
        table.add_column(plain(column), justify="left" if index < left else "right", overflow="fold")
    return table


def plain(text: str, style: str = "") -> Text:
    """Return a cell or a line with this text; markup and control characters in it have no effect."""
    return Text.assemble((printable(text), style))


def add_row(table: Table, *cells: str) -> None:
    """Add a row of plain cells."""
    table.add_row(*map(plain, cells))


def filled_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> Group:
    """Return a table with these headings and rows below a title; see ``plain_table`` for ``left``."""
    table = plain_table(*headings, left=left)
    for row in rows:
        add_row(table, *row)
    return titled(title, table)


def titled(title: str, table: Table) -> Group:
    """Return a table below a title; as the title of the table, rich would wrap it to the width of the table."""
    return Group(plain(title, "bold"), table)


def methods_report(methods: Mapping[str, Any], recommended: Sequence[str], baselines: Sequence[str]) -> Group:
    """Return the names of methods and when to choose them, with the paper: the recommended ones first, then others.

    The first recommended method is the default.
    """
    literature = [name for name in methods if name not in recommended and name not in baselines]
    sections = {"recommended": recommended, "methods of the literature": literature, "baselines": baselines}
    parts = []
    for title, names in sections.items():
        defaults = {recommended[0]: f"{recommended[0]} (default)"}
        rows = ([defaults.get(name, name), methods[name].choose_when, methods[name].title] for name in names)
        parts.append(filled_table(title, ["method", "choose it when", "what it is"], rows, left=3))
    return Group(*parts)


def curve_table(curve: Sequence[Mapping[str, float]]) -> Group:
    """Return a table with a line per epoch and a column per metric."""
    names = list(dict.fromkeys(name for row in curve for name in row))
    rows = ([f"{row[name]:g}" if name in row else "" for name in names] for row in curve)
    return filled_table("after each epoch", names, rows)


def metric_rows(figures: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return the headings of the cutoff ranks, and a row per metric, with intervals if they were computed."""
    measured = [key.split("@") for key in figures if "@" in key]
    ks = sorted({k for _, k in measured}, key=int)
    names = dict.fromkeys(name for name, _ in measured)
    return [f"@{k}" for k in ks], [[name, *(with_interval(figures, f"{name}@{k}") for k in ks)] for name in names]


def with_interval(figures: Mapping[str, Any], key: str) -> str:
    """Return a figure in percent, with its interval if any; an empty text if the figure was not measured.

    >>> with_interval({"P@1": 71.25, "ci": {"P@1": [70.1, 72.31]}}, "P@1")
    '71.25 (70.1 to 72.3)'
    """
    if key not in figures:
        return ""
    low, high = figures.get("ci", {}).get(key, (None, None))
    return f"{figures[key]:.2f}" + ("" if low is None else f" ({low:.1f} to {high:.1f})")


def evaluated_on(figures: Mapping[str, Any]) -> str:
    """Say how many documents and labels the figures are for."""
    skipped = figures["n_without_labels"]
    how = "counted with a score of 0" if figures.get("unlabelled") == "count" else "left out"
    left_out = f", {skipped:,} without labels {how}" if skipped else ""
    intervals = "; in parentheses 95 % intervals" if "ci" in figures else ""
    return f"{figures['n']:,} documents{left_out}, {figures['n_labels']:,} labels{intervals}"


# Figures at a threshold on the score that are shown: heading, and key of the threshold.
THRESHOLD_ROWS = {
    "micro_f1": ("micro F1, at its best threshold", "micro_f1_threshold"),
    "macro_f1": ("macro F1, at its best threshold", "macro_f1_threshold"),
    "micro_f1_at_expected": ("micro F1, at the threshold of the probabilities", "expected_threshold"),
    "macro_f1_at_expected": ("macro F1, at the same threshold", "expected_threshold"),
    "coverage_at_precision_90": ("coverage at 90 % precision", "threshold_at_precision_90"),
    "coverage_at_precision_95": ("coverage at 95 % precision", "threshold_at_precision_95"),
}


def threshold_rows(figures: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return heading, percentage and threshold of the figures at thresholds that were measured.

    >>> threshold_rows({"micro_f1": 61.5, "micro_f1_threshold": 0.25})
    [('micro F1, at its best threshold', '61.50', '0.25')]
    """
    return [
        (title, with_interval(figures, key), "none" if figures[at] is None else f"{figures[at]:.4g}")
        for key, (title, at) in THRESHOLD_ROWS.items()
        if key in figures
    ]


# The columns of ``metrics.by_group`` that are shown, with their headings.
GROUP_COLUMNS = {
    "accuracy": "accuracy",
    "accuracy_with_na": "with NA",
    "best_micro_f1": "micro F1",
    "best_macro_f1": "macro F1",
    "tail_macro_f1": "tail F1",
    "n_labels": "labels",
    "n_occurrences": "occurrences",
    "n_na": "NA",
}
# More columns of ``metrics.by_group``, shown in a second table with their headings.
NA_COLUMNS = {
    "micro_f1_with_na": "micro F1",
    "macro_f1_with_na": "macro F1",
    "na_f1": "F1 of NA",
    "tail_micro_f1_with_na": "tail micro F1",
    "tail_macro_f1_with_na": "tail macro F1",
}


def figures_report(figures: Mapping[str, Any]) -> Group:
    """Return all tables of an evaluation, with prediction time and model size."""
    ranks, rows = metric_rows(figures)
    parts = [filled_table(evaluated_on(figures), ["%", *ranks], rows)]
    if "reranked" in figures:
        ranks, rows = metric_rows(figures["reranked"])
        counts = f"{figures['rerank']['reranked']:,} of {figures['rerank']['documents']:,}"
        parts.append(filled_table(f"the same with --rerank, which reordered {counts}", ["%", *ranks], rows))
    if at_thresholds := threshold_rows(figures):
        by_probabilities = ", or by the probabilities only" if "expected_threshold" in figures else ""
        title = f"labels whose score reaches a threshold, which is chosen on these same documents{by_probabilities}"
        parts.append(filled_table(title, ["", "%", "threshold"], at_thresholds))
    for title, groups, columns in figure_groups(figures):
        cells = ([group, *group_cells(values, columns)] for group, values in groups.items())
        parts.append(filled_table(title, ["", *columns.values()], cells))
    return Group(*parts, Text(cost_line(figures)))


FigureGroup = tuple[str, Mapping[str, Mapping[str, Any]], Mapping[str, str]]


def figure_groups(figures: Mapping[str, Any]) -> list[FigureGroup]:
    """Return the figures by groups of labels: title, groups, and the columns to show with their headings."""
    columns = next(iter(figures["by_frequency"].values()))
    headings = {column: column.removeprefix("n_").replace("_", " ").replace("f1", "F1") for column in columns}
    title = "by label frequency: head (over 100 training documents), torso (26 to 100), tail (at most 25)"
    parts: list[FigureGroup] = [(title, figures["by_frequency"], headings)]
    if "by_column" in figures:
        title = "by column of the table: its best-ranked label (NA: rows without a value)"
        parts.append((title, figures["by_column"], GROUP_COLUMNS))
        parts.append(("by column, over all rows: F1 with NA as a class", figures["by_column"], NA_COLUMNS))
    elif "by_level" in figures:
        deepest = f"accuracy at the deepest level: {figures['deepest_accuracy']:.2f} %"
        title = f"by level of the hierarchy: its best-ranked label (NA: documents without one); {deepest}"
        parts.append((title, figures["by_level"], GROUP_COLUMNS))
    return parts


def group_cells(values: Mapping[str, Any], columns: Mapping[str, str]) -> list[str]:
    """Return the cells of a group of labels; figures of tail labels are empty in a group without such labels."""
    undefined = [column for column in columns if column.startswith("tail_") and not values["n_tail"]]
    return ["" if column in undefined else cell(values[column]) for column in columns]


def cost_line(figures: Mapping[str, Any]) -> str:
    """Return time and size in one line."""
    return (
        f"prediction {figures['predict_seconds']:.2f} s; one document {figures['latency_ms_p50']:.2f} ms (median), "
        f"{figures['latency_ms_p99']:.2f} ms (p99); model {figures['model_mb']:.1f} MB"
    )


def tags_table(
    text: str,
    labels: Sequence[int],
    scores: Sequence[float],
    space: LabelSpace,
    no_tags: str = "no word of this text is known from training",
) -> Group:
    """Return a table with the tags of one document, and their notation and URI or first synonym if labels have these.

    A synonym that the name ends with is not shown. ``no_tags`` is the reason that is shown if there are no tags.
    """
    found = [label for label in labels if label >= 0]
    concepts = [space.concept(label) for label in found]
    columns = {
        "label": [space.names[label] for label in found],
        "synonym": [shortened(_first_synonym(space, label), 80) for label in found],
        "notation": [concept.notation or "" for concept in concepts],
        "URI": [concept.uri or "" for concept in concepts],
        "score": [f"{score:.3f}" for label, score in zip(labels, scores, strict=True) if label >= 0],
    }
    if any(columns["URI"]):
        del columns["synonym"]  # names of a vocabulary can be understood; codes cannot
    shown = {heading: cells for heading, cells in columns.items() if heading in ("label", "score") or any(cells)}
    rows = list(zip(*shown.values(), strict=True)) or [(f"(none: {no_tags})",)]
    return filled_table(shortened(text, 100), list(shown), rows, left=len(shown) - 1)


def shortlist_table(text: str, labels: Sequence[Mapping[str, Any]]) -> Group:
    """Return a table with all that is known of the labels of one document, given as in JSON."""
    columns = {
        "label": [label["label"] for label in labels],
        "notation": [label.get("notation", "") for label in labels],
        "URI": [label.get("id", "") for label in labels],
        "path": ["" if label.get("path") == label["label"] else label.get("path", "") for label in labels],
        "description": [shortened(label.get("description", ""), 120) for label in labels],
        "synonyms": [shortened(", ".join(label.get("synonyms", [])), 80) for label in labels],
        "score": [f"{label['score']:.3f}" for label in labels],
    }
    shown = {heading: cells for heading, cells in columns.items() if any(cells)}
    return filled_table(shortened(text, 100), list(shown), zip(*shown.values(), strict=True), left=len(shown) - 1)


def _first_synonym(space: LabelSpace, label: int) -> str:
    """Return the first synonym of a label, unless the name ends with it, as `column: value` of a table does."""
    synonyms = [] if space.synonyms is None else space.synonyms[label]
    return synonyms[0] if synonyms and not space.names[label].endswith(synonyms[0]) else ""


def stats_table(name: str, stats: Mapping[str, Any]) -> Group:
    """Return a table with the statistics of a data set."""
    parts = stats["parts"]
    keys = dict.fromkeys(key for part in parts.values() for key in part)
    rows = ([key.replace(" a ", " per "), *(cell(part.get(key, "")) for part in parts.values())] for key in keys)
    return filled_table(name, ["", *parts], rows)


def dataset_stats(documents: Dataset) -> dict[str, Any]:
    """Count documents, labels and features, and describe their distribution."""
    counts = documents.labels.counted(documents.Y).counts
    assert counts is not None
    per_document = documents.Y.indptr[1:] - documents.Y.indptr[:-1]
    used = counts[counts > 0]
    stats: dict[str, Any] = {
        "documents": len(documents),
        "labels": len(documents.labels),
        "labels in use": len(used),
        "labels a document": round(float(per_document.mean()), 3) if len(documents) else 0.0,
        "documents a used label": round(float(used.mean()), 3) if len(used) else 0.0,
        "documents without labels": int((per_document == 0).sum()),
        "labels with 1 document": int((used == 1).sum()),
        "labels with 25 or fewer": int((used <= 25).sum()),
    }
    if documents.X is not None:
        stats["features"] = documents.X.shape[1]
        stats |= {"features a document": round(documents.X.nnz / max(len(documents), 1), 2)}
    if documents.texts is not None:
        lengths = [text.count(" ") + 1 for text in documents.texts]
        stats |= {"words a document": round(sum(lengths) / max(len(lengths), 1), 1)}
        stats |= {"empty texts": sum(not text.strip() for text in documents.texts)}
    if documents.labels.hierarchy is not None:
        stats |= {"hierarchy edges": documents.labels.hierarchy.parents.nnz}
        stats |= {"hierarchy depth": int(documents.labels.hierarchy.levels.max()) + 1}
    return stats


def cell(value: object) -> str:
    """Return a value as the text of a cell.

    >>> cell(12345), cell(72.8222), cell(0.1347), cell("tail")
    ('12,345', '72.82', '0.135', 'tail')
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.2f}" if abs(value) >= 1 or value == 0 else f"{value:.3f}"
