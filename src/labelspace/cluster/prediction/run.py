"""Predict for files on a cluster: finished files are kept, and each document is labeled once."""

import hashlib
import json
import os
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

from labelspace.cluster.connection import alive_nodes, check_shared
from labelspace.cluster.executor import RayExecutor, refusing_losses
from labelspace.cluster.prediction.blocks import Block, Scan, block_bytes, block_records, scan_file
from labelspace.cluster.prediction.input_files import InputFile, file_system, is_local, list_inputs
from labelspace.cluster.prediction.layout import check_format
from labelspace.cluster.prediction.output import MANIFEST, PART, OutputFolder, earlier_manifest, refuse_other
from labelspace.data.answer_files import LabelDisplay, writing_answers
from labelspace.data.archives import compression
from labelspace.data.read_options import ReadOptions
from labelspace.errors import ClusterError, DataError
from labelspace.labels.tag_options import TagOptions
from labelspace.report.predictions import PredictRequest, predictions
from labelspace.report.progress import StepProgress
from labelspace.report.terminal import json_text
from labelspace.store import model_folder
from labelspace.tagger import Tagger

CHECKED_FILES = 1000  # of the input, that are looked for on each machine; more would delay the start
ROOM_SECONDS = 10.0  # in which a CPU must get free


@dataclass(frozen=True)
class PredictJob:
    """The settings of predictions, the same for all documents."""

    model: str  # the path of its folder on all machines, which is memory-mapped there
    fingerprint: str
    k: int
    options: TagOptions
    language: str | None
    out: str  # a path or URL


def model_fingerprint(folder: str | Path) -> str:
    """Return a checksum of a model: of its manifest, which has the checksums of all other files."""
    return hashlib.sha256(Path(folder, model_folder.MANIFEST).read_bytes()).hexdigest()


def predict_block(job: PredictJob, block: Block) -> Counter[str]:
    """Write the predictions for a block; a repeated task writes the same bytes.

    Return how many documents the model can read nothing in, by reason.
    """
    tagger, display = _loaded(job.model, job.fingerprint, job.language)
    request = PredictRequest(tagger, job.k, job.options, display)
    problems = Counter[str]()
    n = 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, block.output)
        with (
            block_records(block) as (source, records),
            writing_answers(file, display, len(tagger.labels_), json_text) as add,
        ):
            for prediction in predictions(records, source, request, problems):
                add(prediction)
                n += 1
        if n != block.n_rows:
            changed = f"{n:,} documents and not {block.n_rows:,} from row {block.first_row:,} on"
            raise DataError(f"{block.file.path} must stay as it is, but has {changed}; start anew with --force")
        OutputFolder(job.out).put(file)
    return problems


@lru_cache(maxsize=1)
def _loaded(model: str, fingerprint: str, language: str | None) -> tuple[Tagger, LabelDisplay]:
    """Load the model, once per process."""
    here = socket.gethostname()
    try:
        same = model_fingerprint(model) == fingerprint
    except OSError as error:
        problem = f"{here} has no {model} ({error.strerror})"
        remedy = "put it on a shared file system, or copy it there to the same path"
        raise ClusterError(f"all machines must see the model, but {problem}; {remedy}") from error
    if not same:
        problem = f"{here} has a different one at {model}"
        raise ClusterError(f"all machines must have the same model, but {problem}; copy it there again")
    tagger = Tagger.load(model)
    return tagger, LabelDisplay(tagger.labels_, language, tagger.gives_probabilities)


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

    def manifest(self, size: int = 0, blocks: Iterable[Block] = ()) -> dict[str, Any]:
        """Return the manifest as it is read from its file, with the size of blocks in bytes."""
        made = {
            "settings": dict(self.run.settings),
            "inputs": [asdict(file) for file in self.files],
            "block_bytes": size,
            "blocks": [
                {"output": each.output, "input": each.file.path, "first_row": each.first_row, "documents": each.n_rows}
                for each in blocks
            ],
        }
        plain: dict[str, Any] = json.loads(json.dumps(made))
        return plain


def prepare(run: PredictRun) -> PreparedRun:
    """List the input and check the run before a cluster is started; raise DataError if it cannot be done."""
    output = OutputFolder(run.job.out)
    files = list_inputs(run.input)
    for file in files:
        check_format(file, run.reading)
    check_apart(run.input, files, output)
    prepared = PreparedRun(run, output, files, earlier_manifest(output, run.force))
    if prepared.earlier is not None:
        refuse_other(output, prepared.earlier, prepared.manifest(), ("settings", "inputs"))
    return prepared


def predict_files(
    executor: RayExecutor, prepared: PreparedRun, report: StepProgress, say: Callable[[str], None]
) -> Summary:
    """Write the predictions for all documents, in files whose names are in the order of the input."""
    run, output, files, earlier = prepared.run, prepared.output, prepared.files, prepared.earlier
    size = block_bytes(files, executor.n_cpus) if earlier is None else earlier["block_bytes"]
    check_machines(executor, run.job, files)
    scans = scan_files(executor, (run.reading, size), files, report)
    say_notes(files, scans, say)
    blocks = named_blocks(chain.from_iterable(scan.blocks for scan in scans), run.out_format)
    begin(output, prepared.manifest(size, blocks), earlier)
    summary = predict_missing(executor, run.job, output, blocks, report)
    finish(output, blocks)
    return summary


def begin(output: OutputFolder, manifest: dict[str, Any], earlier: dict[str, Any] | None) -> None:
    """Write the manifest, or check the manifest of an earlier start; all machines must see it."""
    if earlier is not None:
        refuse_other(output, earlier, manifest, ("blocks",))
    else:
        output.remove(filter(PART.fullmatch, output.names()))
        output.put_manifest(manifest)
    if output.is_local:
        check_shared(alive_nodes(), [f"{output.path}/{MANIFEST}"])


def finish(output: OutputFolder, blocks: Sequence[Block]) -> None:
    """Remove temporary files, and check that all files are there."""
    output.sweep()
    there = output.names()
    missing = [block.output for block in blocks if block.output not in there]
    if missing:
        raise DataError(f"{output.url} must keep its files, but {missing[0]} is gone; run the same command again")


def scan_files(
    executor: RayExecutor, reading: tuple[ReadOptions, int], files: Sequence[InputFile], report: StepProgress
) -> list[Scan]:
    """Cut all files into blocks; return the scans in the order of the files."""
    scans: list[Scan] = [Scan([], [])] * len(files)
    for n, (position, scan) in enumerate(executor.map_unordered(scan_file, reading, files), start=1):
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


def named_blocks(blocks: Iterable[Block], ending: str | None) -> list[Block]:
    """Return the blocks with the names of their files, which are in the order of the blocks."""
    found = list(blocks)
    width = max(len(str(len(found) - 1)), 5)
    named = []
    for number, block in enumerate(found):
        of_input = f".{block.layout.format}{compression(block.file.path)}"
        named.append(replace(block, output=f"part-{number:0{width}}{ending or of_input}"))
    return named


def predict_missing(
    executor: RayExecutor, job: PredictJob, output: OutputFolder, blocks: Sequence[Block], report: StepProgress
) -> Summary:
    """Predict the blocks whose files are missing."""
    there = output.names()
    left = [block for block in blocks if block.output not in there]
    total = sum(block.n_rows for block in blocks)
    start = time.monotonic()
    summary = Summary(total, len(blocks), len(blocks) - len(left))
    kept = total - sum(block.n_rows for block in left)
    tasks = executor.map_unordered(predict_block, job, left)
    for n_done, (position, problems) in enumerate(tasks, start=1):
        summary.n_new += left[position].n_rows
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
    real: Callable[[str], str] = os.path.realpath if output.is_local else lambda path: path.rstrip("/")
    target = real(output.path)
    paths = [file_system(file.path)[1] for file in files]
    folders = {root, *map(os.path.dirname, paths)} if fs.isdir(root) else set()  # links may lead to other folders
    inside = any(f"{target}/".startswith(f"{real(folder)}/") for folder in folders)
    # A file that is a link is in the folder of the link, and in the folder of its target.
    locations = (location for path in paths for location in (real(path), f"{real(os.path.dirname(path))}/"))
    if inside or any(location.startswith(f"{target}/") for location in locations):
        raise DataError(f"--out must not be in the folder of --input, but {output.url} is; give another folder")


def check_machines(executor: RayExecutor, job: PredictJob, files: Sequence[InputFile]) -> None:
    """Raise ClusterError if no CPU gets free, or a machine does not see the model or the input."""
    executor.check_room(threads=1)
    end = time.monotonic() + ROOM_SECONDS
    while import_module("ray").available_resources().get("CPU", 0) < 1:
        if time.monotonic() > end:
            problem = f"all {executor.n_cpus} are in use; wait until other work is done, or add machines"
            raise ClusterError(f"a CPU of the cluster must be free, but {problem}")
        time.sleep(0.2)
    local = [file.path for file in files[:CHECKED_FILES] if is_local(file_system(file.path)[0])]
    check_shared(alive_nodes(), [str(Path(job.model, model_folder.MANIFEST)), *local])
