"""The page of a comparison; it works offline, and its plots are drawn before any script runs."""

from collections.abc import Mapping
from html import escape
from typing import Any

from labelspace.estimator.parameter_constraints import shown
from labelspace.report.comparison.plots import by_frequency, dot_plots, reliability, trade_off, trade_off_data
from labelspace.report.comparison.tables import caption, differences, figures_table
from labelspace.report.comparison.view import ComparisonView, figure, title_of
from labelspace.report.page import asset, html_page
from labelspace.report.terminal import json_text


def comparison_page(results: Mapping[str, Any]) -> str:
    """The page of the results of ``experiment.compare``.

    >>> row = {"method": "popular", "P@1": 12.5, "train_cpu_seconds": 0.1}
    >>> page = comparison_page({"data": "D", "n_train": 9, "n_test": 3, "n_labels": 2, "test": "x", "rows": [row]})
    >>> "popular</th>" in page and "12.50" in page
    True
    """
    view = ComparisonView(results)
    parts = [_header(view)]
    if view.rows:
        parts += [_bests(view), f"<section><h2>All figures</h2>{figures_table(view)}{caption(view)}</section>"]
    parts += [f"<p class='failed'>{escape(row['method'])} failed: {escape(row['error'])}</p>" for row in view.failed]
    data: dict[str, Any] = {}
    if view.rows and view.metrics:
        parts.append(dot_plots(view))
        if view.costs:
            data = trade_off_data(view)
            parts.append(f"<div class='pair'>{trade_off(view)}{by_frequency(view)}</div>")
        parts += [f"<div class='pair'>{differences(view)}{reliability(view)}</div>"]
    parts.append(_protocol(view))
    # Safe in a script element: only ``<`` could end it.
    embedded = json_text(data, separators=(",", ":")).replace("<", "\\u003c")
    parts.append(f"<script type='application/json' id='data'>{embedded}</script>")
    title = f"labelspace: methods compared on {results['data']}"
    return html_page(title, ["<main>", *parts, "</main>"], asset("comparison/page.css"), asset("comparison/page.js"))


def _header(view: ComparisonView) -> str:
    results = view.results
    n = len(view.rows)
    sizes = (
        f"{results['n_train']:,} training and {results['n_test']:,} test documents ({results['test']}), "
        f"{results['n_labels']:,} labels"
    )
    seeds = results.get("seeds")
    trained = f", {len(seeds)} seeds each" if seeds and len(seeds) > 1 else ""
    return (
        f"<header><p class='brand'>labelspace compare</p><h1><bdi>{escape(results['data'])}</bdi></h1>"
        f"<p>{n} method{'' if n == 1 else 's'} compared{trained}. {escape(sizes)}.</p></header>"
    )


def _bests(view: ComparisonView) -> str:
    """The best method of each main metric, and those not significantly worse."""
    tiles = ""
    for key in view.main_metrics:
        best = max((row for row in view.rows if row.get(key) is not None), key=lambda row: row[key])
        others = view.tests.get(key, {"others": {}})["others"]
        equal = [name for name, found in others.items() if not found["significant"]]
        said = f"not significantly worse: {', '.join(equal)}" if equal else ""
        said = said or ("significantly better than all others" if others else "")
        tiles += (
            f"<li style='--c:{view.color(best)}'><span class='tile-title'>{escape(title_of(key))}</span>"
            f"<span class='tile-value'>{figure(best, key)}<small> %</small></span>"
            f"<span class='tile-name'>{escape(best['method'])}</span><small>{escape(said)}</small></li>"
        )
    return f"<ul class='tiles' aria-label='Best methods'>{tiles}</ul>"


def _protocol(view: ComparisonView) -> str:
    """How the figures were made."""
    said = [
        "Each method ran in a process of its own, one after the other, after a warm-up that compiled its kernels. "
        "Training times are without the features of the texts. Nothing was fitted after the test documents were read."
    ]
    memory = [row["peak_memory_mb"] for row in view.rows if "peak_memory_mb" in row]
    if memory:
        said.append(
            "Peak memory is the most that the process of a method had, with Python, all libraries and the documents; "
            f"nothing is subtracted, and the smallest here is {min(memory):,.0f} MB."
        )
    once = [row["method"] for row in view.rows if len(row.get("seeds", ())) < len(view.results.get("seeds") or ())]
    if once:
        said.append(f"Trained once, since nothing is drawn at random: {', '.join(once)}.")
    said += [f"Left out: {name}, since {why}." for name, why in view.results.get("left_out", {}).items()]
    said += [
        f"Settings of {row['method']}: {', '.join(f'{key}={shown(value)}' for key, value in row['params'].items())}."
        for row in view.rows if row.get("params")
    ]  # fmt: skip
    listed = "".join(f"<li>{escape(line)}</li>" for line in said)
    return f"<footer><h2>How this was measured</h2><ul>{listed}</ul></footer>"
