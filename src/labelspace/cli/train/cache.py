"""The cache of the command train: what its options say, progress of reading, and what it took."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from typer import Option

from labelspace.cli.arguments import OptionGroup
from labelspace.cli.notes import note
from labelspace.errors import ParameterError

if TYPE_CHECKING:  # heavy imports happen inside the functions, so that --help stays fast
    from labelspace.data.cache.folder import CacheFolder
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
        bool, Option("--keep-texts", help="Keep the training texts with the model, for `explain` to show similar ones.")
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
        note(
            "--max-memory is enforced only on Linux; here, the system frees memory of the cache when it is short of it"
        )
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
