"""The tables of the page: all figures, and the differences to the best method of each metric."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from labelspace.report.comparison.plots import difference_axis, difference_track
from labelspace.report.comparison.terminal import star_caption
from labelspace.report.comparison.view import ComparisonView, deviation, figure, title_of
from labelspace.report.plot import choice


def figures_table(view: ComparisonView) -> str:
    """All figures of all methods; its columns can be sorted, and the first one stays where it scrolls."""
    keys = [*view.metrics, *view.costs]
    best = {key: (min if key in view.costs else max)(_values(view, key)) for key in keys}
    head = "".join(_heading(key, "cost" if key in view.costs else "") for key in keys)
    body = "".join(_row(view, row, keys, best) for row in view.rows)
    body += "".join(_failed_row(row, len(keys)) for row in view.failed)
    first = "<th scope='col' class='first'><button type='button'>method</button></th>"
    return (
        "<div class='wide' role='region' aria-label='All figures' tabindex='0'><table class='sortable'>"
        f"<thead><tr>{first}{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _values(view: ComparisonView, key: str) -> list[float]:
    return [row[key] for row in view.rows if row.get(key) is not None]


def _heading(key: str, kind: str) -> str:
    return f"<th scope='col' class='{kind}'><button type='button'>{escape(title_of(key))}</button></th>"


def _row(view: ComparisonView, row: Mapping[str, Any], keys: Sequence[str], best: Mapping[str, float]) -> str:
    index = view.rows.index(row)
    name = _name(row["method"], f" style='--c:{view.color(row)}'")
    cells = "".join(_cell(view, row, key, best[key]) for key in keys)
    return f"<tr class='method' data-method='{index}'>{name}{cells}</tr>"


def _name(method: str, style: str = "") -> str:
    return f"<th scope='row' class='first' title='{escape(method)}'{style}>{escape(method)}</th>"


def _cell(view: ComparisonView, row: Mapping[str, Any], key: str, best: float) -> str:
    value = row.get(key)
    if value is None:
        return "<td></td>"
    star, around = view.star(key, row["method"]), deviation(row, key)
    shown = figure(row, key) + (f"<span class='star'>{star.strip()}</span>" if star else "")
    if value == best:
        shown = f"<b>{shown}</b>"
    kind = " class='starred'" if star else ""
    return f"<td{kind} data-value='{value:g}'>{shown}{f'<small>{around}</small>' if around else ''}</td>"


def _failed_row(row: Mapping[str, Any], n_cells: int) -> str:
    said = "<span class='failed'>failed, see below</span>"
    return f"<tr class='last'>{_name(row['method'])}<td class='reason' colspan='{n_cells}'>{said}</td></tr>"


def differences(view: ComparisonView) -> str:
    """By metric, how far each method is behind the best, with interval and p-value; a list chooses the metric."""
    keys = [key for key in (*view.main_metrics, *view.metrics) if key in view.tests]
    keys = list(dict.fromkeys(keys))
    if not keys:
        return ""
    paired = view.results["paired_test"]
    seeds = ", each the mean over the seeds" if any("runs" in row for row in view.rows) else ""
    said = (
        f"Paired bootstrap: the same {paired['n_resamples']:,} resamples of the test documents{seeds}, for all "
        "methods. Filled points differ significantly: the p-value, corrected for the number of methods (Holm), is "
        f"below {paired['significance']:g}. ◂ marks methods less than half as good as the best."
    )
    options = choice("data-shows='differences'", "Metric", {key: title_of(key) for key in keys})
    blocks = "".join(_differences(view, key) for key in keys)
    return (
        f"<section><h2>Differences to the best method</h2><p>{escape(said)}</p>"
        f"<div class='choices needs-script'>{options}</div>{blocks}</section>"
    )


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
    """A difference with its sign; a true minus.

    >>> signed(-0.184), signed(0.04), signed(0.0)
    ('−0.18', '+0.04', '0.00')
    """
    shown = f"{value:+.2f}".replace("-", "−")
    return shown[1:] if shown[1:] == "0.00" else shown


def caption(view: ComparisonView) -> str:
    """What the marks of the table say."""
    said = ["Bold: the best of a column."]
    if view.tests:
        said.append(f"{star_caption(view.results).replace('* the best', '*: the best', 1)}.")
    if any("runs" in row for row in view.rows):
        said.append("±: standard deviation over the seeds.")
    return f"<p class='caption'>{escape(' '.join(said))}</p>"
