"""Commands that train and measure: train, evaluate, compare."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from labelspace.cli.arguments import (
    Consistent,
    DataPath,
    FeaturesOption,
    InputColumns,
    Json,
    Ks,
    ModelPath,
    OutputColumns,
    Seed,
    Set,
    source_name,
)
from labelspace.cli.console import console, print_json, progress, say


def train(
    data: DataPath,
    method: Annotated[str | None, typer.Option("--method", help="See `labelspace methods`.")] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="MODEL", help="Default: runs/DATA-METHOD.")] = None,
    features: FeaturesOption = None,
    inputs: InputColumns = None,
    outputs: OutputColumns = None,
    settings: Set = None,
    seed: Seed = 0,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Keep checkpoints here: an interrupted training resumes when run again (glas, secseq, mlc2seq, text2text).",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Train a model on DATA and save it."""
    from labelspace import experiment, store
    from labelspace.cli.options import make_recipe
    from labelspace.data.columns import parse_columns
    from labelspace.data.source import open_source

    columns = parse_columns(inputs, outputs)
    recipe = make_recipe(method, settings, features, seed)
    out = out or Path("runs") / f"{source_name(data)}-{recipe.method}"
    store.check_writable(out)  # before the work, not after it
    with progress(quiet=as_json) as report, experiment.timed() as taken:
        tagger = experiment.train(open_source(data, columns), recipe, report, checkpoint)
    tagger.save(out)
    size = experiment.megabytes(out)
    summary: dict[str, Any] = {
        "model": str(out),
        "method": recipe.method,
        "n": tagger.labels_.n_documents,
        "n_labels": len(tagger.labels_),
        "n_features": tagger.model.n_features_,
        "train_seconds": round(taken.wall, 3),
        "train_cpu_seconds": round(taken.cpu, 3),
        "model_mb": size,
        "report": tagger.model.report(),
    }
    if as_json:
        print_json(summary)
        return
    say(
        f"{recipe.method} trained on {summary['n']:,} documents and {summary['n_labels']:,} labels "
        f"in {taken.wall:.1f} s ({taken.cpu:.1f} CPU s)"
    )
    for key, value in summary["report"].items():
        if isinstance(value, (int, float)):
            shown = f"{value:g}" if isinstance(value, float) else f"{value:,}"
            shown = {True: "yes", False: "no"}[value] if isinstance(value, bool) else shown
            say(f"  {key.replace('_', ' ')}: {shown}")
    say(f"saved: {out} ({size:.1f} MB)")


def evaluate(
    model: ModelPath,
    data: DataPath,
    k: Ks = "1,3,5",
    propensity_from: Annotated[
        Literal["train", "test"], typer.Option(help="train, as everyone does, or test, as GLaS's authors do.")
    ] = "train",
    propensity_preset: Annotated[
        str, typer.Option(help="A and B of the propensities: default, wikipedia or amazon.")
    ] = "default",
    consistent: Consistent = False,
    as_json: Json = False,
) -> None:
    """Measure a model on the test documents of DATA (or on all of a file)."""
    from labelspace import experiment
    from labelspace.cli.options import parse_ks
    from labelspace.data.labels import HIERARCHY
    from labelspace.data.source import read_dataset, split_file
    from labelspace.errors import DataError
    from labelspace.report.tables import figures_report
    from labelspace.tagger import Tagger

    ks = parse_ks(k)
    tagger = Tagger.load(model)
    file = split_file(data, "test") if data.is_dir() else data
    if file is None:
        raise DataError(f"{data} must hold a test file, but has none; add test.* or name one file to evaluate on")
    known = tagger.labels_
    if (file.parent / HIERARCHY).exists():  # the data's goes before the model's
        known = replace(known, hierarchy=None)
    documents = read_dataset(file, known, tagger.columns_)
    figures = experiment.evaluate(tagger, documents, ks, propensity_from, propensity_preset, consistent)
    figures["model_mb"] = experiment.megabytes(model)
    if as_json:
        print_json(figures)
        return
    console().print(figures_report(figures))


def compare(
    data: DataPath,
    methods: Annotated[
        str, typer.Option("--methods", metavar="a,b,c", help="Comma-separated; see `labelspace methods`.")
    ],
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Default: runs/DATA-compare.")] = None,
    k: Ks = "1,3,5",
    features: FeaturesOption = None,
    inputs: InputColumns = None,
    outputs: OutputColumns = None,
    settings: Set = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Run several methods under one protocol: one table, one page with plots, each model saved."""
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
    with progress(quiet=as_json) as report:
        results = experiment.compare(open_source(data, columns), recipes, out, parse_ks(k), seed, report)
    (out / "report.html").write_text(comparison_page(results), encoding="utf-8")
    failed = [row for row in results["rows"] if "error" in row]
    if as_json:
        print_json(results)
    else:
        console().print(compare_table(results))
        for row in failed:
            say(f"{row['method']} failed: {row['error']}")
        say(f"written to {out}: results.json, results.csv, report.html (plots), models/")
    if len(failed) == len(results["rows"]):
        raise typer.Exit(2)
