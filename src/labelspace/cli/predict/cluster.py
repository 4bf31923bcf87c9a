"""Predictions for the documents of many files, on a cluster."""

import os
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from typer import Option

from labelspace.cli.cluster import ADDRESS, TASK_MEMORY, cluster_executor
from labelspace.cli.console import print_json, print_line, progress
from labelspace.cli.notes import note_precision, note_problems, noting_interrupt
from labelspace.data.read_options import ReadOptions
from labelspace.version import __version__

if TYPE_CHECKING:  # heavy imports happen inside the functions, so that --help stays fast
    from labelspace.cluster.prediction import PredictRun
    from labelspace.labels.selection import Selection
    from labelspace.report.predictions import PredictRequest


class PredictClusterOptions(NamedTuple):
    """The options of `predict` on a cluster."""

    address: Annotated[str | None, ADDRESS] = None
    task_memory: Annotated[str | None, TASK_MEMORY] = None
    out_format: Annotated[
        str | None,
        Option(
            metavar="ENDING",
            help="Ending of the files to write on a cluster, such as csv or jsonl.gz. Default: the input's.",
        ),
    ] = None
    force: Annotated[bool, Option(help="With --cluster: start anew, and replace the predictions in --out.")] = False

    def check_unused(self) -> None:
        """Raise ParameterError if options of a cluster are given without one."""
        from labelspace.errors import ParameterError

        given = {"--task-memory": self.task_memory, "--out-format": self.out_format, "--force": self.force}
        for option in [option for option, value in given.items() if value]:
            raise ParameterError(f"{option} is for --cluster, but there is none; add --cluster local, or leave it out")

    @property
    def ending(self) -> str | None:
        """The ending of the files to write; None for that of the input."""
        return None if self.out_format is None else f".{self.out_format.lower().lstrip('.')}"


class ClusterRequest(NamedTuple):
    """What a cluster has to do, as typed."""

    options: PredictClusterOptions
    model: Path
    file: str | None
    out: str | None
    language: str | None
    reading: ReadOptions

    def check(self) -> None:
        """Raise ParameterError if this cannot be done, before any work."""
        from labelspace.cluster.connection import check_address
        from labelspace.data.answer_files import answer_format

        if self.options.address is None:
            self.options.check_unused()
            return
        check_address(self.options.address)
        self._check_paths()
        if self.options.ending is not None:
            answer_format(f"predictions{self.options.ending}")

    def _check_paths(self) -> None:
        from labelspace.data.answer_files import ENDINGS
        from labelspace.errors import ParameterError

        if self.file is None or self.out is None:
            missing = "--input FOLDER" if self.file is None else "--out FOLDER"
            raise ParameterError(f"--cluster reads files and writes a folder of files, but has no {missing}; add it")
        if self.file == "-":
            raise ParameterError("--cluster reads files, but --input is the standard input; write it to a file first")
        if self.out.lower().endswith(tuple(ending + kind for ending in ENDINGS for kind in ("", ".gz", ".zst"))):
            rule = f"--out must be a folder with --cluster, but {self.out!r} is named like a file"
            raise ParameterError(f"{rule}; give another name")


def predict_on_cluster(request: ClusterRequest, asked: "PredictRequest", quiet: bool) -> None:
    """Write a folder of predictions, and say what is in it."""
    from labelspace.cluster.prediction import predict_files, prepare

    asked.tagger.choice.check(asked.options)
    prepared = prepare(prediction_run(request, asked))
    with (
        noting_interrupt(f"the same command{' without --force' * request.options.force} goes on with what is left"),
        cluster_executor(request.options.address, request.options.task_memory, quiet) as executor,
    ):
        if executor is None:  # there is an address
            return
        with progress(quiet) as report:
            done = predict_files(executor, prepared, report, request.reading.say)
    if quiet:
        counts = {"documents": done.n_documents, "files": done.n_files, "files_kept": done.n_kept}
        print_json({"out": request.out, **counts})
        return
    kept = f", of which {done.n_kept:,} were there" if done.n_kept else ""
    print_line(f"wrote {request.out}: {done.n_documents:,} documents in {done.n_files:,} files{kept}")
    note_precision(asked.tagger, asked.options)
    note_problems(done.problems, done.n_new)


def prediction_run(request: ClusterRequest, asked: "PredictRequest") -> "PredictRun":
    """Return the run for the cluster: paths for all machines, and labels in place of files of labels."""
    from labelspace.cluster.prediction import PredictJob, PredictRun, model_fingerprint

    tagger, k, options = asked.tagger, asked.k, asked.options
    selection = tagger.selection(options)
    if selection is not None and selection.reads_files:
        names = [tagger.labels_.names[label] for label in selection.allowed.nonzero()[0].tolist()]
        options = {**options, "include": names, "exclude": [], "under": []}
    fingerprint, out = model_fingerprint(request.model), request.out or ""
    out = out if "://" in out else os.path.abspath(out)
    job = PredictJob(os.path.abspath(request.model), fingerprint, k, options, request.language, out)
    reading = replace(request.reading.following(tagger.fields_), say=ReadOptions().say)
    if tagger.columns_ is not None:
        reading = replace(reading, columns=tagger.columns_)
    settings = run_settings(request, asked, fingerprint, selection)
    return PredictRun(job, request.file or "", reading, settings, request.options.ending, request.options.force)


def run_settings(
    request: ClusterRequest, asked: "PredictRequest", fingerprint: str, selection: "Selection | None"
) -> dict[str, Any]:
    """Return the settings that must be equal for a run to continue an earlier one."""
    options, reading = asked.options, request.reading
    labels = None
    if selection is not None:
        labels = {"allowed": selection.described, "sha256": sha256(selection.allowed.tobytes()).hexdigest()}
    return {
        "labelspace": __version__,
        "model": fingerprint,
        "k": asked.k,
        "min_probability": options.get("min_probability"),
        "precision": options.get("precision"),
        "consistent": options.get("consistent"),
        "labels": labels,
        "language": request.language,
        "out_format": request.options.ending,
        **{key: getattr(reading, key) for key in ("format", "encoding", "delimiter", "text", "id", "embeddings")},
    }
