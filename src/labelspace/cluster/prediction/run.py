"""Predictions for files on a cluster: what is there already is kept, and each document is labeled once."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from labelspace.cluster.executor import RayExecutor, refusing_losses
from labelspace.cluster.nodes import alive_nodes, check_shared
from labelspace.cluster.prediction.blocks import Block, Scan, block_bytes, scan_file
from labelspace.cluster.prediction.checks import check_apart, check_machines
from labelspace.cluster.prediction.layout import check_format
from labelspace.cluster.prediction.listing import list_inputs
from labelspace.cluster.prediction.manifest import NAME, PART, Manifest, earlier_manifest, refuse_other
from labelspace.cluster.prediction.output_folder import OutputFolder
from labelspace.cluster.prediction.storage import InputFile
from labelspace.cluster.prediction.tasks import NamedBlock, PredictJob, predict_block
from labelspace.data.archives import compression
from labelspace.data.read_options import ReadOptions
from labelspace.errors import DataError
from labelspace.report.progress import StepProgress
from labelspace.report.terminal import json_text


@dataclass(frozen=True)
class PredictRun:
    """Predictions for files: what, of which files, and how these are read and written."""

    job: PredictJob
    input: str  # a path, a pattern or a URL
    reading: ReadOptions  # with the columns of the model
    settings: Mapping[str, Any]  # that must be the same at a restart
    out_format: str | None = None  # an ending; by default that of the input
    force: bool = False  # replace what is there


@dataclass
class Summary:
    """What was done."""

    n_documents: int
    n_files: int
    n_kept: int  # files that were there
    n_new: int = 0  # documents of the others
    problems: Counter[str] = field(default_factory=Counter)  # of the others: documents that say nothing to the model


@dataclass(frozen=True)
class PreparedRun:
    """A run whose input was listed and whose output was looked at."""

    run: PredictRun
    output: OutputFolder
    files: Sequence[InputFile]
    earlier: dict[str, Any] | None  # the manifest of an earlier start

    def manifest(self, n_cpus: int) -> Manifest:
        """What the predictions are of; the size of blocks is for so many CPUs, or that of an earlier start."""
        size = block_bytes(self.files, n_cpus) if self.earlier is None else self.earlier["block_bytes"]
        return Manifest(self.run.settings, self.files, size)


def prepare(run: PredictRun) -> PreparedRun:
    """Refuse what cannot be done, before a cluster is started."""
    output, files = OutputFolder(run.job.out), list_inputs(run.input)
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
    """Write the predictions for all documents of some files, in files whose names are in the order of the input."""
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
    """Write the manifest, or check that of an earlier start; all machines must see it."""
    if earlier is not None:
        refuse_other(output, earlier, manifest, ("blocks",))
    else:
        output.remove(filter(PART.fullmatch, output.names()))
        output.put_text(NAME, json_text(manifest, indent=1) + "\n")
    if output.is_local:
        check_shared(alive_nodes(), [f"{output.path}/{NAME}"])


def finish(output: OutputFolder, blocks: Sequence[NamedBlock]) -> None:
    """Tidy up, and check that all files are there."""
    output.sweep()
    there = output.names()
    missing = [name for name, _ in blocks if name not in there]
    if missing:
        raise DataError(f"{output.url} must keep its files, but {missing[0]} is gone; run the same command again")


def scan_files(executor: RayExecutor, run: PredictRun, manifest: Manifest, report: StepProgress) -> list[Scan]:
    """The blocks of all files, in their order."""
    files = manifest.inputs
    scans: list[Scan] = [Scan([], [])] * len(files)
    tasks = executor.map_unordered(scan_file, (run.reading, manifest.block_bytes), files)
    for n, (position, scan) in enumerate(tasks, start=1):
        scans[position] = scan
        if len(files) > 1:
            report("files read", n, len(files))
    return scans


def say_notes(files: Sequence[InputFile], scans: Sequence[Scan], say: Callable[[str], None]) -> None:
    """Say how files are read; what is the same for several of them once."""
    by_note: dict[str, list[str]] = {}
    for file, scan in zip(files, scans, strict=True):
        for note in scan.notes:
            by_note.setdefault(note.removeprefix(file.path), []).append(file.path)
    for note, paths in by_note.items():
        say(f"{paths[0]}{f' and {len(paths) - 1:,} other files' if len(paths) > 1 else ''}{note}")


def named_blocks(blocks: Iterable[Block], ending: str | None) -> list[NamedBlock]:
    """The blocks with the names of their files, which are in the order of the blocks."""
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
    """Predict the blocks whose files are not there."""
    there = output.names()
    left = [named for named in blocks if named.name not in there]
    total, start = sum(block.n_rows for _, block in blocks), time.monotonic()
    summary = Summary(total, len(blocks), len(blocks) - len(left))
    kept = total - sum(block.n_rows for _, block in left)
    tasks = executor.map_unordered(predict_block, job, left)
    for n_done, (position, problems) in enumerate(tasks, start=1):
        summary.n_new += left[position].block.n_rows
        summary.problems.update(problems)
        with refusing_losses():
            n, machines = kept + summary.n_new, len(alive_nodes())
        # The first blocks take longer: each process loads the model.
        is_known = n_done > 2 * executor.n_cpus
        seconds = (time.monotonic() - start) * (total - n) / summary.n_new if is_known else None
        where = f"{machines} machine{'s' * (machines > 1)}"
        report.overall("predict", f"{n:,} of {total:,} documents, {where}", n / total, seconds)
    return summary
