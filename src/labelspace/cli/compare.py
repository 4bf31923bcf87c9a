"""The command compare."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from typer import Option

from labelspace.cli.arguments import DataPath, Json, Ks, OptionGroup, Reading, parse_ks, source_name
from labelspace.cli.cluster import Cluster, cluster_executor
from labelspace.cli.console import console, print_json, print_line, progress, write_page
from labelspace.cli.notes import note, note_figures, note_label_files
from labelspace.cli.recipes import Features, Seed, Set, compared_recipes

if TYPE_CHECKING:
    from collections.abc import Mapping


ALL = "all"


class _MethodOptions(NamedTuple):
    features: Features = None
    settings: Set = None
    seed: Seed = 0


MethodSettings = Annotated[_MethodOptions, Option(parser=OptionGroup.of(_MethodOptions))]


def compare(
    data: DataPath,
    methods: Annotated[
        str,
        Option(
            metavar="a,b,c|all",
            help="Comma-separated methods; `labelspace methods` lists them. all: those that can run on these data.",
        ),
    ],
    seeds: Annotated[
        str | None,
        Option(
            metavar="0,1,2",
            help="Train each method once per seed, for means and deviations. Default: once, with --seed.",
        ),
    ] = None,
    out: Annotated[Path | None, Option(metavar="FOLDER", help="Folder to save to. Default: runs/DATA-compare.")] = None,
    k: Ks = "1,3,5",
    *,
    method_options: MethodSettings,
    cluster: Cluster,
    as_json: Json = False,
    reading: Reading,
) -> None:
    """Train and evaluate several methods on the same split; saves a table, a page with plots, and the models.

    Each method runs in a process of its own, with --cluster on a machine to
    itself; times are taken after a warm-up.
    A star marks the best method of a metric and those that are not
    significantly worse on the test documents. Exit code 2 if a method failed.
    """
    from labelspace import experiment
    from labelspace.data.source import open_source
    from labelspace.report.comparison.page import comparison_page
    from labelspace.report.comparison.view import compare_table

    names = parse_methods(methods)
    several = None if seeds is None else parse_seeds(seeds)
    features, settings, seed = method_options
    recipes = compared_recipes(names, settings, features, seed)
    takes_all = methods.strip() == ALL
    out = out or Path("runs") / f"{source_name(data)}-compare"
    source = open_source(data, options=reading)
    ks = parse_ks(k)
    if not takes_all:
        experiment.check_comparison(recipes, out, several)
    if not as_json:
        note_label_files(source.train_path, reading.columns)
        if (out / "results.json").exists():
            note(f"replaces the comparison at {out}")
    with cluster_executor(*cluster, quiet=as_json) as executor, progress(quiet=as_json) as report:
        results = experiment.compare(
            source,
            recipes,
            out,
            ks=ks,
            seed=seed,
            seeds=several,
            only_runnable=takes_all,
            progress=report,
            executor=executor,
        )
    write_page(out / "report.html", comparison_page(results))
    if as_json:
        print_json(results)
    else:
        note_comparison(results)
        console().print(compare_table(results))
        for row in results["rows"]:
            if "error" in row:
                print_line(f"{row['method']} failed: {row['error']}")
        print_line(f"saved to {out}: results.json, results.csv, report.html (plots), models/")
    if any("error" in row for row in results["rows"]):
        raise typer.Exit(2)


def parse_methods(text: str) -> list[str]:
    """Return the named methods, each once; raise for an unknown one."""
    from labelspace.errors import ParameterError
    from labelspace.models.registry import METHODS, method

    if text.strip() == ALL:
        return list(METHODS)
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise ParameterError("--methods must name at least one method, but is empty; write --methods neighbors,popular")
    if ALL in names:
        raise ParameterError(f"--methods must be names or {ALL} alone, but is {text!r}; leave one of them out")
    for name in names:
        method(name)
    return names


def parse_seeds(text: str) -> tuple[int, ...]:
    """Return the numbers in text such as '0,1,2'.

    >>> parse_seeds("0,1, 2")
    (0, 1, 2)
    """
    from labelspace.errors import ParameterError

    parts = [part.strip() for part in text.split(",")]
    seeds = tuple(int(part) for part in parts if part.isascii() and part.isdigit())
    if len(seeds) < len(parts) or len(set(seeds)) < len(seeds) or max(seeds) >= 2**32:
        rule = "--seeds must be different integers from 0 to 4294967295 separated by commas"
        raise ParameterError(f"{rule}, but is {text!r}; write for example 0,1,2")
    return seeds


def note_comparison(results: "Mapping[str, Any]") -> None:
    """Say on stderr what the table does not."""
    rows = [row for row in results["rows"] if "error" not in row]
    for method, reason in results["left_out"].items():
        note(f"left out: {method}, since {reason}")
    note_figures(rows[0] if rows else {})
    once = [row["method"] for row in rows if len(row["seeds"]) < len(results["seeds"] or ())]
    if once:
        note(f"trained once, since nothing is drawn at random: {', '.join(once)}")
    compiled = [row["method"] for row in rows if row.get("compile_seconds")]
    if compiled:
        note(f"the training time of {', '.join(compiled)} includes compiling kernels, once on a machine; run again")
