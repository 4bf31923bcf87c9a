"""The page of a comparison; it works offline, and its plots are drawn before any script runs."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from labelspace.estimator.parameter_constraints import shown
from labelspace.report.comparison.plots import (
    by_frequency,
    difference_axis,
    difference_track,
    dot_plots,
    reliability,
    section,
    trade_off,
    trade_off_data,
)
from labelspace.report.comparison.view import ComparisonView, deviation, figure, title_of
from labelspace.report.page import asset, html_page
from labelspace.report.plot import choice
from labelspace.report.terminal import json_text


def comparison_page(results: Mapping[str, Any]) -> str:
    """Return the page of the results of ``experiment.compare``.

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
    """Return the best method of each main metric, and those not significantly worse."""
    tiles = ""
    for key in view.main_metrics:
        best = view.best(key)
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
    """Say how the figures were made."""
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
    for row in view.rows:
        if row.get("params"):
            settings = ", ".join(f"{key}={shown(value)}" for key, value in row["params"].items())
            said.append(f"Settings of {row['method']}: {settings}.")
    listed = "".join(f"<li>{escape(line)}</li>" for line in said)
    return f"<footer><h2>How this was measured</h2><ul>{listed}</ul></footer>"


def figures_table(view: ComparisonView) -> str:
    """Return a table of all figures, whose columns can be sorted, and whose first column stays when it scrolls."""
    keys = [*view.metrics, *view.costs]
    head = ""
    for key in keys:
        kind = "cost" if key in view.costs else ""
        head += f"<th scope='col' class='{kind}'><button type='button'>{escape(title_of(key))}</button></th>"
    body = "".join(_row(view, row, keys) for row in view.rows)
    body += "".join(_failed_row(row, len(keys)) for row in view.failed)
    first = "<th scope='col' class='first'><button type='button'>method</button></th>"
    return (
        "<div class='wide' role='region' aria-label='All figures' tabindex='0'><table class='sortable'>"
        f"<thead><tr>{first}{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(view: ComparisonView, row: Mapping[str, Any], keys: Sequence[str]) -> str:
    name = _name(row["method"], f" style='--c:{view.color(row)}'")
    cells = "".join(_cell(view, row, key) for key in keys)
    return f"<tr class='method' data-method='{view.rows.index(row)}'>{name}{cells}</tr>"


def _name(method: str, style: str = "") -> str:
    return f"<th scope='row' class='first' title='{escape(method)}'{style}>{escape(method)}</th>"


def _cell(view: ComparisonView, row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    if value is None:
        return "<td></td>"
    star, around = view.star(key, row["method"]), deviation(row, key)
    shown = figure(row, key) + (f"<span class='star'>{star.strip()}</span>" if star else "")
    if value == view.best(key)[key]:
        shown = f"<b>{shown}</b>"
    kind = " class='starred'" if star else ""
    return f"<td{kind} data-value='{value:g}'>{shown}{f'<small>{around}</small>' if around else ''}</td>"


def _failed_row(row: Mapping[str, Any], n_cells: int) -> str:
    said = "<span class='failed'>failed, see below</span>"
    return f"<tr class='last'>{_name(row['method'])}<td class='reason' colspan='{n_cells}'>{said}</td></tr>"


def differences(view: ComparisonView) -> str:
    """Show how far each method is behind the best, with interval and p-value; a list chooses the metric."""
    keys = [key for key in dict.fromkeys((*view.main_metrics, *view.metrics)) if key in view.tests]
    if not keys:
        return ""
    paired = view.results["paired_test"]
    seeds = ", each the mean over the seeds" if view.has_seeds else ""
    said = (
        f"Paired bootstrap: the same {paired['n_resamples']:,} resamples of the test documents{seeds}, for all "
        "methods. Filled points differ significantly: the p-value, corrected for the number of methods (Holm), is "
        f"below {paired['significance']:g}. ◂ marks methods less than half as good as the best."
    )
    options = choice("data-shows='differences'", "Metric", {key: title_of(key) for key in keys})
    blocks = "".join(_differences(view, key) for key in keys)
    return section("Differences to the best method", said, blocks, options)


def _differences(view: ComparisonView, key: str) -> str:
    test, values = view.tests[key], {row["method"]: row for row in view.rows}
    others = sorted(test["others"].items(), key=lambda item: item[1]["difference"])
    axis = difference_axis([found for _, found in others], values[test["best"]][key])
    rows = "".join(_difference(view, values[name], found, difference_track(found, axis)) for name, found in others)
    best = f"<b>{escape(test['best'])}</b> is best, with {values[test['best']][key]:.2f} %."
    headings = ("method", "", "difference", "95 % interval", "p (Holm)", "significant")
    head = "".join(f"<th scope='col'>{heading}</th>" if heading else "<td></td>" for heading in headings)
    title = escape(title_of(key))
    return (
        f"<div class='block' data-block='differences' data-key='{escape(key)}'><h3>{title}</h3>"
        f"<p>{best}</p><div class='wide' role='region' aria-label='Differences in {title}' tabindex='0'>"
        f"<table class='differences'><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></div>"
    )


def _difference(view: ComparisonView, row: Mapping[str, Any], found: Mapping[str, Any], track: str) -> str:
    index = view.rows.index(row)
    low, high = found["interval"]
    cells = [signed(-found["difference"]), f"{signed(-high)} to {signed(-low)}", f"{found['p_holm']:.3f}"]
    cells.append("yes" if found["significant"] else "no")
    name = f"<th scope='row'>{escape(row['method'])}</th><td class='plot'>{track}</td>"
    listed = "".join(f"<td>{cell}</td>" for cell in cells)
    return f"<tr class='method' data-method='{index}' style='--c:{view.color(row)}'>{name}{listed}</tr>"


def signed(value: float) -> str:
    """Return a difference with its sign, a true minus.

    >>> signed(-0.184), signed(0.04), signed(0.0)
    ('−0.18', '+0.04', '0.00')
    """
    shown = f"{value:+.2f}".replace("-", "−")
    return shown[1:] if shown[1:] == "0.00" else shown


def caption(view: ComparisonView) -> str:
    """Say what the marks of the table mean."""
    said = ["Bold: the best of a column."]
    if view.tests:
        said.append(f"{view.star_caption.replace('* the best', '*: the best', 1)}.")
    if view.has_seeds:
        said.append("±: standard deviation over the seeds.")
    return f"<p class='caption'>{escape(' '.join(said))}</p>"
