"""A reproduced table: for the terminal, and as one HTML page that works offline."""

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from rich.console import Group
from rich.table import Table

from labelspace.experiment.reproduce import NOT_HERE
from labelspace.experiment.reproduce.published import PublishedTable
from labelspace.report.page import html_page, html_table, paragraph
from labelspace.report.tables import add_row, filled_table, plain, plain_table

DOUBTFUL = "*"  # next to a printed value with a known slip


def tables_list(tables: Mapping[str, PublishedTable]) -> Table:
    """Return a table with name, source, content and data sets of the published tables, and the rows that are here."""
    table = plain_table("table", "source", "what it shows", "rows here", "data sets", left=5)
    for name, published in tables.items():
        here = sum(row.method is not None for row in published.rows)
        datasets = ", ".join(published.datasets)
        add_row(table, name, published.source, published.shows, f"{here} of {len(published.rows)}", datasets)
    return table


def reproduction_table(results: Mapping[str, Any]) -> Group:
    """Return a table with a line per row of the paper: ours, the printed value and the difference."""
    table = filled_table(_title(results), _headings(results), _rows(results))
    return Group(table, *map(plain, notes(results)))


def reproduction_page(results: Mapping[str, Any]) -> str:
    """Return the page of the results of ``experiment.Reproduction``."""
    settings = [
        [row["row"], row["method"], row["preset"] or "", json.dumps(row["params"]), str(row["n_runs"])]
        for row in results["rows"]
        if "method" in row
    ]
    parts = [
        f"<h1>{escape(_title(results))}</h1>",
        paragraph(f"{results['title']}: {results['shows']}"),
        paragraph(_sizes(results)),
        html_table(_headings(results), _rows(results), [row["source"] for row in results["rows"]]),
        *map(paragraph, notes(results)),
        "<h2>What was run</h2>",
        html_table(["row", "method", "preset", "parameters", "runs"], settings),
    ]
    return html_page(f"labelspace: {_title(results)}", parts)


def notes(results: Mapping[str, Any]) -> list[str]:
    """Say what limits the values: what is compared, slips, sizes, and what was not run."""
    return [*_on_values(results), *_on_rows(results)]


def _on_values(results: Mapping[str, Any]) -> Iterator[str]:
    if results["note"]:
        yield results["note"]
    if results["unit"] != "percent" and any(is_printed for _, is_printed in _shown(results)):
        yield f"The paper prints {results['unit']}s, which are percentages here."
    for row in results["rows"]:
        for key, figure in row["figures"].items():
            if "slip" in figure:
                right = f" The difference is to {figure['corrected']}." if figure["corrected"] else ""
                yield f"{DOUBTFUL} {row['row']}, {key}: {figure['slip']}{right}"
    differ = different_sizes(results)
    if differ:
        yield f"These data are not {results['dataset']} of the paper: {differ}."
    ran = [row for row in results["rows"] if row["n_runs"]]
    unmeasured = [c["key"] for c in results["columns"] if all(row["figures"][c["key"]]["ours"] is None for row in ran)]
    if ran and unmeasured:
        yield f"Not measured on these data: {', '.join(unmeasured)}."


def _on_rows(results: Mapping[str, Any]) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for row in results["rows"]:
        if row["note"]:
            yield f"{row['row']}: {row['note']}"
        for state in ("skipped", "error"):
            if state in row:
                reasons.setdefault(f"{'failed' if state == 'error' else state}: {row[state]}", []).append(row["row"])
    yield from (f"{reason} ({'; '.join(rows)})" for reason, rows in reasons.items())


def different_sizes(results: Mapping[str, Any]) -> str:
    """Say by which sizes the data differ from the published data set; empty if by none.

    >>> different_sizes({"n_train": 10, "n_test": 5, "n_labels": 2, "published_sizes": {"n_train": 20, "n_test": None}})
    '10 training documents, not 20'
    """
    published = results["published_sizes"] or {}
    names = {"n_train": "training documents", "n_test": "test documents", "n_labels": "labels"}
    return ", ".join(
        f"{results[key]:,} {name}, not {published[key]:,}"
        for key, name in names.items()
        if key in results and published.get(key) is not None and published[key] != results[key]
    )


def _title(results: Mapping[str, Any]) -> str:
    beside = f", beside {results['dataset']} of the paper" if results["dataset"] else ""
    return f"{results['table']} ({results['source']}) on {results['data']}{beside}"


def _sizes(results: Mapping[str, Any]) -> str:
    if "n_train" not in results:
        return "Nothing was run."
    return (
        f"{results['n_train']:,} training and {results['n_test']:,} test documents ({results['test']}), "
        f"{results['n_labels']:,} labels. Mean and standard deviation over seeds (up to {results['seeds']}); "
        "metrics in percent, sizes in megabytes."
    )


def _shown(results: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield the columns, each with whether the paper prints a value in it."""
    for column in results["columns"]:
        yield column["key"], any(row["figures"][column["key"]].get("printed") for row in results["rows"])


def _headings(results: Mapping[str, Any]) -> list[str]:
    headings = ["row of the paper"]
    for key, is_printed in _shown(results):
        headings += [key, "paper", "diff"] if is_printed else [key]
    return headings


def _rows(results: Mapping[str, Any]) -> list[list[str]]:
    return [_cells(results, row) for row in results["rows"]]


def _cells(results: Mapping[str, Any], row: Mapping[str, Any]) -> list[str]:
    cells = [row["row"]]
    for key, is_printed in _shown(results):
        figure = row["figures"][key]
        cells.append(_ours(row, figure))
        if is_printed:
            printed = figure["printed"] or "-"
            if figure["printed"] and results["unit"] != "percent":
                printed = f"{figure['value']:.2f}"
            difference = "" if figure["difference"] is None else f"{figure['difference']:+.2f}"
            cells += [printed + DOUBTFUL * ("slip" in figure), difference]
    return cells


def _ours(row: Mapping[str, Any], figure: Mapping[str, Any]) -> str:
    if figure["ours"] is not None:
        return f"{figure['ours']:.2f}" + ("" if figure["std"] is None else f" ± {figure['std']:.2f}")
    if row["n_runs"]:
        return "-"
    if "skipped" in row:
        return NOT_HERE if row["skipped"] == NOT_HERE else "skipped"
    return "failed" if "error" in row else "not run"
