"""Commands that show what there is: map, methods."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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
    from labelspace.report.map import map_page, map_summary
    from labelspace.tagger import load
    from labelspace.types import LabelSpace

    loaded = load(model)
    points = getattr(loaded, "model", loaded).label_points()  # a tagger holds a model
    labels = loaded.labels_ or LabelSpace.numbered(len(points))
    page = map_page(points, labels, f"Labels of {model.resolve().name}")
    with writing_text(out) as file:
        file.write(page)
    summary = {"map": str(out), **map_summary(points, labels)}
    if as_json:
        print_json(summary)
        return
    told = "none" if summary["spearman"] is None else f"{summary['spearman']:+.3f}"
    say(f"{out}: {summary['n_labels']:,} labels, Spearman's correlation of norm and frequency: {told}")


def methods(as_json: Json = False) -> None:
    """List the methods: name, paper, when to choose it."""
    from labelspace.models import registry
    from labelspace.report.tables import methods_table

    known = registry.methods()
    if as_json:
        rows = [
            {"name": n, "title": c.title, "choose_when": c.choose_when, "defaults": c.defaults()}
            for n, c in known.items()
        ]
        print_json({"default": registry.DEFAULT, "methods": rows})
        return
    console().print(methods_table(known, registry.DEFAULT))
