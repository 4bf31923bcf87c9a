"""Commands that show what there is: map, tree, codes, methods."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from labelspace.cli.arguments import Json, ModelPath
from labelspace.cli.console import console, print_json, say


def draw_map(
    model: ModelPath,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The page to write.")] = Path("map.html"),
    as_json: Json = False,
) -> None:
    """Draw the labels of a hyperbolic model on the Poincaré disk: one page that opens offline."""
    from labelspace.data.files import writing_text
    from labelspace.models.capabilities import HasLabelPoints, require
    from labelspace.report.map import map_page, map_summary
    from labelspace.tagger import load

    tagger = load(model)
    points, labels = require(tagger.model, HasLabelPoints).label_points(), tagger.labels_
    page = map_page(points, labels, f"Labels of {model.resolve().name}")
    with writing_text(out) as file:
        file.write(page)
    summary = {"map": str(out), **map_summary(points, labels)}
    if as_json:
        print_json(summary)
        return
    told = "none" if summary["spearman"] is None else f"{summary['spearman']:+.3f}"
    say(f"{out}: {summary['n_labels']:,} labels, Spearman's correlation of norm and frequency: {told}")


def show_tree(
    model: ModelPath,
    form: Annotated[
        Literal["text", "newick", "json"],
        typer.Option("--format", help="text to read, newick for programs that draw trees, json for all others."),
    ] = "text",
    depth: Annotated[int, typer.Option("--depth", min=0, help="Levels below the root to draw; for text only.")] = 3,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Default: stdout.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the figures of the trees as one JSON object on stdout.")
    ] = False,
) -> None:
    """Show the tree of labels that a model learned, as text, Newick or JSON."""
    from labelspace.data.files import writing_text
    from labelspace.models.capabilities import HasLabelTree, require
    from labelspace.report.tree import forest, heading, tree_summary
    from labelspace.tagger import load

    tagger = load(model)
    trees, labels = require(tagger.model, HasLabelTree).label_trees(), tagger.labels_
    remedies = {"balance": "balance=always", "hierarchy": "hierarchy=learned"}
    remedy = next((remedies[name] for name in remedies if name in tagger.model.params), "tree=balanced")
    summaries = [tree_summary(nodes) for nodes in trees]
    heads = [heading(summary, place, len(trees), remedy) for place, summary in enumerate(summaries)]
    if out is not None:
        with writing_text(out) as file:
            file.write(forest(trees, labels, form, depth, heads))
    if as_json:
        print_json({"trees": summaries})
    elif out is not None:
        for head in heads:
            say(f"{out}: {head}")
    else:
        say(forest(trees, labels, form, depth, heads).removesuffix("\n"))


def show_codes(
    model: ModelPath,
    tree: Annotated[int | None, typer.Option("--tree", min=1, help="Show only this one; default: all.")] = None,
    prefix: Annotated[str, typer.Option("--prefix", metavar="3,17", help="Show only codes that begin so.")] = "",
    limit: Annotated[int, typer.Option("--limit", min=0, help="Codes of a tree to show; 0 for all.")] = 50,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write all, whatever the limit, as TSV: tree, code, label."),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the figures, and with --prefix the codes, as one JSON object on stdout."),
    ] = False,
) -> None:
    """Show the codes that a model writes its labels as; labels that are alike begin with the same digits.

    A line is a code and its labels; digits that are those of the line above are left out. `labelspace tree` draws the
    same as a tree.
    """
    from labelspace.data.files import writing_text
    from labelspace.labels.codes import code_summary
    from labelspace.models.capabilities import HasLabelCodes, require
    from labelspace.report.codes import chosen, codes_json, codes_text, codes_tsv, heading, read_prefix
    from labelspace.tagger import load

    tagger = load(model)
    sets, labels = require(tagger.model, HasLabelCodes).label_codes(), tagger.labels_
    places, begin = chosen(tree, len(sets)), read_prefix(prefix, sets[0])
    summaries = {place: {"tree": place + 1, **code_summary(sets[place])} for place in places}
    heads = {place: heading(summaries[place], len(sets)) for place in places}
    if out is not None:
        with writing_text(out) as file:
            file.writelines(codes_tsv({place: sets[place] for place in places}, labels, begin))
    if as_json:
        listed = {place: {"listed": codes_json(sets[place], labels, begin)} if begin else {} for place in places}
        print_json({"codes": [{**summaries[place], **listed[place]} for place in places]})
    elif out is not None:
        for head in heads.values():
            say(f"{out}: {head}")
    else:
        say("\n\n".join(f"{heads[place]}\n{codes_text(sets[place], labels, begin, limit)}" for place in places))


def methods(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Show this method with its parameters.")] = None,
    as_json: Json = False,
) -> None:
    """List the methods: name, paper, when to choose it; or one method with its parameters."""
    from labelspace.models import registry
    from labelspace.report.parameters import method_json, parameters_table
    from labelspace.report.tables import methods_table

    if name is not None:
        method = registry.method(name)
        if as_json:
            print_json(method_json(method))
            return
        say(f"{name}: {method.title}")
        say(f"Choose it when {method.choose_when}. Details: docs/methods/{name}.md")
        console().print(parameters_table(method))
        return
    known = registry.methods()
    if as_json:
        rows = [
            {"name": n, "title": c.title, "choose_when": c.choose_when, "defaults": c.defaults()}
            for n, c in known.items()
        ]
        print_json({"default": registry.DEFAULT, "methods": rows})
        return
    console().print(methods_table(known, registry.DEFAULT))
