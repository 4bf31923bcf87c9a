"""Edits of labels that a request asks for: each makes a version of the model."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from labelspace.errors import DataError
from labelspace.labels import edits
from labelspace.models.capabilities import AddsLabels, PartialFit, require
from labelspace.server.database import Database
from labelspace.server.learning.learned_batches import settle
from labelspace.tagger import Tagger
from labelspace.tagger.label_edits import LabelEdit, edit_labels, next_version
from labelspace.tagger.versions import open_versioned
from labelspace.types import Progress

Action = Literal["add", "change", "retire", "merge"]


@dataclass(frozen=True)
class LabelRequest:
    """An edit of a label, which is named by its unique name."""

    action: Action
    label: str
    name: str | None = None  # the new name
    into: str | None = None  # the label that it is merged into
    alt: tuple[str, ...] = ()
    description: str | None = None  # None leaves it as it is, an empty one removes it
    examples: tuple[str, ...] = ()

    def check(self, tagger: Tagger) -> None:
        """Raise an error for an edit that cannot be made of a model, before anything is done."""
        labels = tagger.labels_
        if self.description is not None:
            edits.check_description(self.description)
        if self.action == "add":
            known = labels.find(self.label)
            if known is None or labels.in_use[known]:
                edits.check_new_name(labels, self.label)
            is_placed = isinstance(tagger.model, AddsLabels) and bool(self.examples)
            if known is None and not is_placed:
                require(tagger.model, PartialFit)
            return
        label = edits.label_in_use(labels, self.label)
        if self.name is not None:
            edits.check_new_name(labels, self.name)
        if self.into is not None and edits.label_in_use(labels, self.into) == label:
            raise DataError(f"a label is merged into another one, but {self.label!r} is given twice; name another one")

    def edits(self) -> list[LabelEdit]:
        """Return the edits of the library that make up this request."""
        if self.action == "add":
            examples = list(self.examples) or None
            return [LabelEdit("add", self.label, alt=self.alt, description=self.description, examples=examples)]
        if self.action == "retire":
            return [LabelEdit("retire", self.label)]
        if self.action == "merge":
            return [LabelEdit("merge", self.label, self.into)]
        renamed = [] if self.name is None else [LabelEdit("rename", self.label, self.name)]
        described = LabelEdit("add", self.name or self.label, alt=self.alt, description=self.description)
        is_described = bool(self.alt) or self.description is not None
        return [*renamed, *([described] if is_described else [])]


def edit_model(
    folder: Path, database: Database, model: str, progress: Progress, edit: LabelRequest, n_kept: int
) -> dict[str, Any]:
    """Edit the labels of the model of a folder, as a new version; return what was done as plain values."""
    with open_versioned(folder) as versions:
        tagger = Tagger.load(folder)
        progress("editing labels", 0, 1)
        edit.check(tagger)
        edit_labels(tagger, edit.edits())
        version = next_version(tagger, versions)
        versions.add(tagger, version, n_kept)
        settle(database, model, versions.lineage)
    return {
        "action": edit.action,
        "label": edit.name or edit.label,
        "swapped": True,
        "version": version.number,
        "n_labels": version.n_labels,
    }
