"""Predict for files on a cluster: finished files are kept, and each document is labeled once."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

from labelspace.cluster.executor import RayExecutor, refusing_losses
from labelspace.cluster.nodes import alive_nodes, check_shared
from labelspace.cluster.prediction.blocks import Block, Scan, block_bytes, scan_file
from labelspace.cluster.prediction.layout import check_format
from labelspace.cluster.prediction.listing import list_inputs
from labelspace.cluster.prediction.manifest import NAME, PART, Manifest, earlier_manifest, refuse_other
from labelspace.cluster.prediction.output_folder import OutputFolder
from labelspace.cluster.prediction.storage import InputFile, file_system, is_local
from labelspace.cluster.prediction.tasks import NamedBlock, PredictJob, predict_block
from labelspace.data.archives import compression
from labelspace.data.read_options import ReadOptions
from labelspace.errors import ClusterError, DataError
from labelspace.report.progress import StepProgress
from labelspace.report.terminal import json_text
from labelspace.store.model_folder import MANIFEST

CHECKED_FILES = 1000  # of the input, that are looked for on each machine; more would delay the start
ROOM_SECONDS = 10.0  # in which a CPU must get free


@dataclass(frozen=True)
class PredictRun:
    """What to predict, for which files, and how they are read and written."""

    job: PredictJob
    input: str  # a path, a pattern or a URL
    reading: ReadOptions  # with the columns of the model
    settings: Mapping[str, Any]  # that must be the same at a restart
    out_format: str | None = None  # an ending; by default that of the input
    force: bool = False  # replace what is there


@dataclass
class Summary:
    """The counts of a finished run."""

    n_documents: int
    n_files: int
    n_kept: int  # files of an earlier start
    n_new: int = 0  # documents of the new files
    problems: Counter[str] = field(default_factory=Counter)  # new documents without a word that the model knows


@dataclass(frozen=True)
class PreparedRun:
    """A run with the list of its input files and the state of its output folder."""

    run: PredictRun
    output: OutputFolder
    files: Sequence[InputFile]
    earlier: dict[str, Any] | None  # the manifest of an earlier start

    def manifest(self, n_cpus: int) -> Manifest:
        """Return the manifest; its size of blocks is for this number of CPUs, or that of an earlier start."""
        size = block_bytes(self.files, n_cpus) if self.earlier is None else self.earlier["block_bytes"]
        return Manifest(self.run.settings, self.files, size)


def prepare(run: PredictRun) -> PreparedRun:
    """List the input and check the run before a cluster is started; raise DataError if it cannot be done."""
    output = OutputFolder(run.job.out)
    files = list_inputs(run.input)
    for file in files:
        check_format(file, run.reading)
    check_apart(run.input, files, output)
    prepared = PreparedRun(run, output, files, earlier_manifest(output, run.force))
    if prepared.earlier is not None:
        refuse_other(output, prepared.earlier, prepared.manifest(1).as_json([]), ("settings", "inputs"))
    return prepared


def predict_files(
    executor: RayExecutor, prepared: PreparedRun, report: StepProgress, say: Callable[[str], None]
) -> Summary:
    """Write the predictions for all documents, in files whose names are in the order of the input."""
    run, output, files = prepared.run, prepared.output, prepared.files
    manifest = prepared.manifest(executor.n_cpus)
    check_machines(executor, run.job, files)
    scans = scan_files(executor, run, manifest, report)
    say_notes(files, scans, say)
    blocks = named_blocks(chain.from_iterable(scan.blocks for scan in scans), run.out_format)
    begin(output, manifest.as_json(blocks), prepared.earlier)
    summary = predict_missing(executor, run.job, output, blocks, report)
    finish(output, blocks)
    return summary


def begin(output: OutputFolder, manifest: dict[str, Any], earlier: dict[str, Any] | None) -> None:
    """Write the manifest, or check the manifest of an earlier start; all machines must see it."""
    if earlier is not None:
        refuse_other(output, earlier, manifest, ("blocks",))
    else:
        output.remove(filter(PART.fullmatch, output.names()))
        output.put_text(NAME, json_text(manifest, indent=1) + "\n")
    if output.is_local:
        check_shared(alive_nodes(), [f"{output.path}/{NAME}"])


def finish(output: OutputFolder, blocks: Sequence[NamedBlock]) -> None:
    """Remove temporary files, and check that all files are there."""
    output.sweep()
    there = output.names()
    missing = [name for name, _ in blocks if name not in there]
    if missing:
        raise DataError(f"{output.url} must keep its files, but {missing[0]} is gone; run the same command again")


def scan_files(executor: RayExecutor, run: PredictRun, manifest: Manifest, report: StepProgress) -> list[Scan]:
    """Cut all files into blocks; return the scans in the order of the files."""
    files = manifest.inputs
    scans: list[Scan] = [Scan([], [])] * len(files)
    tasks = executor.map_unordered(scan_file, (run.reading, manifest.block_bytes), files)
    for n, (position, scan) in enumerate(tasks, start=1):
        scans[position] = scan
        if len(files) > 1:
            report("files read", n, len(files))
    return scans


def say_notes(files: Sequence[InputFile], scans: Sequence[Scan], say: Callable[[str], None]) -> None:
    """Report how files are read; a note that several files share is reported once."""
    by_note: dict[str, list[str]] = {}
    for file, scan in zip(files, scans, strict=True):
        for note in scan.notes:
            by_note.setdefault(note.removeprefix(file.path), []).append(file.path)
    for note, paths in by_note.items():
        say(f"{paths[0]}{f' and {len(paths) - 1:,} other files' if len(paths) > 1 else ''}{note}")


def named_blocks(blocks: Iterable[Block], ending: str | None) -> list[NamedBlock]:
    """Return the blocks with the names of their files, which are in the order of the blocks."""
    found = list(blocks)
    width = max(len(str(len(found) - 1)), 5)
    return [
        NamedBlock(f"part-{number:0{width}}{ending or _ending(block)}", block) for number, block in enumerate(found)
    ]


def _ending(block: Block) -> str:
    return f".{block.layout.format}{compression(block.file.path)}"


def predict_missing(
    executor: RayExecutor, job: PredictJob, output: OutputFolder, blocks: Sequence[NamedBlock], report: StepProgress
) -> Summary:
    """Predict the blocks whose files are missing."""
    there = output.names()
    left = [named for named in blocks if named.name not in there]
    total = sum(block.n_rows for _, block in blocks)
    start = time.monotonic()
    summary = Summary(total, len(blocks), len(blocks) - len(left))
    kept = total - sum(block.n_rows for _, block in left)
    tasks = executor.map_unordered(predict_block, job, left)
    for n_done, (position, problems) in enumerate(tasks, start=1):
        summary.n_new += left[position].block.n_rows
        summary.problems.update(problems)
        with refusing_losses():
            n = kept + summary.n_new
            machines = len(alive_nodes())
        # The first blocks take longer, since each process loads the model, so no time left is shown before.
        is_known = n_done > 2 * executor.n_cpus
        seconds = (time.monotonic() - start) * (total - n) / summary.n_new if is_known else None
        where = f"{machines} machine{'s' * (machines > 1)}"
        report.overall("predict", f"{n:,} of {total:,} documents, {where}", n / total, seconds)
    return summary


def check_apart(url: str, files: Sequence[InputFile], output: OutputFolder) -> None:
    """Raise DataError if the output is in the folder of the input: a restart would read it as input."""
    fs, root = file_system(url)
    if is_local(fs) != output.is_local:
        return
    real = os.path.realpath if output.is_local else _without_slash
    target = real(output.path)
    paths = [file_system(file.path)[1] for file in files]
    folders = {root, *map(os.path.dirname, paths)} if fs.isdir(root) else set()  # links may lead to other folders
    inside = any(f"{target}/".startswith(f"{real(folder)}/") for folder in folders)
    # A file that is a link is in the folder of the link, and in the folder of its target.
    locations = (location for path in paths for location in (real(path), f"{real(os.path.dirname(path))}/"))
    if inside or any(location.startswith(f"{target}/") for location in locations):
        raise DataError(f"--out must not be in the folder of --input, but {output.url} is; give another folder")


def _without_slash(path: str) -> str:
    return path.rstrip("/")


def check_machines(executor: RayExecutor, job: PredictJob, files: Sequence[InputFile]) -> None:
    """Raise ClusterError if no CPU gets free, or a machine does not see the model or the input."""
    ray: Any = import_module("ray")
    executor.check_room(threads=1)
    end = time.monotonic() + ROOM_SECONDS
    while ray.available_resources().get("CPU", 0) < 1:
        if time.monotonic() > end:
            raise ClusterError(
                f"a CPU of the cluster must be free, but all {executor.n_cpus} are in use; wait until other work is "
                "done, or add machines"
            )
        time.sleep(0.2)
    local = [file.path for file in files[:CHECKED_FILES] if is_local(file_system(file.path)[0])]
    check_shared(alive_nodes(), [str(Path(job.model, MANIFEST)), *local])
