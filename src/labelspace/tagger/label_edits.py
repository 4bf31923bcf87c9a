"""Make a list of label edits of a tagger, as a whole or not at all, and make them a version of a saved model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeVar, cast, get_args

from labelspace import store
from labelspace.data.label_edit_files import EditRow
from labelspace.data.objects.inputs import Documents
from labelspace.data.records import Location
from labelspace.errors import DataError, LabelspaceError
from labelspace.features.views import n_rows
from labelspace.labels import edits
from labelspace.tagger import learning
from labelspace.tagger.lineage import UNKNOWN, Origin, Version, labels_version
from labelspace.tagger.tagger import Tagger
from labelspace.tagger.versions import VersionedModel, open_versioned
from labelspace.types import LabelSpace

Action = Literal["add", "retire", "rename", "merge"]
OTHER = {"rename": "new", "merge": "into"}  # the column with the other name of an edit
T = TypeVar("T")


@dataclass(frozen=True)
class LabelEdit:
    """An edit of one label.

    >>> LabelEdit("merge", "kitten", other="cat").done(LabelSpace(["cat", "kitten"]))
    "merged 'kitten' into 'cat'"
    """

    action: Action
    label: str
    other: str | None = None  # the new name, or the label that it is merged into
    alt: tuple[str, ...] = ()
    description: str | None = None  # None leaves it as it is, an empty one removes it
    examples: Documents | None = None
    where: Location | None = field(default=None, compare=False)  # in a file, for messages

    def apply(self, labels: LabelSpace) -> LabelSpace:
        """Return the edited labels."""
        if self.action == "add":
            return edits.added(labels, self.label, self.alt, self.description)[0]
        label = edits.label_in_use(labels, self.label)
        if self.action == "retire":
            return edits.retired(labels, label)
        other = self.other or ""
        if self.action == "rename":
            return edits.renamed(labels, label, other)
        return edits.merged(labels, label, edits.label_in_use(labels, other))

    def done(self, before: LabelSpace) -> str:
        """Say what changed, from the labels before."""
        if self.action == "retire":
            return f"retired {self.label!r}"
        if self.action == "rename":
            return f"renamed {self.label!r} to {self.other!r}"
        if self.action == "merge":
            return f"merged {self.label!r} into {self.other!r}"
        known = before.find(self.label)
        if known is None:
            said = f"added {self.label!r}"
        elif before.in_use[known]:
            said = f"described {self.label!r}"
        else:
            said = f"brought back {self.label!r}"
        n_examples = 0 if self.examples is None else n_rows(self.examples)
        counts = {"synonym": len(self.alt), "document": n_examples}
        given = [f"{n:,} {what}{'' if n == 1 else 's'}" for what, n in counts.items() if n]
        if self.description is not None:
            given.append("a description" if self.description.strip() else "no description")
        listed = " and ".join([", ".join(given[:-1]), given[-1]] if given[:-1] else given)
        return f"{said} with {listed}" if given else said


def edits_of_rows(rows: Iterable[EditRow], action: Action | None) -> list[LabelEdit]:
    """Return the edits of the rows of a file, all of one action; None takes the action of each row."""
    made = []
    for row in rows:
        given = dict(row.given)
        label = given.pop("label", "")
        named = cast(Action, given.pop("action", action))  # checked below
        if not label:
            raise row.where.expected("the name of a label", "there is none", "write it in the column 'label'")
        if named not in get_args(Action) or action not in (None, named):
            wanted = f"{action!r}" if action else ", ".join(get_args(Action))
            raise row.where.expected(f"the action {wanted}", f"found {str(named)[:60]!r}", "correct it")
        needed = OTHER.get(named)
        if needed is not None and needed not in given:
            raise row.where.expected(f"{needed!r} for the action {named}", "there is none", "write it in that column")
        other = None if needed is None else given.pop(needed)
        description = given.pop("description", None) if named == "add" else None
        moot = [*given, *(["alt"] if row.alt and named != "add" else [])]
        if moot:
            raise row.where.expected(f"no {moot[0]!r} for the action {named}", "there is one", "leave it out")
        made.append(LabelEdit(named, label, other, row.alt, description, where=row.where))
    return made


def edit_labels(tagger: Tagger, wanted: Sequence[LabelEdit]) -> list[str]:
    """Make all edits in their order, or none if one cannot be made; return what each changed.

    >>> tagger = Tagger("neighbors").fit(["bake bread", "grill fish"] * 2, [["baking"], ["fish"]] * 2)
    >>> edit_labels(tagger, [LabelEdit("rename", "fish", "seafood"), LabelEdit("add", "rye", alt=("rye bread",))])
    ["renamed 'fish' to 'seafood'", "added 'rye' with 1 synonym"]
    """
    tagger.check_fitted()
    said = []
    with learning.whole_edit(tagger), labels_version(tagger):
        labels = tagger.labels_ if len(wanted) < 2 else _read(tagger.labels_)
        for edit in wanted:
            try:
                done = edit.done(labels)
                if edit.examples is None:
                    labels = edit.apply(labels)
                else:
                    _give(tagger, labels)
                    tagger.add_label(edit.label, edit.examples, alt=edit.alt, description=edit.description)
                    labels = tagger.labels_
            except LabelspaceError as error:
                if edit.where is None:
                    raise
                raise DataError(f"{edit.where.path}:{edit.where.line}: {error}; no edit was made") from error
            said.append(done)
        _give(tagger, labels)
    return said


def _read(labels: LabelSpace) -> LabelSpace:
    """Return labels whose names are in memory, for many edits: names of a saved model are read on demand."""
    synonyms = None if labels.synonyms is None else list(map(list, labels.synonyms))
    concepts = None if labels.concepts is None else list(labels.concepts)
    return replace(labels, names=list(labels.names), synonyms=synonyms, concepts=concepts)


def _give(tagger: Tagger, labels: LabelSpace) -> None:
    if labels is not tagger.labels_:
        learning.set_labels(tagger, labels)


def edit_saved(
    folder: Path,
    edit: Callable[[Tagger], T],
    *,
    origin: Origin = UNKNOWN,
    n_kept: int = store.KEPT,
    dry_run: bool = False,
) -> tuple[T, Tagger, Version]:
    """Edit the labels of a saved model, as its next version; return what ``edit`` does, and the edited tagger.

    With ``dry_run``, nothing is written.
    """
    store.read_manifest(folder)
    if not dry_run:
        store.check_writable(folder)
    with open_versioned(folder, is_changed=not dry_run) as versions:
        tagger = Tagger.load(folder)
        found = edit(tagger)
        made = next_version(tagger, versions, origin)
        if not dry_run:
            versions.add(tagger, made, n_kept)
    return found, tagger, made


def next_version(tagger: Tagger, versions: VersionedModel, origin: Origin = UNKNOWN) -> Version:
    """Return the version of a tagger whose labels have just been edited, as the next one of the saved model."""
    made = tagger.lineage_[-1]
    return replace(made, number=versions.next_number(), data=origin.data, sha256=origin.sha256)
