"""Let a saved model go on learning from a file: the result is its next version, or a model in another folder.

1. The documents are read as those of the training were, without those that are held out.
2. The model before and the model after learning are measured on the held-out documents (see ``held_out``).
3. If nDCG@5 falls by more than its noise, the new version is refused, unless this is insisted on.
4. The new version takes the place of the model, and the one before it is kept (see ``store.versions``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from labelspace import store
from labelspace.data.dataset_file import read_for_model
from labelspace.data.learning_files import read_rejected
from labelspace.data.read_options import ReadOptions
from labelspace.data.source import open_source
from labelspace.errors import DataError, ModelError
from labelspace.experiment.learning.comparison import METRIC, Change, HeldOut, changed, document_values
from labelspace.experiment.learning.held_out import (
    MIN_DOCUMENTS,
    LearningDocuments,
    given_held_out,
    put_sample_aside,
    without_held_out,
)
from labelspace.experiment.timing import Seconds, timed
from labelspace.labels.edits import n_replaced
from labelspace.models.capabilities import PartialFit, require
from labelspace.tagger import Tagger
from labelspace.tagger import learning as tagger_learning
from labelspace.tagger.held_out import HeldOutDocuments
from labelspace.tagger.lineage import Origin, Version, learned_version
from labelspace.tagger.versions import VersionedModel, open_versioned


@dataclass(frozen=True)
class Learned:
    """What a model learned, and where its new version is."""

    version: Version
    folder: Path
    taken: Seconds
    change: Change | None
    n_held_out: int  # documents of the data that were not learned, since they are held out
    notes: list[str] = field(default_factory=list)  # what a user should know
    n_merged_labels: int = 0  # labels of documents that count as those that they were merged into
    n_retired_labels: int = 0  # labels of documents that were left out

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        shown = self.version.to_json()
        shown["version"] = shown.pop("number")
        return {
            "model": str(self.folder),
            **shown,
            "n_held_out_documents": self.n_held_out,
            "n_merged_labels": self.n_merged_labels,
            "n_retired_labels": self.n_retired_labels,
            "learn_seconds": round(self.taken.wall, 3),
            "learn_cpu_seconds": round(self.taken.cpu, 3),
        }


def check_target(folder: Path, out: Path | None) -> None:
    """Raise ModelError unless there is a model, and its next version can be written."""
    store.read_manifest(folder)
    store.check_writable(folder if out is None else out)
    if out is None:
        return
    versions = store.versions_folder(out)
    for path in (out, versions):
        if path.exists() and not (path.is_dir() and not any(path.iterdir())):
            rule = f"--out must be a new folder, but {path} is there already"
            raise ModelError(f"{rule}; give another name, or leave --out out, which keeps the version before")


@contextmanager
def opened(folder: Path, out: Path | None) -> Iterator[tuple[Tagger, VersionedModel]]:
    """Yield a model that can go on learning, and its versions."""
    lock = nullcontext() if out is None else store.changing(out)
    with lock, open_versioned(folder, is_changed=out is None) as versions:
        tagger = Tagger.load(folder)
        require(tagger.model, PartialFit)
        yield tagger, versions


def save_version(
    tagger: Tagger, versions: VersionedModel, version: Version, out: Path | None, n_kept: int = store.KEPT
) -> None:
    """Save the next version in the place of the model, or in another folder."""
    if out is None:
        versions.add(tagger, version, n_kept)
        return
    tagger.lineage_ = (*versions.lineage, version)
    tagger.save(out)
    versions.lineage = tagger.lineage_


def learn(
    folder: Path,
    data: Path,
    *,
    out: Path | None = None,
    held_out: Path | None = None,
    options: ReadOptions | None = None,
    force: bool = False,
    n_kept: int = store.KEPT,
) -> Learned:
    """Let the model of a folder learn from a data file or folder.

    Args:
        folder: The model.
        data: A file, or a folder with ``train.*``.
        out: Another folder for the new version; the model stays as it was.
        held_out: A file of documents by which the versions are compared.
        options: How files are read, where not as the training files were.
        force: Save the new version even if it is worse.
        n_kept: How many older versions are kept next to the model.
    """
    options = options or ReadOptions()
    check_target(folder, out)
    with opened(folder, out) as (tagger, versions):
        path, read = read_documents(tagger, data, options)
        given = read.judged()
        compared_on = given_held_out(tagger, held_out, data, options)
        chosen = without_held_out(tagger, given, compared_on)
        _check_left(read, chosen, path)
        is_new_sample = compared_on is None
        if compared_on is None:
            chosen, compared_on = put_sample_aside(tagger, chosen)
        n_merged, n_retired = n_replaced(chosen.documents.Y, chosen.documents.labels)
        step = learn_documents(tagger, versions.next_number(), chosen, compared_on, Origin.of(path))
        notes = _unjudged_notes(len(read.documents) - len(given.documents)) + judge(step.change, folder, force)
        if is_new_sample:
            notes += _sample_notes(tagger, compared_on)
        save_version(tagger, versions, step.version, out, n_kept)
    n_held_out = len(given.documents) - len(chosen.documents)
    return Learned(step.version, out or folder, step.taken, step.change, n_held_out, notes, n_merged, n_retired)


class Step(NamedTuple):
    """What a model has just learned; it is not saved yet."""

    version: Version
    taken: Seconds
    change: Change | None  # None if nothing was compared


def learn_documents(
    tagger: Tagger, number: int, given: LearningDocuments, compared_on: HeldOut | None, origin: Origin
) -> Step:
    """Let a model learn from documents, and compare it with what it was before; the version has this number."""
    old = None if compared_on is None else document_values(tagger, compared_on.documents)
    n_labels = len(tagger.labels_)
    with timed() as taken:
        left_out = tagger_learning.learn(tagger, given.documents, given.rejected)
    change = None
    if compared_on is not None and old is not None:
        change = changed(old, document_values(tagger, compared_on.documents), compared_on.source)
    version = learned_version(
        tagger,
        number,
        len(given.documents),
        n_labels,
        left_out,
        origin,
        None if change is None else change.figures,
        forced=change is not None and change.is_loss,
    )
    return Step(version, taken, change)


def read_documents(tagger: Tagger, data: Path, options: ReadOptions) -> tuple[Path, LearningDocuments]:
    """Return the file with documents to learn from, and these, read like the training file."""
    columns = tagger.columns_ if options.columns is None else options.columns
    source = open_source(data, options=options)
    if source.labels_only:
        raise DataError(f"learning needs documents, but {data} has labels only; add train.*, or give a file")
    options = options.following(tagger.fields_)
    documents = read_for_model(source.train_path, tagger.labels_, columns, options)
    return source.train_path, LearningDocuments(documents, read_rejected(source.train_path, documents, options))


def _check_left(given: LearningDocuments, chosen: LearningDocuments, path: Path) -> None:
    if not given.documents.Y.nnz and not given.rejected.nnz:
        rule = f"learning needs labels, but no document of {path} has any"
        raise DataError(f"{rule}; name the column of the labels: --labels tags")
    if not len(chosen.documents):
        rule = f"learning needs documents that are not held out, but all {len(given.documents):,} of {path} are"
        raise DataError(f"{rule}; give others")


def _unjudged_notes(n: int) -> list[str]:
    """Say how many documents were left out because nothing is known of them."""
    return [f"{n:,} documents have neither labels nor rejected labels, and were left out"] if n else []


def _sample_notes(tagger: Tagger, sample: HeldOut | None) -> list[str]:
    """Store a sample with the model; say so, or why nothing was compared."""
    if sample is None:
        problem = f"there are fewer than {MIN_DOCUMENTS} new documents with labels to put a sample aside of"
        return [f"the versions are not compared: {problem}; give labeled documents: --held-out FILE"]
    tagger.held_out_ = HeldOutDocuments.of(sample.documents)
    n = len(sample.documents)
    return [f"{n:,} of the documents were put aside and stored with the model, to compare its versions"]


def judge(change: Change | None, folder: Path, force: bool) -> list[str]:
    """Return what is to be said about a change for the worse; raise DataError if it is more than noise."""
    if change is None or not change.is_fall:
        return []
    if not change.is_loss:
        return [f"{change}: this may be chance"]
    if force:
        return [f"{change}: more than chance; saved all the same, since --force is given"]
    rule = f"{METRIC} on held-out documents must not fall by more than its noise"
    raise DataError(f"{rule}, but {change}; {folder} is as it was; check the data, or insist: --force")
