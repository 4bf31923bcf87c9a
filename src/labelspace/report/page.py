"""A comparison as one HTML page that works offline: table, differences with their test, charts of accuracy and cost."""

from collections.abc import Mapping, Sequence
from html import escape
from math import log10
from typing import Any

from labelspace.report.tables import COSTS, mark, star_caption

SHOWN = ("P", "nDCG", "PSP", "R", "coverage")
F1 = {"micro_f1": "micro F1", "macro_f1": "macro F1"}  # at the best threshold
COLORS = ("#3b6fb6", "#d0792b", "#3f9a6b", "#a3518f", "#8a7a2a", "#b5483f", "#5a6b78", "#6a5acd")
STYLE = """
:root { color-scheme: light dark; --ink: #1d2530; --soft: #66717f; --line: #d9dee5; --ground: #ffffff;
  --mark: #2f66b3; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --soft: #98a3b0; --line: #39424e; --ground: #171b21;
  --mark: #7aabf0; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground); margin: 2rem auto;
  max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; } p { color: var(--soft); }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .5rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } td.best { font-weight: 700; } td i { visibility: hidden; }
.charts { display: flex; flex-wrap: wrap; gap: 1.5rem; } svg { max-width: 100%; } svg text { fill: var(--ink);
  font: 12px system-ui, sans-serif; } svg .soft { fill: var(--soft); } svg line { stroke: var(--line); }
figure { margin: 0; flex: 1 1 20rem; max-width: 30rem; } h3 { font-size: 1rem; margin: .5rem 0; } svg { height: auto; }
svg .middle { text-anchor: middle; } svg .end { text-anchor: end; } svg .small { font-size: 10px; }
svg .bar, svg .count { fill: var(--mark); opacity: .25; } svg .point { fill: var(--mark); }
svg .curve { fill: none; stroke: var(--mark); stroke-width: 2; } svg .range { stroke: var(--mark); stroke-width: 1.5; }
svg .halo { paint-order: stroke; stroke: var(--ground); stroke-width: 4px; }
svg .dashed { stroke: var(--soft); stroke-dasharray: 4 4; }
"""


def comparison_page(results: Mapping[str, Any]) -> str:
    """The page of the results of ``experiment.compare``.

    >>> row = {"method": "popular", "P@1": 12.5, "train_cpu_seconds": 0.1}
    >>> page = comparison_page({"data": "D", "n_train": 9, "n_test": 3, "n_labels": 2, "test": "x", "rows": [row]})
    >>> "<td>popular</td>" in page and "12.50" in page
    True
    """
    rows = [row for row in results["rows"] if "error" not in row]
    failed = [row for row in results["rows"] if "error" in row]
    color = {row["method"]: COLORS[i % len(COLORS)] for i, row in enumerate(rows)}
    title = f"labelspace: methods compared on {results['data']}"
    sizes = (
        f"{results['n_train']:,} training and {results['n_test']:,} test documents ({results['test']}), "
        f"{results['n_labels']:,} labels. Figures in percent."
    )
    parts = [f"<h1>{escape(title)}</h1><p>{escape(sizes)}</p>", _table(rows, results)]
    parts += [f"<p>{escape(row['method'])} failed: {escape(row['error'])}</p>" for row in failed]
    parts += _differences(results)
    if rows:
        parts.append(f"<h2>Accuracy</h2><div class='charts'>{_metric_bars(rows, color)}</div>")
        parts.append(f"<h2>Accuracy against cost</h2>{_scatter(rows, color)}")
        parts.append(_by_frequency(rows, color))
    return html_page(title, parts)


def html_page(title: str, parts: Sequence[str]) -> str:
    """A page with a title and these parts, which are HTML."""
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{escape(title)}</title>"
        f"<meta name='viewport' content='width=device-width'><style>{STYLE}</style></head>"
        f"<body>{''.join(parts)}</body></html>\n"
    )


def html_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of texts; it scrolls where the page is narrow.

    >>> html_table(["", "P@1"], [["a & b", "50.00"]])
    "<div class='wide'><table><tr><th></th><th>P@1</th></tr><tr><td>a &amp; b</td><td>50.00</td></tr></table></div>"
    """
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<div class='wide'><table><tr>{head}</tr>{body}</table></div>"


def _differences(results: Mapping[str, Any]) -> list[str]:
    """How far each method is behind the best, by metric, with interval and p-value."""
    tests = results.get("paired_test", {}).get("metrics", {})
    rows = [
        [
            F1.get(metric, metric), test["best"], other, f"{found['difference']:.2f}",
            f"{found['interval'][0]:.2f} to {found['interval'][1]:.2f}", f"{found['p_holm']:.3f}",
            "yes" if found["significant"] else "no",
        ]
        for metric, test in tests.items() if metric.split("@")[0] in (*SHOWN, *F1)
        for other, found in test["others"].items()
    ]  # fmt: skip
    if not rows:
        return []
    said = (
        f"{star_caption(results)}. The same {results['paired_test']['n_resamples']:,} resamples of the test documents "
        "for all methods; a difference counts as significant where the p-value, corrected for the number of methods, "
        f"is below {results['paired_test']['significance']:g}."
    )
    headings = ["metric", "best", "other", "behind by", "95 % interval", "p (Holm)", "significant"]
    shown = f"<details><summary>Differences to the best method</summary>{html_table(headings, rows)}</details>"
    return [f"<p>{escape(said)}</p>", shown]


def _table(rows: Sequence[Mapping[str, Any]], results: Mapping[str, Any]) -> str:
    measured = (key for row in rows for key in row if key.split("@")[0] in SHOWN and "@" in key)
    keys = [*dict.fromkeys(measured), *(key for key in (*F1, *COSTS) if any(key in row for row in rows))]
    best = {key: (min if key in COSTS else max)(row[key] for row in rows if key in row) for key in keys}
    head = "".join(f"<th>{escape((F1 | COSTS).get(key, key))}</th>" for key in keys)
    body = ""
    for row in rows:
        marks = {key: mark(results, key, row["method"]).replace(" ", "<i>*</i>") for key in keys}
        cells = "".join(
            f"<td{' class=best' if row.get(key) == best[key] else ''}>{row[key]:.2f}{marks[key]}</td>"
            if key in row
            else "<td></td>"
            for key in keys
        )
        body += f"<tr><td>{escape(row['method'])}</td>{cells}</tr>"
    return f"<div class='wide'><table><tr><th>method</th>{head}</tr>{body}</table></div>"


def _metric_bars(rows: Sequence[Mapping[str, Any]], color: Mapping[str, str]) -> str:
    metrics = [key for key in rows[0] if key.split("@")[0] in ("P", "nDCG", "PSP") and "@" in key]
    last_k = metrics[-1].split("@")[1]
    keys = [metrics[0], *(key for key in metrics[1:] if key.split("@")[1] == last_k)]
    return "".join(_bars(key, {row["method"]: row[key] for row in rows}, color) for key in keys)


def _bars(title: str, values: Mapping[str, float], color: Mapping[str, str]) -> str:
    """Horizontal bars on one scale from 0 to 100."""
    height = 30 + 24 * len(values)
    bars = ""
    for i, (name, value) in enumerate(values.items()):
        y, width = 28 + 24 * i, 2.4 * max(value, 0.0)
        bars += (
            f"<text x='112' y='{y + 13}' text-anchor='end'>{escape(name)}</text>"
            f"<rect x='120' y='{y}' width='{width:.1f}' height='18' rx='2' fill='{color[name]}'/>"
            f"<text class='soft' x='{126 + width:.1f}' y='{y + 13}'>{value:.2f}</text>"
        )
    return (
        f"<svg role='img' aria-label='{escape(title)}' width='420' height='{height}' viewBox='0 0 420 {height}'>"
        f"<text x='120' y='16' font-weight='700'>{escape(title)}</text>{bars}</svg>"
    )


def _scatter(rows: Sequence[Mapping[str, Any]], color: Mapping[str, str]) -> str:
    """Precision against training CPU seconds, on a logarithmic scale."""
    metric = next(key for key in rows[0] if key.startswith("P@"))
    points = [(row["method"], max(row["train_cpu_seconds"], 1e-3), row[metric]) for row in rows]
    low = int(log10(min(cost for _, cost, _ in points)) - 1)
    high = int(log10(max(cost for _, cost, _ in points)) + 1)
    marks = ""
    for power in range(low, high + 1):
        x = 60 + 520 * (power - low) / max(high - low, 1)
        marks += f"<line x1='{x}' x2='{x}' y1='20' y2='240'/>"
        marks += f"<text class='soft' x='{x}' y='258' text-anchor='middle'>{10.0**power:g}</text>"
    for percent in range(0, 101, 25):
        y = 240 - 2.2 * percent
        marks += f"<line x1='60' x2='580' y1='{y}' y2='{y}'/>"
        marks += f"<text class='soft' x='52' y='{y + 4}' text-anchor='end'>{percent}</text>"
    for name, cost, value in points:
        x, y = 60 + 520 * (log10(cost) - low) / max(high - low, 1), 240 - 2.2 * value
        marks += f"<circle cx='{x:.1f}' cy='{y:.1f}' r='6' fill='{color[name]}'/>"
        marks += f"<text x='{x + 10:.1f}' y='{y + 4:.1f}'>{escape(name)}</text>"
    return (
        "<svg role='img' aria-label='accuracy against training time' width='680' height='285' viewBox='0 0 680 285'>"
        f"{marks}<text class='soft' x='320' y='280' text-anchor='middle'>training, CPU seconds</text>"
        f"<text class='soft' x='60' y='12'>{metric}</text></svg>"
    )


def _by_frequency(rows: Sequence[Mapping[str, Any]], color: Mapping[str, str]) -> str:
    """Recall of head, torso and tail labels."""
    measured = [row for row in rows if "by_frequency" in row]
    if not measured:
        return ""
    names = {"head": "over 100 documents", "torso": "26 to 100", "tail": "25 or fewer"}
    charts = "".join(
        _bars(f"{group}: {title}", {row["method"]: row["by_frequency"][group]["recall"] for row in measured}, color)
        for group, title in names.items()
        if all(group in row["by_frequency"] for row in measured)
    )
    return f"<h2>Recall by label frequency</h2><div class='charts'>{charts}</div>"
