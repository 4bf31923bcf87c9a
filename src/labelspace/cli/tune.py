"""The command tune."""

from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from typer import Option

from labelspace.cli.arguments import DataPath, Json, OptionGroup, Reading, as_words, source_name
from labelspace.cli.cluster import Cluster, cluster_executor
from labelspace.cli.console import console, print_json, print_line, progress, write_page
from labelspace.cli.notes import note, note_documents, noting_interrupt, open_noted
from labelspace.cli.recipes import Features, Method, Seed, Set, make_limits, make_recipe


class SearchOptions(NamedTuple):
    """The options of what is searched, and for how long."""

    method: Method = None
    trials: Annotated[int, Option(min=1, help="Trials, with those that are done already.")] = 30
    metric: Annotated[str, Option(help="What to maximize on validation documents.")] = "nDCG@5"
    search: Annotated[
        list[str] | None,
        Option(
            metavar="KEY=RANGE",
            help="Search this: C=0.1:10:log, loss=bce,softmax, C for its own range, or all: what is searched without "
            "--search. Repeatable. Default: every parameter of the method that changes accuracy.",
        ),
    ] = None
    settings: Set = None
    budget: Annotated[
        str | None, Option(metavar="10m", help="CPU time of all trials, as 90s, 10m or 1h30m; then none begins.")
    ] = None


Search = Annotated[SearchOptions, Option(parser=OptionGroup.of(SearchOptions))]


def tune(
    data: DataPath,
    *,
    searching: Search,
    out: Annotated[
        Path | None, Option(metavar="FOLDER", help="Folder to save to. Default: runs/DATA-METHOD-tune.")
    ] = None,
    features: Features = None,
    seed: Seed = 0,
    parallel: Annotated[
        int | None,
        Option(
            min=1,
            help="Trials that are drawn at a time, before any of them is known. Default: 1, with --cluster 8.",
            show_default=False,
        ),
    ] = None,
    cluster: Cluster,
    as_json: Json = False,
    reading: Reading,
) -> None:
    """Search good parameters of a method; saves a table and a page with plots, and prints how to train the best.

    Trials are measured on dev.*, or on a seeded part of train.*; test.* is
    never read. After an interrupt, or for more trials, give the same command.
    """
    from labelspace import experiment
    from labelspace.report.tuning import tuning_lines, tuning_page, tuning_table

    method, trials, metric, search, settings, budget = searching
    recipe = make_recipe(method, settings, features, seed)
    searched = parse_search(search)
    limits = make_limits(budget)
    limits.check()
    out = out or Path("runs") / f"{source_name(data)}-{recipe.method}-tune"
    experiment.check_search(recipe, searched, metric, trials, out)
    source = open_noted(data, reading, as_json)
    with (
        cluster_executor(*cluster, quiet=as_json) as executor,
        noting_interrupt(f"the same command continues where this one stopped: finished trials are in {out}", out),
        progress(quiet=as_json) as report,
    ):
        results = experiment.tune(
            source, recipe, trials, out, search=searched, metric=metric, seed=seed, cpu_seconds=limits.cpu_seconds,
            progress=report, tell=(lambda line: None) if as_json else note, train_options=as_words(reading),
            inspect=None if as_json else note_documents, parallel=parallel, executor=executor,
        )  # fmt: skip
    write_page(out / "report.html", tuning_page(results))
    if as_json:
        print_json(results)
    else:
        console().print(tuning_table(results))
        for line in tuning_lines(results):  # as they are: a command that is wrapped cannot be copied
            print_line(line)
        print_line(f"saved to {out}: results.json, results.csv, report.html (plots)")
    if results["best"] is None:
        raise typer.Exit(2)


def parse_search(options: list[str] | None) -> dict[str, str | None] | None:
    """Return KEY=RANGE and KEY options as a dict; None without options."""
    parts = [option.partition("=") for option in options or []]
    return {key.strip(): value if equals else None for key, equals, value in parts} or None
