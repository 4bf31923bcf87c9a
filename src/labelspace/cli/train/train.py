"""The command train."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from labelspace.cli.arguments import DataPath, Json, Reading, source_name
from labelspace.cli.cluster import Cluster, cluster_executor
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
from labelspace.cli.recipes import Method, Training
from labelspace.cli.train.cache import Kept, cache_summary, opened_cache, print_cache, showing_reading

if TYPE_CHECKING:
    from labelspace.experiment import Plan, Recipe
    from labelspace.experiment.timing import Seconds
    from labelspace.tagger import Tagger


def train(
    data: DataPath,
    method: Method = None,
    out: Annotated[Path | None, Option(metavar="MODEL", help="Folder to save to. Default: runs/DATA-METHOD.")] = None,
    *,
    training: Training,
    kept: Kept,
    cluster: Cluster,
    force: Annotated[bool, Option("--force", help="Replace --out even if it holds other files.")] = False,
    as_json: Json = False,
    reading: Reading,
) -> None:
    """Train a model on DATA and save it.

    A model that is there already is replaced, a folder with other files only with --force.
    """
    from labelspace import experiment, store
    from labelspace.data.source import open_source

    recipe, limits = training.recipe(method), training.limits()
    on_cluster = cluster.address is not None
    # Before a cluster is started or a folder is made.
    recipe.check(checkpoint=kept.checkpoint is not None, on_cluster=on_cluster, cached=kept.cache is not None)
    experiment.check_plannable(recipe, limits, kept.checkpoint, on_cluster=on_cluster)
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

    with opened_cache(kept, quiet=as_json) as source.cache:
        with (
            cluster_executor(*cluster, quiet=as_json) as executor,
            noting_resumption(kept.checkpoint),
            progress(quiet=as_json) as report,
            showing_reading(source.cache, report),
            experiment.timed() as taken,
        ):
            tagger = experiment.train(
                source,
                recipe,
                progress=report,
                checkpoint=kept.checkpoint,
                inspect=None if as_json else note_documents,
                limits=limits,
                tell=tell,
                keep_texts=kept.keep_texts,
                executor=executor,
            )
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
    """Say what the new model replaces: a model, or other files."""
    if replaced is not None:
        note(f"replaces the model at {out} ({replaced})")
    elif out.is_dir() and any(out.iterdir()):
        note(f"replaces {out} and the {len(list(out.iterdir())):,} files and folders in it")


def training_summary(tagger: "Tagger", recipe: "Recipe", taken: "Seconds", out: Path) -> dict[str, Any]:
    """Describe the trained model: how long its training took, and where it is."""
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
    """Return the plan of a training with limits: its estimated cost, and everything that was left out."""
    first = plans[0]
    return {
        **first.params(),
        "cpu_seconds": round(first.seconds, 3),
        "model_mb": round(first.mb, 3),
        "latency_ms": round(first.latency_ms, 3),
        "left_out": {name: reason for plan in plans for name, reason in plan.left_out.items()},
    }


def print_summary(summary: dict[str, Any]) -> None:
    """Print what was trained, what the method reports, and where the model is."""
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
