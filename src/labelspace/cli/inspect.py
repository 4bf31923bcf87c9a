"""The commands info, map, tree, codes and methods."""

import sys
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from labelspace.cli.arguments import Json, ModelPath
from labelspace.cli.console import console, print_json, print_line
from labelspace.report.terminal import printable


def info(model: ModelPath, as_json: Json = False) -> None:
    """Show what a model is: its method and members, data, labels, features, figures and versions.

    The model itself is not loaded. README.md in its folder tells the same.
    """
    from labelspace import store
    from labelspace.report.tables import add_row, plain_table
    from labelspace.report.versions import versions_json
    from labelspace.tagger.description import describe, facts
    from labelspace.tagger.versions import history

    about = store.read_unreplaced(model, lambda: describe(model, store.read_manifest(model)))
    versions = versions_json(history(model))
    if as_json:
        print_json({"model": str(model), **about, "versions": versions})
        return
    [current] = [each["version"] for each in versions if each["is_current"]]
    kept = ", ".join(str(each["version"]) for each in versions if each["is_kept"]) or "none"
    table = plain_table("model", printable(str(model)), left=2)
    with store.refusing_damage(model):
        rows = facts(about)
    for row in [*rows, ("version", f"{current}; older ones that are kept: {kept}")]:
        add_row(table, *row)
    console().print(table)


def draw_map(
    model: ModelPath,
    table: Annotated[
        bool, Option(help="Print label, norm and frequency as TSV instead, the smallest norm first.")
    ] = False,
    out: Annotated[
        Path | None, Option(metavar="FILE", help="File to write. Default: map.html; with --table stdout.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Draw the labels of a hyperbolic model on the Poincaré disk, as an HTML page that works offline."""
    from labelspace.data.files import writing_text
    from labelspace.models.capabilities import HasLabelPoints, require
    from labelspace.report.map import map_page, map_summary, norm_table, norm_tsv
    from labelspace.tagger import load

    tagger = load(model)
    points, labels = require(tagger.model, HasLabelPoints).label_points(), tagger.labels_
    summary = map_summary(points, labels)
    rows = norm_table(points, labels) if table else []
    if table and out is None:
        if as_json:
            print_json({**summary, "n_documents": labels.n_documents, "labels": rows})
        else:
            sys.stdout.writelines(norm_tsv(rows))
        return
    out = out or Path("map.html")
    text = norm_tsv(rows) if table else [map_page(points, labels, f"Labels of {model.resolve().name}")]
    with writing_text(out) as file:
        file.writelines(text)
    if as_json:
        print_json({"table" if table else "map": str(out), **summary})
        return
    correlation = "undefined" if summary["spearman"] is None else f"{summary['spearman']:+.3f}"
    print_line(f"{out}: {summary['n_labels']:,} labels, Spearman's correlation of norm and frequency: {correlation}")


def show_tree(
    model: ModelPath,
    form: Annotated[
        Literal["text", "newick", "json"],
        Option("--format", help="text, newick (for programs that draw trees) or json."),
    ] = "text",
    depth: Annotated[int, Option(min=0, help="Levels below the root to draw, for text only.")] = 3,
    out: Annotated[Path | None, Option(metavar="FILE", help="File to write. Default: stdout.")] = None,
    as_json: Annotated[
        bool, Option("--json", help="Print the summary of the trees as one JSON object on stdout.")
    ] = False,
) -> None:
    """Show the label tree of a model, as text, Newick or JSON."""
    from labelspace.data.files import writing_text
    from labelspace.models.capabilities import HasLabelTree, require
    from labelspace.report.tree import forest, heading, tree_summary
    from labelspace.tagger import load

    tagger = load(model)
    trees, labels = require(tagger.model, HasLabelTree).label_trees(), tagger.labels_
    remedies = {"balance": "balance=always", "hierarchy": "hierarchy=learned"}
    remedy = next((remedies[name] for name in remedies if name in tagger.model.params), "tree=balanced")
    summaries = [tree_summary(nodes) for nodes in trees]
    headings = [heading(summary, index, len(trees), remedy) for index, summary in enumerate(summaries)]
    if out is not None:
        with writing_text(out) as file:
            file.write(forest(trees, labels, form, depth, headings))
    if as_json:
        print_json({"trees": summaries})
    elif out is not None:
        for line in headings:
            print(f"{printable(str(out))}: {line}")
    else:
        print(forest(trees, labels, form, depth, headings).removesuffix("\n"))


def show_codes(
    model: ModelPath,
    tree: Annotated[int | None, Option(min=1, help="Number of the tree to show, from 1. Default: all.")] = None,
    prefix: Annotated[str, Option(metavar="3,17", help="Show only codes that start with these digits.")] = "",
    limit: Annotated[int, Option(min=0, help="Maximum number of codes to show per tree; 0 for all.")] = 50,
    out: Annotated[Path | None, Option(metavar="FILE", help="Write all codes as TSV: tree, code, label.")] = None,
    as_json: Annotated[
        bool, Option("--json", help="Print the summary, and with --prefix the codes, as one JSON object on stdout.")
    ] = False,
) -> None:
    """Show the label codes of a model; similar labels share their first digits.

    Each line is a code and its labels. Leading digits equal to those of the
    line above are left blank. `labelspace tree` draws the codes as a tree.
    """
    from labelspace.data.files import writing_text
    from labelspace.labels.codes import code_summary
    from labelspace.models.capabilities import HasLabelCodes, require
    from labelspace.report.codes import codes_json, codes_text, codes_tsv, heading, parse_prefix, select_trees
    from labelspace.tagger import load

    tagger = load(model)
    sets, labels = require(tagger.model, HasLabelCodes).label_codes(), tagger.labels_
    selected, digits = select_trees(tree, len(sets)), parse_prefix(prefix, sets[0])
    summaries = {i: {"tree": i + 1, **code_summary(sets[i])} for i in selected}
    headings = {i: heading(summaries[i], len(sets)) for i in selected}
    if out is not None:
        with writing_text(out) as file:
            file.writelines(codes_tsv({i: sets[i] for i in selected}, labels, digits))
    if as_json:
        listed = {i: {"listed": codes_json(sets[i], labels, digits)} if digits else {} for i in selected}
        print_json({"codes": [{**summaries[i], **listed[i]} for i in selected]})
    elif out is not None:
        for line in headings.values():
            print(f"{printable(str(out))}: {line}")
    else:
        print("\n\n".join(f"{headings[i]}\n{codes_text(sets[i], labels, digits, limit)}" for i in selected))


def methods(
    name: Annotated[str | None, Argument(metavar="[NAME]", help="Show this method and its parameters.")] = None,
    as_json: Json = False,
) -> None:
    """List the methods, recommended ones first, or show one method and its parameters."""
    from labelspace.estimator.parameter_constraints import shown
    from labelspace.models import registry
    from labelspace.report.parameters import method_json, parameters_table
    from labelspace.report.tables import methods_report

    if name is not None:
        method = registry.method(name)
        if as_json:
            print_json(method_json(method))
            return
        print(f"{name}: {method.title}")
        print(f"Choose it when {method.choose_when}. Details: docs/methods/{name}.md")
        console().print(parameters_table(method))
        for preset, params in method.presets.items():
            listed = ", ".join(f"{key}={shown(value)}" for key, value in params.items())
            print(f"--preset {preset}: {listed or 'our defaults'}")
        return
    every = registry.methods()
    if as_json:
        rows = []
        for name, method in every.items():
            about = {"name": name, "title": method.title, "recommended": name in registry.RECOMMENDED}
            rows.append({**about, "choose_when": method.choose_when, "defaults": method.defaults()})
        print_json({"default": registry.DEFAULT, "methods": rows})
        return
    console().print(methods_report(every, registry.RECOMMENDED, registry.BASELINES))
