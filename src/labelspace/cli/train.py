"""The command train."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelspace.cli.arguments import (
    Best,
    DataPath,
    Fast,
    Features,
    Json,
    MaxLatencyMs,
    MaxModelMb,
    Optimize,
    Seed,
    Set,
    TimeBudget,
    source_name,
)
from labelspace.cli.cluster import ClusterOption, TaskMemory, cluster_executor
from labelspace.cli.console import print_json, print_line, progress
from labelspace.cli.notes import (
    model_at,
    note,
    note_documents,
    note_label_files,
    note_plan,
    note_preset,
    noting_resumption,
)
from labelspace.cli.option_groups import Reading
from labelspace.cli.training_cache import (
    CacheOption,
    MaxMemory,
    cache_summary,
    opened_cache,
    print_cache,
    showing_reading,
)

if TYPE_CHECKING:
    from labelspace.experiment import Plan, Recipe
    from labelspace.experiment.timing import Seconds
    from labelspace.tagger import Tagger


def train(
    data: DataPath,
    method: Annotated[
        str | None, typer.Option("--method", help="The method; `labelspace methods` lists them. Default: blend.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="MODEL", help="Folder to save to. Default: runs/DATA-METHOD.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option("--preset", help="Parameters by name, such as paper: the method as published; --set overrides."),
    ] = None,
    fast: Fast = False,
    best: Best = False,
    budget: TimeBudget = None,
    max_model_mb: MaxModelMb = None,
    max_latency_ms: MaxLatencyMs = None,
    optimize: Optimize = None,
    features: Features = None,
    settings: Set = None,
    seed: Seed = 0,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Save checkpoints here; an interrupted training resumes when run again. Not for all methods.",
        ),
    ] = None,
    keep_texts: Annotated[
        bool,
        typer.Option(
            "--keep-texts", help="Keep the training texts with the model, for `explain` to show similar ones."
        ),
    ] = False,
    cache: CacheOption = None,
    max_memory: MaxMemory = None,
    cluster: ClusterOption = None,
    task_memory: TaskMemory = None,
    force: Annotated[bool, typer.Option("--force", help="Replace --out even if it holds other files.")] = False,
    as_json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Train a model on DATA and save it.

    A model that is there already is replaced, a folder with other files only with --force.
    """
    from labelspace import experiment, store
    from labelspace.cli.options import chosen_preset, make_limits, make_recipe
    from labelspace.data.source import open_source
    from labelspace.models.capabilities import TrainsInTasks, require

    limits = make_limits(budget, max_model_mb, max_latency_ms)
    settings = [*(settings or []), *([] if optimize is None else [f"optimize={optimize}"])]
    recipe = make_recipe(method, settings, features, seed, chosen_preset(preset, fast, best))
    recipe.check()
    experiment.check_plannable(recipe, limits, checkpoint, on_cluster=cluster is not None)
    if cluster is not None:
        require(recipe.tagger().model, TrainsInTasks)  # before a cluster is started
    out = out or Path("runs") / f"{source_name(data)}-{recipe.method}"
    store.check_writable(out, force)  # before training, not after it
    replaced = model_at(out)
    source = open_source(data, options=reading)
    if not as_json:
        note_preset(recipe)
        note_label_files(source.train_path, reading.columns)
        note_replaced(out, replaced)
    plans: list[Plan] = []

    def tell(plan: "Plan") -> None:
        plans.append(plan)
        if not as_json:
            note_plan(plan, is_first=len(plans) == 1)

    with opened_cache(cache, max_memory, recipe, quiet=as_json) as source.cache:
        with (
            cluster_executor(cluster, task_memory, quiet=as_json) as executor,
            noting_resumption(checkpoint),
            progress(quiet=as_json) as report,
            showing_reading(source.cache, report),
            experiment.timed() as taken,
        ):
            inspect = None if as_json else note_documents
            tagger = experiment.train(source, recipe, report, checkpoint, inspect, limits, tell, keep_texts, executor)
        if executor is not None:
            taken.cpu += executor.cpu_seconds
        tagger.save(out, force)
        summary = training_summary(tagger, recipe, taken, out) | cache_summary(source.cache)
    if plans:
        summary["plan"] = planned(plans)
    if as_json:
        print_json(summary if replaced is None else {**summary, "replaced": replaced})
    else:
        print_summary(summary)


def note_replaced(out: Path, replaced: str | None) -> None:
    """Say what is at the place of the new model: a model, or other files."""
    if replaced is not None:
        note(f"replaces the model at {out} ({replaced})")
    elif out.is_dir() and any(out.iterdir()):
        note(f"replaces {out} and the {len(list(out.iterdir())):,} files and folders in it")


def training_summary(tagger: "Tagger", recipe: "Recipe", taken: "Seconds", out: Path) -> dict[str, Any]:
    """What was trained, how long it took, and where it is."""
    from labelspace import experiment

    return {
        "model": str(out),
        "method": recipe.method,
        **({} if recipe.preset is None else {"preset": recipe.preset}),
        "n": tagger.labels_.n_documents,
        "n_labels": len(tagger.labels_),
        "n_features": tagger.model.n_features_,
        "train_seconds": round(taken.wall, 3),
        "train_cpu_seconds": round(taken.cpu, 3),
        "model_mb": experiment.megabytes(out),
        "report": tagger.model.report(),
    }


def planned(plans: "list[Plan]") -> dict[str, Any]:
    """The plan of a training with limits: what it was thought to cost, and all that was left out."""
    first = plans[0]
    return {
        **first.params(),
        "cpu_seconds": round(first.seconds, 3),
        "model_mb": round(first.mb, 3),
        "latency_ms": round(first.latency_ms, 3),
        "left_out": {name: reason for plan in plans for name, reason in plan.left_out.items()},
    }


def print_summary(summary: dict[str, Any]) -> None:
    """Print what was trained, what the method has to tell, and where it is."""
    print(
        f"{summary['method']} trained on {summary['n']:,} documents and {summary['n_labels']:,} labels "
        f"in {summary['train_seconds']:.1f} s ({summary['train_cpu_seconds']:.1f} CPU s)"
    )
    for key, value in summary["report"].items():
        if isinstance(value, (int, float, str)):
            shown = f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else value
            shown = {True: "yes", False: "no"}[value] if isinstance(value, bool) else shown
            print(f"  {key.replace('_', ' ')}: {shown}")
    if "cache" in summary:
        print_cache(summary["cache"])
    print_line(f"saved: {summary['model']} ({summary['model_mb']:.1f} MB)")
