"""The command compare."""

from pathlib import Path
from typing import Annotated

import typer

from labelspace.cli.arguments import DataPath, Features, InputColumns, Json, Ks, OutputColumns, Seed, Set, source_name
from labelspace.cli.console import console, print_json, print_line, progress
from labelspace.cli.notes import note, note_figures, note_label_files


def compare(
    data: DataPath,
    methods: Annotated[
        str, typer.Option("--methods", metavar="a,b,c", help="Comma-separated methods; `labelspace methods` lists all.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FOLDER", help="Folder to save to. Default: runs/DATA-compare.")
    ] = None,
    k: Ks = "1,3,5",
    features: Features = None,
    inputs: InputColumns = None,
    outputs: OutputColumns = None,
    settings: Set = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Train and evaluate several methods on the same split; saves a table, a page with plots, and the models.

    Prediction is timed after a warm-up. A star marks the best method of a
    metric and those that are not significantly worse on the test documents.
    """
    from labelspace import experiment
    from labelspace.cli.options import compared_recipes, parse_ks
    from labelspace.data.columns import parse_columns
    from labelspace.data.source import open_source
    from labelspace.errors import ParameterError
    from labelspace.report.page import comparison_page
    from labelspace.report.tables import compare_table

    names = list(dict.fromkeys(name.strip() for name in methods.split(",") if name.strip()))
    if not names:
        raise ParameterError("--methods must name at least one method, but is empty; write --methods neighbors,popular")
    recipes, columns = compared_recipes(names, settings, features, seed), parse_columns(inputs, outputs)
    out = out or Path("runs") / f"{source_name(data)}-compare"
    source, ks = open_source(data, columns), parse_ks(k)
    experiment.check_comparison(recipes, out)
    if not as_json:
        note_label_files(source.train_path, columns)
        if (out / "results.json").exists():
            note(f"replaces the comparison at {out}")
    with progress(quiet=as_json) as report:
        results = experiment.compare(source, recipes, out, ks, seed, report)
    (out / "report.html").write_text(comparison_page(results), encoding="utf-8")
    failed = [row for row in results["rows"] if "error" in row]
    if as_json:
        print_json(results)
    else:
        console().print(compare_table(results))
        note_figures(next((row for row in results["rows"] if "error" not in row), {}))
        compiled = [row["method"] for row in results["rows"] if row.get("compile_seconds")]
        if compiled:
            note(f"the training time of {', '.join(compiled)} includes compiling kernels, once on a machine; run again")
        for row in failed:
            print_line(f"{row['method']} failed: {row['error']}")
        print_line(f"saved to {out}: results.json, results.csv, report.html (plots), models/")
    if len(failed) == len(results["rows"]):
        raise typer.Exit(2)
