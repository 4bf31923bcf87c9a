"""The command reproduce."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from typer import Argument, Option

from labelspace.cli.arguments import Json, OptionGroup, Reading, source_name
from labelspace.cli.cluster import Cluster, cluster_executor
from labelspace.cli.console import console, print_json, print_line, progress, write_page
from labelspace.cli.notes import note, open_noted
from labelspace.cli.recipes import compared_recipes

if TYPE_CHECKING:
    from labelspace.experiment import Recipe
    from labelspace.experiment.reproduce import Reproduction
    from labelspace.experiment.reproduce.published import PublishedTable

LIST = "list"


class RunOptions(NamedTuple):
    """The options of what is run."""

    rows: Annotated[
        str | None, Option(metavar="PATTERN", help="Rows to run: a part of their label, or with * and ?.")
    ] = None
    seeds: Annotated[int, Option(min=1, help="Number of runs of each row, with seeds 0, 1, ...")] = 3
    name: Annotated[
        str | None, Option(help="The published data set to compare with. Default: the one named like DATA.")
    ] = None
    settings: Annotated[
        list[str] | None,
        Option("--set", metavar="METHOD.KEY=VALUE", help="Set a parameter of the rows of a method. Repeatable."),
    ] = None


Runs = Annotated[RunOptions, Option(parser=OptionGroup.of(RunOptions))]


def reproduce(
    table: Annotated[str, Argument(metavar="TABLE", help="A published table, or list: all of them.")],
    data: Annotated[
        Path | None,
        Argument(metavar="DATA", help="A folder with train.* (and test.*, dev.*), or a file.", show_default=False),
    ] = None,
    out: Annotated[Path | None, Option(metavar="FOLDER", help="Folder to save to. Default: runs/DATA-TABLE.")] = None,
    *,
    running: Runs,
    cluster: Cluster,
    as_json: Json = False,
    reading: Reading,
) -> None:
    """Run the rows of a published table on DATA; prints our values next to the published ones, saves JSON and a page.

    Finished runs are kept: after an interrupt, give the same command.
    """
    if table == LIST:
        show_tables(as_json)
        return
    from labelspace.errors import ParameterError
    from labelspace.experiment.reproduce import Reproduction, plan
    from labelspace.experiment.reproduce.published import published_dataset, published_table

    rows, seeds, name, settings = running
    published = published_table(table)
    if data is None:
        raise ParameterError(f"DATA must be given, but is not; write labelspace reproduce {table} DATA")
    folder = source_name(data)
    dataset = published_dataset(published, folder if name is None else name)
    planned = plan(published, dataset or name, rows, given_recipes(published, settings) if settings else None)
    source = open_noted(data, reading, as_json)
    out = out or Path("runs") / f"{folder}-{table}"
    todo = Reproduction(published, planned, source, out, dataset, seeds)
    done = todo.read_runs()
    if not as_json:
        if name is None:
            note(on_name(folder, dataset, published.datasets))
        note_done(todo, done)
    with cluster_executor(*cluster, quiet=as_json) as executor, progress(quiet=as_json) as report:
        results = todo.run(report, executor)
    show_results(results, out, as_json)
    if all("error" in result for row, result in zip(planned, results["rows"], strict=True) if row.runs):
        raise typer.Exit(2)


def given_recipes(table: "PublishedTable", settings: list[str]) -> dict[str, "Recipe"]:
    """Return the recipes that --set changes, by method of the table."""
    from labelspace.models.registry import METHODS

    methods = dict.fromkeys(row.method for row in table.rows if row.method and row.method in METHODS)
    return {recipe.method: recipe for recipe in compared_recipes(list(methods), settings, None, 0)}


def note_done(todo: "Reproduction", done: Mapping[str, Any]) -> None:
    """Say how many runs need not be run again."""
    wanted = {key for row in todo.rows if row.runs for key in todo.runs(row)}
    if wanted & done.keys():
        note(f"{len(wanted & done.keys())} of {len(wanted)} runs are done already, in {todo.out}")


def show_results(results: dict[str, Any], out: Path, as_json: bool) -> None:
    """Save the page, and print the table or the JSON."""
    from labelspace.report.reproduction import reproduction_page, reproduction_table

    write_page(out / "report.html", reproduction_page(results))
    if as_json:
        print_json(results)
    else:
        console().print(reproduction_table(results))
        print_line(f"saved to {out}: results.json, report.html")


def show_tables(as_json: bool) -> None:
    """Print the tables that can be reproduced."""
    from labelspace.experiment.reproduce.published import published_tables
    from labelspace.report.reproduction import tables_list

    tables = published_tables()
    if not as_json:
        console().print(tables_list(tables))
        return
    listed = {}
    for name, table in tables.items():
        about = {"source": table.source, "title": table.paper["title"], "shows": table.shows, "note": table.note}
        rows = [{"row": row.label, "method": row.method, "preset": row.preset} for row in table.rows]
        columns = [column.key for column in table.columns]
        listed[name] = {**about, "columns": columns, "datasets": table.datasets, "rows": rows}
    print_json(listed)


def on_name(folder: str, dataset: str | None, datasets: list[str]) -> str:
    """Say which published data set is compared with, and why."""
    if dataset is not None:
        return f"compared with the published {dataset}, by the name of the data; --name compares with another"
    listed = ", ".join(datasets)
    alone = f"no published data set is named {folder}, so our values have nothing to compare with"
    return f"{alone}; --name compares with one of: {listed}"
