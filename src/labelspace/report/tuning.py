"""A search of parameters as a table for the terminal, and as one HTML page that works offline."""

from collections.abc import Mapping, Sequence
from html import escape
from statistics import median
from typing import Any

from rich.console import Group

from labelspace.estimator.parameter_constraints import shown
from labelspace.experiment.tuning.results import shown_params
from labelspace.report.page import html_figure, html_page, html_table, paragraph
from labelspace.report.plot import Axis, Picture, circle, line, polyline
from labelspace.report.tables import add_row, plain_table, titled
from labelspace.report.terminal import shortened

N_SHOWN = 10  # trials of the table
N_PLOTS = 8  # parameters that are drawn, the most important
INSET = 12  # pixels between the frame of a plot and its outermost points
LONGEST_NAME = 14  # characters of a value below the axis
N_NAMED = 5  # parameters whose importance is said in a line
CAPTION = "Chosen on the validation documents, so a little too good; on test documents: labelspace evaluate."

STYLE = """
.trials td:last-child, .trials th:last-child { text-align: left; white-space: normal; min-width: 8rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; }
"""


def tuning_table(results: Mapping[str, Any]) -> Group:
    """Return a table of the best trials, with what they change."""
    table = plain_table(*headings(results))
    table.columns[-1].justify = "left"
    for trial in best_trials(results):
        add_row(table, *trial_cells(trial))
    return titled(title(results), table)


def tuning_lines(results: Mapping[str, Any]) -> list[str]:
    """Say what the search found: by how much the best is better, what matters, and how to train the best."""
    best = results["best"]
    command = [] if best is None else ["To train it on all training documents:", f"  {best['command']}"]
    return [line for line in (gain_line(results), importance_line(results), *command) if line]


def title(results: Mapping[str, Any]) -> str:
    """Say what was searched, and on which documents."""
    failed = f", {results['n_failed']} failed" if results["n_failed"] else ""
    return (
        f"{results['method']} on {results['data']}: {results['n_trials']} trials{failed}, "
        f"{results['n_train']:,} training and {results['n_validation']:,} validation documents "
        f"({results['validation']}), {results['cpu_seconds']:.0f} CPU s"
    )


def best_trials(results: Mapping[str, Any], n: int = N_SHOWN) -> list[Mapping[str, Any]]:
    """Return the n best trials, and the default if it is not among them.

    >>> trials = [{"trial": 0, "rank": 3}, {"trial": 1, "rank": 1}, {"trial": 2, "rank": None}, {"trial": 3, "rank": 2}]
    >>> [trial["trial"] for trial in best_trials({"trials": trials}, n=1)]
    [1, 0]
    """
    ranked = sorted((trial for trial in results["trials"] if trial["rank"]), key=lambda trial: trial["rank"])
    return ranked[:n] + [trial for trial in ranked[n:] if trial["trial"] == 0]


def headings(results: Mapping[str, Any]) -> list[str]:
    """Return the headings of ``trial_cells``."""
    return ["rank", results["metric"], "CPU s", "trial", "changed parameters"]


def trial_cells(trial: Mapping[str, Any]) -> list[str]:
    """Return rank, metric, costs and number of a trial, and what it changes.

    >>> trial_cells({"trial": 0, "rank": 2, "value": 51.234, "changed": {}, "cpu_seconds": 1.25})
    ['2', '51.23', '1.2', '0', '(the default)']
    """
    changed = shown_params(trial["changed"]) or "(the default)"
    return [str(trial["rank"]), f"{trial['value']:.2f}", f"{trial['cpu_seconds']:.1f}", str(trial["trial"]), changed]


def gain_line(results: Mapping[str, Any]) -> str:
    """Say by how much the best is better than the default.

    >>> gain_line({"metric": "P@1", "default": 50.0, "best": {"trial": 4, "value": 52.5, "gain": 2.5}})[:52]
    'Better than the default by 2.50: P@1 50.00 -> 52.50.'
    """
    best, metric = results["best"], results["metric"]
    if best is None:
        return "Every trial failed."
    if best["gain"] is None:
        return f"The default failed; the best has {metric} {best['value']:.2f}. {CAPTION}"
    if not best["gain"]:
        return f"No trial is better than the default, which has {metric} {results['default']:.2f}."
    change = f"{metric} {results['default']:.2f} -> {best['value']:.2f}"
    return f"Better than the default by {best['gain']:.2f}: {change}. {CAPTION}"


def importance_line(results: Mapping[str, Any]) -> str:
    """Name the most important parameters.

    >>> importance_line({"importance": {"C": 0.8, "tol": 0.2}})
    'Importance of parameters: C 80 %, tol 20 %.'
    """
    named = [f"{key} {100 * share:.0f} %" for key, share in list(results["importance"].items())[:N_NAMED]]
    return f"Importance of parameters: {', '.join(named)}." if named else ""


def tuning_page(results: Mapping[str, Any]) -> str:
    """Return the page of the results of ``experiment.tune``."""
    name = f"labelspace: {results['method']} tuned on {results['data']}"
    facts = [f"{title(results)}.", gain_line(results), importance_line(results)]
    parts = [f"<h1>{escape(name)}</h1>", *map(paragraph, filter(None, facts))]
    if results["best"] is not None:
        parts.append(f"<p>To train it on all training documents:</p><pre>{escape(results['best']['command'])}</pre>")
        parts += _plots(results)
        rows = [trial_cells(trial) for trial in best_trials(results, len(results["trials"]))]
        parts += [f"<h2>Trials</h2><div class='trials'>{html_table(headings(results), rows)}</div>"]
    for trial in results["trials"]:
        if "error" in trial:
            changed = shown_params(trial["changed"]) or "the default"
            parts.append(paragraph(f"Trial {trial['trial']} failed ({changed}): {trial['error']}"))
    searched = html_table(["parameter", "tried"], list(results["searched"].items()))
    parts += [f"<h2>What was searched</h2><div class='trials'>{searched}</div>"]
    fixed = shown_params(results["fixed"])
    parts += [paragraph(f"Fixed: {fixed}.")] if fixed else []
    return html_page(name, ["<main>", *parts, "</main>"], STYLE)


def _plots(results: Mapping[str, Any]) -> list[str]:
    metric, trials = results["metric"], results["trials"]
    said = (
        "Each point is a trial, the large one the best; the dashed line is the default. Hollow points at the lower "
        "edge are worse than it shows. The line through the first plot is the best so far."
    )
    keys = plotted(results)
    charts = [html_figure(f"{metric} by trial", trials_svg(trials, metric))]
    charts += [html_figure(key, parameter_svg(trials, key, results["ranges"][key], metric)) for key in keys]
    return [f"<h2>Plots</h2>{paragraph(said)}<div class='charts'>{''.join(charts)}</div>"]


def plotted(results: Mapping[str, Any]) -> Sequence[str]:
    """Return the parameters to draw: the important ones first, then those of the most trials."""
    used = {key: sum(key in trial["params"] for trial in results["trials"]) for key in results["ranges"]}
    ordered = sorted(used, key=lambda key: (-results["importance"].get(key, 0.0), -used[key]))
    return [key for key in ordered if used[key]][:N_PLOTS]


def trials_svg(trials: Sequence[Mapping[str, Any]], metric: str) -> str:
    """Return a plot of the metric of every trial, the best so far, and the default.

    >>> svg = trials_svg([{"trial": 0, "value": 50.0, "params": {}}, {"trial": 1, "value": None, "params": {}}], "P@1")
    >>> svg.count("<circle"), "polyline" in svg
    (1, True)
    """
    picture = Picture(Axis(0, max(len(trials) - 1, 1)), metric_axis(trials), "trial", metric, inset=INSET)
    steps: list[tuple[float, float]] = []
    best = 0.0
    for trial in trials:
        if trial["value"] is not None:
            x = picture.x(trial["trial"])
            steps += [(x, picture.y(best))] if steps else []
            best = max(best, trial["value"])
            steps.append((x, picture.y(best)))
    marks = polyline(steps) + _points(picture, trials, [trial["trial"] for trial in trials], metric)
    return picture.svg(marks, f"{metric} by trial")


def parameter_svg(trials: Sequence[Mapping[str, Any]], key: str, searched: Mapping[str, Any], metric: str) -> str:
    """Return a plot of the metric against a parameter; ``searched`` is its range, or its values.

    >>> trials = [{"trial": i, "value": 50.0 + i, "params": {"C": 0.1 + i}} for i in range(3)]
    >>> parameter_svg(trials, "C", {"low": 0.1, "high": 10, "log": True}, "P@1").count("<circle")
    3
    """
    drawn = [trial for trial in trials if key in trial["params"]]
    places = [trial["params"][key] for trial in drawn]
    values = searched.get("values")
    if values is None:
        low, high = searched["low"], searched["high"]
        across = Axis(low, high, searched["log"]) if low < high else Axis(low - 1, high + 1)
    else:
        names = map(shown, values)
        across = Axis.of_names([shortened(name, LONGEST_NAME) for name in names])
        known = [repr(value) for value in values]  # 1 is not true
        places = [known.index(repr(value)) for value in places]
    title = f"{key} (log)" if across.is_log else key
    picture = Picture(across, metric_axis(trials), title, metric, inset=INSET)
    return picture.svg(_points(picture, drawn, places, metric), f"{metric} by {title}")


def metric_axis(trials: Sequence[Mapping[str, Any]]) -> Axis:
    """Return an axis on which good trials differ visibly: the worst trials lie below it, at its lower end.

    >>> values = [51.0, 52.0, 51.5, 51.2, 3.0]
    >>> axis = metric_axis([{"value": value} for value in values])
    >>> 45 < axis.low < 51, axis.high > 52
    (True, True)
    """
    values = [trial["value"] for trial in trials if trial["value"] is not None] or [0.0]
    best, default = max(values), values[0]
    low = max(min(values), min(best - 3 * (best - median(values)), default))
    margin = max(0.08 * (best - low), 0.05)
    return Axis(max(low - margin, 0.0), best + margin)


def _points(picture: Picture, trials: Sequence[Mapping[str, Any]], places: Sequence[float], metric: str) -> str:
    """Return a point for each trial: hollow below the axis, larger for the best; and a line for the default."""
    best = max((trial["value"] for trial in trials if trial["value"] is not None), default=None)
    default, points = "", ""
    for trial, place in zip(trials, places, strict=True):
        value = trial["value"]
        if value is None:
            continue
        y = picture.y(value)
        if trial["trial"] == 0:
            default = line(picture.LEFT, y, picture.LEFT + picture.WIDTH, y, "dashed")
        kind = "point" if picture.up.holds(value) else "point hollow"
        title = f"trial {trial['trial']}: {metric} {value:.2f}"
        points += circle(picture.x(place), y, 6 if value == best else 3.5, kind, title)
    return default + points
