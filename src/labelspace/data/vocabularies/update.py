"""Vocabulary -> ``labels.jsonl`` and ``hierarchy.tsv`` of a folder, new or with labels from before.

1. Two labels are one if their URIs are equal; if one of the two has no URI, if their names are.
2. Labels from before keep their line, which is their id: training data with ids stay valid. New ones are appended.
3. Labels that the vocabulary does not have any more stay, with their parents: documents are labeled with them.
   ``gone.txt`` lists them, for ``labelspace predict --exclude``.
4. A label keeps its name as long as the vocabulary does not change that name, also if a new label has it too.
5. A table without the column ``broader`` says nothing of the hierarchy: that from before stays.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from operator import ne
from pathlib import Path

import numpy as np

from labelspace.data.files import lines, replacing, writing_text
from labelspace.data.label_files import HIERARCHY, LABELS, read_hierarchy, read_labels, write_hierarchy, write_labels
from labelspace.data.vocabularies.matching import Matching, synonyms_of
from labelspace.data.vocabularies.naming import Naming, most_frequent_language
from labelspace.data.vocabularies.vocabulary import Note, Vocabulary
from labelspace.types import Concept, Ints, LabelSpace, Longs

GONE = "gone.txt"
_SAMPLED = 1000  # labels by which the language of a folder is recognized
_SHOWN = 3  # examples in a note


@dataclass(frozen=True)
class LabelsBefore:
    """The labels of a folder before an import. Read them before the vocabulary: that needs the least memory."""

    labels: LabelSpace
    gone: frozenset[str] = frozenset()  # names in ``gone.txt``

    @staticmethod
    def of(folder: Path) -> "LabelsBefore":
        """Read the files of the folder; none of them need be there."""
        labels, hierarchy, gone = (folder / name for name in (LABELS, HIERARCHY, GONE))
        if not labels.exists():
            return LabelsBefore(LabelSpace([]))
        known = read_labels(labels)
        names = frozenset(line.rstrip("\r\n") for _, line in lines(gone)) if gone.exists() else frozenset[str]()
        return LabelsBefore(read_hierarchy(hierarchy, known) if hierarchy.exists() else known, names)


@dataclass(frozen=True)
class Update:
    """The labels of a folder before and after an import, and the ids of changed labels by kind of change."""

    before: LabelSpace
    after: LabelSpace
    language: str
    changes: dict[str, Sequence[int]]  # "new", "renamed", "changed", "gone", "returned"; "gone" has earlier ones too
    n_newly_gone: int  # and not in the import before
    notes: list[Note]

    def write(self, folder: Path) -> list[Path]:
        """Write the files of the folder, which are replaced together at the end; return the files with labels."""
        gone = [self.after.names[label] for label in self.changes["gone"]]
        with ExitStack() as files:
            write_labels(files.enter_context(replacing(folder / LABELS)), self.after)
            if self.after.hierarchy is not None:
                write_hierarchy(files.enter_context(replacing(folder / HIERARCHY)), self.after)
            if gone:
                file = files.enter_context(writing_text(folder / GONE))
                file.writelines(f"{name}\n" for name in gone)
        written = {LABELS: True, HIERARCHY: self.after.hierarchy is not None, GONE: bool(gone)}
        for name, is_written in written.items():
            if not is_written:
                (folder / name).unlink(missing_ok=True)
        return [folder / name for name, is_written in written.items() if is_written]


def plan_update(vocabulary: Vocabulary, known: LabelsBefore, language: str | None = None) -> Update:
    """Return what an import will write into a folder with these labels.

    By default, names are in the language of the folder, else in the language with the most names.
    """
    before, missing = known.labels, known.gone
    if language is None:
        language = _language_of(before) or most_frequent_language(vocabulary)
    naming = Naming(vocabulary, language.lower())
    matching = Matching.of(before, naming)
    after, cut = matching.labels()
    stays = matching.rows[: len(before)] >= 0
    is_renamed = np.fromiter(map(ne, before.names, after.names), bool, len(before))
    changes: dict[str, Sequence[int]] = {
        "new": range(len(before), len(after)),
        "renamed": np.flatnonzero(stays & is_renamed).tolist(),
        "changed": _changed(before, after, np.flatnonzero(stays & ~is_renamed)),
        "gone": np.flatnonzero(~stays).tolist(),
        "returned": [label for label, name in enumerate(before.names) if name in missing and stays[label]],
    }
    notes = [*vocabulary.notes, *naming.notes(), _homonym_note(matching.homonyms), _cycle_note(matching.names, cut)]
    n_newly_gone = sum(before.names[label] not in missing for label in changes["gone"])
    return Update(before, after, naming.language, changes, n_newly_gone, [note for note in notes if note.count])


def _language_of(labels: LabelSpace) -> str | None:
    """Return the language in which most of the first labels are named."""
    counts = Counter(
        language
        for name, concept in islice(zip(labels.names, labels.concepts or (), strict=False), _SAMPLED)
        for language, other in concept.names.items()
        if other == name
    )
    return max(counts, key=lambda language: (counts[language], language)) if counts else None


def _changed(before: LabelSpace, after: LabelSpace, labels: Ints | Longs) -> list[int]:
    """Keep the labels whose synonyms, notation, URI or names in other languages differ."""

    def content(space: LabelSpace, label: int) -> tuple[list[str], Concept]:
        return synonyms_of(space, label), space.concept(label)

    return [label for label in map(int, labels) if content(before, label) != content(after, label)]


def _homonym_note(names: list[str]) -> Note:
    text = "names of several concepts, made unique by the notation or the end of the URI"
    return Note("homonyms", len(names), f"{text} (such as {_listed(names)})")


def _cycle_note(names: list[str], cut: Longs) -> Note:
    shown = _listed(f"{names[child]} -> {names[parent]}" for child, parent in cut[:_SHOWN].tolist())
    return Note("cycles", len(cut), f"links that close a cycle of the hierarchy, cut (such as {shown})")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in islice(names, _SHOWN))
