"""A cleaned copy of data: what is certain is fixed, and every change is counted.

1. Wrong encodings are restored, and control characters removed, in texts and label names of all splits.
2. Spellings of one label name are merged into the most frequent one, in all splits.
3. Edges of the hierarchy that others imply are removed.
4. Train and dev lose empty documents, duplicates (the first one stays), and documents that a later split has too.

No document of test is removed. Documents with one text and different labels stay: which labels are right is not
certain.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from labelspace.data.checks import CHECKS, Documents
from labelspace.data.checks.base import TEST
from labelspace.data.checks.document_checks import has_own_ids, leaked, repeated
from labelspace.data.checks.label_checks import redundant_edges, spellings
from labelspace.data.conversion import write_file, write_folder
from labelspace.data.label_mapping import merged_columns, merged_labels, widened
from labelspace.data.text_repair import ungarbled, without_control
from labelspace.errors import DataError
from labelspace.store.atomic import replacing_folder
from labelspace.types import Bools, Dataset, Hierarchy, Longs

FIXED = tuple(name for name, check in CHECKS.items() if check.fixed)


@dataclass
class Cleaned:
    """The cleaned documents, and the number of changes of each kind, by the check that found the reason."""

    documents: Documents
    changes: dict[str, dict[str, int]] = field(default_factory=dict)
    merged: dict[str, str] = field(default_factory=dict)  # label names that are gone, and those in their place

    def count(self, check: str, what: str, number: int) -> None:
        """Note a change."""
        if number:
            self.changes.setdefault(check, {})[what] = number


def clean(documents: Documents, names: Collection[str] = FIXED) -> Cleaned:
    """Return the documents with everything fixed that these checks find, if the fix is certain."""
    cleaned = Cleaned(_with_one_label_space(documents))
    repairs: dict[str, Callable[[str], str]] = {"wrong_encoding": ungarbled, "control_characters": without_control}
    for check in (check for check in repairs if check in names):
        _repair(cleaned, check, repairs[check])
    if "near_duplicate_labels" in names:
        _merge_spellings(cleaned)
    if "redundant_edges" in names:
        _remove_edges(cleaned)
    marks: dict[str, Callable[[Documents], Bools]] = {
        "empty_documents": lambda documents: documents.empty,
        "leaked_documents": leaked,
        "duplicate_documents": repeated,
    }
    for check in (check for check in marks if check in names):
        _remove(cleaned, check, marks[check](cleaned.documents))
    return cleaned


def _with_one_label_space(documents: Documents) -> Documents:
    """Return the documents with the labels of all splits in each, without ids that are only row numbers."""
    labels = documents.labels

    def widen(part: Dataset) -> Dataset:
        ids = part.ids if has_own_ids(part) else None
        return replace(part, Y=widened(part.Y, len(labels)), labels=labels, ids=ids)

    return documents.changed(widen)


def _repair(cleaned: Cleaned, check: str, repair: Callable[[str], str]) -> None:
    """Repair texts and label names; two names that become one are merged (step 1)."""
    documents, parts = cleaned.documents, {}
    for name, part in documents.parts.items():
        texts = None if part.texts is None else [repair(text) for text in part.texts]
        cleaned.count(check, f"texts of {name}", _n_changed(part.texts or (), texts or ()))
        parts[name] = replace(part, texts=texts)
    old = documents.labels.names
    new = [repair(name) or name for name in documents.labels.names]
    cleaned.count(check, "names of labels", _n_changed(old, new))
    first = {name: label for label, name in reversed(list(enumerate(new)))}
    renamed = replace(documents, parts=parts)
    if _n_changed(old, new):
        cleaned.merged |= {a: b for a, b in zip(old, new, strict=True) if a != b}
        renamed = with_labels(renamed, np.array([first[name] for name in new], np.int64), new)
    cleaned.documents = renamed


def _n_changed(old: Sequence[str], new: Sequence[str]) -> int:
    return sum(a != b for a, b in zip(old, new, strict=True))


def _merge_spellings(cleaned: Cleaned) -> None:
    """Merge spellings of one label name (step 2)."""
    documents = cleaned.documents
    if not documents.labels.are_named:
        return
    into = np.arange(len(documents.labels))
    names = documents.labels.names
    for best, *others in spellings(documents):
        into[others] = best
        cleaned.merged |= {names[label]: names[best] for label in others}
    n_merged = int((into != np.arange(len(into))).sum())
    cleaned.count("near_duplicate_labels", "labels merged", n_merged)
    if n_merged:
        cleaned.documents = with_labels(documents, into, names)


def with_labels(documents: Documents, into: Longs, names: Sequence[str]) -> Documents:
    """Return the documents with other names of labels, where label l becomes the label ``into[l]``.

    Synonyms and edges go with the labels, except for edges from a label to itself; a circle is an error.
    """
    labels, number = merged_labels(documents.labels, into, names)
    return documents.changed(lambda part: replace(part, Y=merged_columns(part.Y, number, len(labels)), labels=labels))


def _remove_edges(cleaned: Cleaned) -> None:
    """Remove edges of the hierarchy that others imply (step 3)."""
    labels = cleaned.documents.labels
    if labels.hierarchy is None:
        return
    redundant, edges = redundant_edges(labels.hierarchy).astype(np.int64), labels.hierarchy.edges.astype(np.int64)
    cleaned.count("redundant_edges", "edges removed", len(redundant))
    n = len(labels)
    kept = ~np.isin(edges[:, 0] * n + edges[:, 1], redundant[:, 0] * n + redundant[:, 1])
    labels = replace(labels, hierarchy=Hierarchy.from_edges(edges[kept], n))
    cleaned.documents = cleaned.documents.changed(lambda part: replace(part, labels=labels))


def _remove(cleaned: Cleaned, check: str, marks: Bools) -> None:
    """Remove the marked documents from train and dev; each keeps at least one (step 4)."""
    documents, parts = cleaned.documents, {}
    for name, part in documents.parts.items():
        start = documents.starts[name]
        kept = np.flatnonzero(~marks[start : start + len(part)] | (name == TEST))
        if not len(kept):
            problem = f"{check} would remove all {len(part):,}; leave it out: skip={check}"
            raise DataError(f"{name} must keep a document, but {problem}", options=["skip="])
        cleaned.count(check, f"documents removed from {name}", len(part) - len(kept))
        parts[name] = part if len(kept) == len(part) else part.rows(kept)
    cleaned.documents = replace(documents, parts=parts)


def check_new(target: str | Path) -> None:
    """Raise DataError if a target exists: nothing is replaced."""
    path = Path(target)
    if path.is_file() or (path.is_dir() and any(path.iterdir())):
        raise DataError(f"the cleaned copy must be a new file or folder, but {path} exists; give another name")


def write_cleaned(cleaned: Cleaned, source: Path, target: str | Path) -> Mapping[Path, Dataset]:
    """Write the splits in the formats of their files: to a folder if the source is one, else to a file."""
    check_new(target)
    documents = cleaned.documents
    target = Path(target)
    if source.is_dir():
        splits = {documents.paths[name].name: part for name, part in documents.parts.items()}
        with replacing_folder(target, lambda folder: None) as work:  # all of it or nothing
            write_folder(work, splits)
        return {target / name: part for name, part in splits.items()}
    return write_file(target, documents.train)
