"""Vocabulary -> ``labels.jsonl`` and ``hierarchy.tsv`` of a folder, new or with labels from before.

1. Two labels are one if their URIs are equal; if one of the two has no URI, if their names are.
2. Labels from before keep their line, which is their id: training data with ids stay valid. New ones are appended.
3. Labels that the vocabulary does not have any more stay, with their parents: documents are labeled with them.
   ``gone.txt`` lists them, for ``labelspace predict --exclude``.
4. A label keeps its name as long as the vocabulary does not change that name, also if a new label has it too.
5. A table without the column ``broader`` says nothing of the hierarchy: that from before stays.
"""

from collections import Counter
from collections.abc import Container, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from operator import ne
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from labelspace.data.files import lines, replacing, writing_text
from labelspace.data.label_files import HIERARCHY, LABELS, read_hierarchy, read_labels, write_hierarchy, write_labels
from labelspace.data.vocabularies.vocabulary import NO_LANGUAGE, Computed, Naming, Note, Vocabulary, unique_names
from labelspace.types import NO_CONCEPT, Concept, Hierarchy, Ints, LabelSpace, Longs


@dataclass(frozen=True)
class Matching:
    """The label of each concept; labels from before have their ids, and keep their names if these are still right."""

    before: LabelSpace
    naming: Naming
    ids: Longs  # (n_concepts,) the label of each concept
    rows: Longs  # (n_labels,) the concept of each label, -1 where the vocabulary has none
    names: list[str]  # of each concept, unique
    homonyms: list[str]  # those of them that were made unique

    @staticmethod
    def of(before: LabelSpace, naming: Naming, released: Container[int] = ()) -> "Matching":
        """Match by URI, or by name if one of the two has no URI; ``released`` labels do not keep their names."""
        vocabulary = naming.vocabulary
        bases = naming.bases()
        ids = _ids(vocabulary, bases, before)
        rows = np.full(max(len(before), int(ids.max(initial=-1)) + 1), -1, np.int64)
        rows[ids] = np.arange(len(ids))
        kept: list[str | None] = [None] * len(bases)
        for row in np.flatnonzero(ids < len(before)).tolist():
            label = int(ids[row])
            name = before.names[label]
            if bases[row] in (name, before.concept(label).names.get(naming.language)):
                kept[row] = name
        gone = (before.names[label] for label in np.flatnonzero(rows < 0).tolist() if label not in released)
        names, homonyms = unique_names(bases, kept, gone, vocabulary.endings)
        return Matching(before, naming, ids, rows, names, homonyms)

    def synonyms(self, label: int) -> list[str]:
        """Return the synonyms of a label after the update; hidden ones last."""
        row = int(self.rows[label])
        return synonyms_of(self.before, label) if row < 0 else self.naming.synonyms(row, self.names[row])

    def concept(self, label: int) -> Concept:
        """Return the concept of a label after the update.

        A list or table without URIs leaves the URI as it was; a concept without a description, the description.
        """
        row = int(self.rows[label])
        old = self.before.concept(label) if label < len(self.before) else NO_CONCEPT
        if row < 0:
            return old
        new = self.naming.concept(row, self.names[row])
        return replace(new, uri=new.uri or old.uri, description=new.description or old.description)

    def labels(self) -> tuple[LabelSpace, Longs]:
        """Return the updated labels, and the links between concepts that were cut since they close a cycle."""
        n = len(self.rows)
        names = [self.before.names[label] if row < 0 else self.names[row] for label, row in enumerate(self.rows)]
        edges, cut = self.edges()
        hierarchy = Hierarchy.from_edges(edges, n, names) if len(edges) else None
        synonyms, concepts = Computed(n, self.synonyms), Computed(n, self.concept)
        return LabelSpace(names, synonyms, hierarchy=hierarchy, concepts=concepts), cut

    def edges(self) -> tuple[Longs, Longs]:
        """Return the edges between labels, and the links between concepts that close a cycle.

        Labels that are gone keep their parents: no other label has one of them as a parent, so there is no cycle.
        """
        none = np.zeros((0, 2), np.int64)
        vocabulary = self.naming.vocabulary
        old = none if self.before.hierarchy is None else self.before.hierarchy.edges.astype(np.int64)
        if vocabulary.broader is None:
            return old, none
        links, cut = without_cycles(vocabulary.broader, len(vocabulary))
        return np.concatenate([self.ids[links], old[self.rows[old[:, 0]] < 0]]), cut


def synonyms_of(labels: LabelSpace, label: int) -> list[str]:
    """Return the synonyms of a label."""
    return [] if labels.synonyms is None else list(labels.synonyms[label])


def _ids(vocabulary: Vocabulary, bases: list[str], before: LabelSpace) -> Longs:
    """Return the label id of each concept: that of the label from before, or the next one. Shape (n_concepts,)."""
    ids, used, following = np.zeros(len(vocabulary), np.int64), np.zeros(len(before), bool), len(before)
    for row, (uri, base) in enumerate(zip(vocabulary.uris, bases, strict=True)):
        found = None if uri is None else before.uris.get(uri)
        if found is None:
            found = before.index.get(base)
            if found is not None and uri is not None and before.concept(found).uri is not None:
                found = None  # another concept of the same name
        if found is None or used[found]:
            found, following = following, following + 1
        else:
            used[found] = True
        ids[row] = found
    return ids


def without_cycles(edges: Longs, n: int) -> tuple[Longs, Longs]:
    """Return the edges (child, parent) without those that close a cycle, and those that do.

    Some published vocabularies have cycles, which a hierarchy must not have. Equal edges give equal results.

    >>> kept, cut = without_cycles(np.array([[0, 1], [1, 0], [2, 0], [3, 3]]), n=4)
    >>> kept.tolist(), cut.tolist()
    ([[0, 1], [2, 0]], [[1, 0], [3, 3]])
    """
    graph = sp.csr_matrix((np.ones(len(edges), np.int8), (edges[:, 0], edges[:, 1])), shape=(n, n))
    _, component = connected_components(graph, directed=True, connection="strong")
    suspects = np.flatnonzero(component[edges[:, 0]] == component[edges[:, 1]])
    closing = set(_closing_edges(list(map(tuple, edges[suspects].tolist()))))
    cut = np.zeros(len(edges), bool)
    cut[suspects] = [tuple(edge) in closing for edge in edges[suspects].tolist()]
    return edges[~cut], edges[cut]


def _closing_edges(edges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the edges that lead back to a node on the path of a depth-first search."""
    parents: dict[int, list[int]] = {}
    for child, parent in edges:
        parents.setdefault(child, []).append(parent)
    found, finished = list[tuple[int, int]](), set[int]()
    for start in sorted(parents):
        way = {start: iter(parents[start])} if start not in finished else {}
        while way:
            child = next(reversed(way))
            parent = next(way[child], -1)
            if parent < 0:
                finished.add(child)
                del way[child]
            elif parent in way:
                found.append((child, parent))
            elif parent not in finished:
                way[parent] = iter(parents[parent])
    return found


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
                files.enter_context(writing_text(folder / GONE)).writelines(f"{name}\n" for name in gone)
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
        language = usual_language(vocabulary, before)
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
    links = [f"{matching.names[child]} -> {matching.names[parent]}" for child, parent in cut.tolist()]
    homonyms = "names of several concepts, made unique by the notation or the end of the URI"
    notes = [*vocabulary.notes, *naming.notes(), example_note("homonyms", homonyms, matching.homonyms)]
    notes.append(example_note("cycles", "links that close a cycle of the hierarchy, cut", links))
    n_newly_gone = sum(before.names[label] not in missing for label in changes["gone"])
    return Update(before, after, naming.language, changes, n_newly_gone, [note for note in notes if note.count])


def usual_language(vocabulary: Vocabulary, before: LabelSpace) -> str:
    """Return the language of the labels before, else that of most names of the vocabulary."""
    return _language_of(before) or next(iter(vocabulary.languages()), NO_LANGUAGE)


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
    """Keep the labels whose synonyms, notation, URI, names in other languages or description differ."""

    def content(space: LabelSpace, label: int) -> tuple[list[str], Concept]:
        return synonyms_of(space, label), space.concept(label)

    return [label for label in map(int, labels) if content(before, label) != content(after, label)]


def example_note(key: str, text: str, names: Sequence[str]) -> Note:
    """Return a note with the first names as examples."""
    return Note(key, len(names), f"{text} (such as {', '.join(map(repr, names[:_SHOWN]))})")
