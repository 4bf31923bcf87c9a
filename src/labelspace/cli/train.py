"""The command train."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from typer import Option

from labelspace.cli.arguments import DataPath, Json, OptionGroup, Reading, source_name
from labelspace.cli.cluster import Cluster, cluster_executor
from labelspace.cli.console import print_json, print_line, progress
from labelspace.cli.notes import model_at, note, note_documents, note_plan, note_preset, noting_interrupt, open_noted
from labelspace.cli.recipes import Method, Training
from labelspace.errors import ParameterError

if TYPE_CHECKING:  # heavy imports happen inside the functions, so that --help stays fast
    from labelspace.data.cache.folder import CacheFolder
    from labelspace.experiment import Plan, Recipe
    from labelspace.experiment.timing import Seconds
    from labelspace.models.base import Model
    from labelspace.tagger import Tagger
    from labelspace.types import Progress


class KeptOptions(NamedTuple):
    """The options of what a training keeps on disk."""

    checkpoint: Annotated[
        Path | None,
        Option(
            metavar="FOLDER",
            help="Save checkpoints here; an interrupted training resumes when run again. Not for all methods.",
        ),
    ] = None
    keep_texts: Annotated[
        bool, Option(help="Keep the training texts with the model, for `explain` to show similar ones.")
    ] = False
    cache: Annotated[
        Path | None,
        Option(
            metavar="DIR",
            help="Train on data larger than memory: documents and large arrays are in files of this folder. "
            "It keeps the documents for the next training. Not for all methods.",
        ),
    ] = None
    max_memory: Annotated[
        str | None,
        Option(metavar="4GB", help="Memory that a training with --cache may use. Default: half of the machine's."),
    ] = None
    license: Annotated[
        str | None, Option(metavar="ID", help="License of the model, such as apache-2.0, for its README.md.")
    ] = None


Kept = Annotated[KeptOptions, Option(parser=OptionGroup.of(KeptOptions))]
MB = 10**6
SHOWN = 16 * MB  # of a file whose reading is shown
READING = "reading (MB)"


@contextmanager
def opened_cache(kept: KeptOptions, quiet: bool) -> "Iterator[CacheFolder | None]":
    """Yield the cache of the options ``--cache`` and ``--max-memory``, or None without the first."""
    folder, max_memory = kept.cache, kept.max_memory
    if folder is None:
        if max_memory is not None:
            raise ParameterError("--max-memory limits a training with a cache, but there is none; add --cache DIR")
        yield None
        return
    from labelspace.cli.cluster import parse_bytes
    from labelspace.data.cache.folder import CacheFolder
    from labelspace.data.cache.scratch import machine_memory

    memory = machine_memory() // 2 if max_memory is None else int(parse_bytes(max_memory, "--max-memory"))
    with CacheFolder(folder, memory) as cache:
        if not quiet:
            note_cache(cache)
        yield cache


def note_cache(cache: "CacheFolder") -> None:
    """Say if the system or the disk keeps a cache from saving memory."""
    from labelspace.data.cache.scratch import can_drop_pages, is_in_memory

    if not can_drop_pages():
        here = "here, the system frees memory of the cache when it is short of it"
        note(f"--max-memory is enforced only on Linux; {here}")
    if is_in_memory(cache.folder):
        note(f"{cache.folder} is on a disk in memory (tmpfs): files there take memory; give another folder")


@contextmanager
def showing_reading(cache: "CacheFolder | None", report: "Progress") -> Iterator[None]:
    """Show how much of large files was read into the cache."""
    if cache is None:
        yield
        return
    from labelspace.data.files import reporting_progress

    shown = 0

    def tell(done: int, total: int) -> None:
        nonlocal shown
        if total >= SHOWN and done // MB != shown:
            shown = done // MB
            report(READING, shown, total // MB)

    with reporting_progress(tell):
        yield


def cache_summary(cache: "CacheFolder | None") -> dict[str, Any]:
    """Return the memory and disk that a training took, in megabytes, under ``cache``; empty without a cache."""
    if cache is None:
        return {}
    from labelspace.data.cache.scratch import peak_memory

    sizes = {
        "max_memory_mb": cache.memory,
        "peak_memory_mb": cache.scratch.limit.peak or peak_memory(),
        "peak_resident_mb": peak_memory(),
        "kept_mb": cache.kept_bytes,
        "temporary_mb": cache.scratch.peak_bytes,
    }
    return {"cache": {"folder": str(cache.folder)} | {name: -(-size // MB) for name, size in sizes.items()}}


def print_cache(summary: dict[str, Any]) -> None:
    """Print what a training with a cache took; say where that is more than it was allowed."""
    peak, limit = summary["peak_memory_mb"], summary["max_memory_mb"]
    print(
        f"  peak memory: {peak:,} MB of {limit:,} MB; {summary['peak_resident_mb']:,} MB with pages of the cache, "
        "which the system takes back when memory is short"
    )
    print(
        f"  cache: {summary['kept_mb']:,} MB of documents kept in {summary['folder']}, and up to "
        f"{summary['temporary_mb']:,} MB while training"
    )
    if peak > limit:
        note(
            f"{peak - limit:,} MB more than --max-memory were needed: the documents are in the cache, but what the "
            "model learns must fit into memory; allow more, or train with fewer features: --set features.max_features="
        )


def train(
    data: DataPath,
    method: Method = None,
    out: Annotated[Path | None, Option(metavar="MODEL", help="Folder to save to. Default: runs/DATA-METHOD.")] = None,
    *,
    training: Training,
    kept: Kept,
    weights: Annotated[
        str | None,
        Option(metavar="COLUMN", help="Column that says how much each training document counts. Not for all methods."),
    ] = None,
    label_weights: Annotated[
        Path | None,
        Option(
            metavar="FILE", help="Lines of a label, a tab and a number: how much a right label is worth, 1 for others."
        ),
    ] = None,
    cluster: Cluster,
    force: Annotated[bool, Option(help="Replace --out even if it holds other files.")] = False,
    as_json: Json = False,
    reading: Reading,
) -> None:
    """Train a model on DATA and save it.

    A model that is there already is replaced, a folder with other files only with --force.
    """
    from labelspace import experiment, store
    from labelspace.data.sample_weights import read_label_weights
    from labelspace.tagger.lineage import check_license

    recipe, limits = training.recipe(method), training.limits()
    on_cluster = cluster.address is not None
    # Before a cluster is started or a folder is made.
    cached, weighted = kept.cache is not None, weights is not None
    recipe.check(checkpoint=kept.checkpoint is not None, on_cluster=on_cluster, cached=cached, weighted=weighted)
    experiment.check_plannable(recipe, limits, kept.checkpoint, on_cluster=on_cluster)
    worth = None if label_weights is None else read_label_weights(label_weights)
    out = out or Path("runs") / f"{source_name(data)}-{recipe.method}"
    store.check_writable(out, force)  # before training, not after it
    check_license(kept.license)
    replaced = model_at(out)
    if not as_json:
        note_preset(recipe)
    source = replace(open_noted(data, reading, as_json), weights=weights)
    if not as_json:
        note_replaced(out, replaced)
    resumable: AbstractContextManager[None] = nullcontext()
    if kept.checkpoint is not None:
        resumable = noting_interrupt(f"the same command resumes the training: what is finished is in {kept.checkpoint}")
    plans: list[Plan] = []

    def tell(plan: "Plan") -> None:
        plans.append(plan)
        if not as_json:
            note_plan(plan, is_first=len(plans) == 1)

    with opened_cache(kept, quiet=as_json) as source.cache:
        with (
            cluster_executor(*cluster, quiet=as_json) as executor,
            resumable,
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
                label_weight=worth,
            )
        if executor is not None:
            taken.cpu += executor.cpu_seconds
        tagger.save(out, force, license=kept.license)
        summary = training_summary(tagger, recipe, taken, out) | cache_summary(source.cache)
        summary |= beside_summary(tagger) | weights_summary(tagger, weights)
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


def beside_summary(tagger: "Tagger") -> dict[str, Any]:
    """Return the columns that stand beside the text and the members that do not read them; empty without columns."""
    if not tagger.side_columns:
        return {}
    others = [member.name for member in members_of(tagger) if not member.view.is_matrix]
    return {"beside": {"columns": list(tagger.side_columns.names), "not_read_by": others}}


def weights_summary(tagger: "Tagger", column: str | None) -> dict[str, Any]:
    """Return the column with the weights and the members that do not learn by them; empty without weights."""
    from labelspace.models.capabilities import WeighsDocuments

    if column is None:
        return {}
    others = [member.name for member in members_of(tagger) if not isinstance(member, WeighsDocuments)]
    return {"weights": {"column": column, "not_used_by": others}}


def members_of(tagger: "Tagger") -> "list[Model]":
    """Return the members of an ensemble; none of any other method."""
    members: list[Model] = getattr(tagger.model, "members_", [])
    return members


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
    if "beside" in summary:
        others = summary["beside"]["not_read_by"]
        but = f"; read by all members but {', '.join(others)}" if others else ""
        print_line(f"  beside the text: {', '.join(summary['beside']['columns'])}{but}")
    if "weights" in summary:
        others = summary["weights"]["not_used_by"]
        but = f"; used by all members but {', '.join(others)}" if others else ""
        print_line(f"  weights of documents: {summary['weights']['column']}{but}")
    if "cache" in summary:
        print_cache(summary["cache"])
    print_line(f"saved: {summary['model']} ({summary['model_mb']:.1f} MB)")
