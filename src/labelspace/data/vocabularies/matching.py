"""Concepts of a vocabulary and the labels from before: which is which, and the labels that result."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from labelspace.data.vocabularies.naming import Naming, last_part, unique_names
from labelspace.data.vocabularies.vocabulary import Computed, Vocabulary
from labelspace.types import NO_CONCEPT, Concept, Hierarchy, LabelSpace, Longs


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
    def of(before: LabelSpace, naming: Naming) -> "Matching":
        """Match by URI, or by name if one of the two has no URI."""
        vocabulary = naming.vocabulary
        bases = naming.bases()
        ids = _ids(vocabulary, bases, before)
        rows = np.full(max(len(before), int(ids.max(initial=-1)) + 1), -1, np.int64)
        rows[ids] = np.arange(len(ids))
        kept: list[str | None] = [None] * len(bases)
        for row in np.flatnonzero(ids < len(before)).tolist():
            label = int(ids[row])
            name = before.names[label]
            of_vocabulary = before.concept(label).names.get(naming.language)
            if bases[row] in (name, of_vocabulary):
                kept[row] = name
        gone = (before.names[label] for label in np.flatnonzero(rows < 0).tolist())
        names, homonyms = unique_names(bases, kept, gone, _endings(vocabulary))
        return Matching(before, naming, ids, rows, names, homonyms)

    def name(self, label: int) -> str:
        """Return the name of a label after the update."""
        row = self.rows[label]
        return self.before.names[label] if row < 0 else self.names[row]

    def synonyms(self, label: int) -> list[str]:
        """Return the synonyms of a label after the update; hidden ones last."""
        row = int(self.rows[label])
        return synonyms_of(self.before, label) if row < 0 else self.naming.synonyms(row, self.names[row])

    def concept(self, label: int) -> Concept:
        """Return the concept of a label after the update; a list or table without URIs leaves the URI as it was."""
        row = int(self.rows[label])
        old = self.before.concept(label) if label < len(self.before) else NO_CONCEPT
        if row < 0:
            return old
        new = self.naming.concept(row, self.names[row])
        return new if new.uri is not None else replace(new, uri=old.uri)

    def labels(self) -> tuple[LabelSpace, Longs]:
        """Return the updated labels, and the links between concepts that were cut since they close a cycle."""
        n = len(self.rows)
        names = [self.name(label) for label in range(n)]
        edges, cut = self._edges()
        hierarchy = Hierarchy.from_edges(edges, n, names) if len(edges) else None
        synonyms, concepts = Computed(n, self.synonyms), Computed(n, self.concept)
        return LabelSpace(names, synonyms, hierarchy=hierarchy, concepts=concepts), cut

    def _edges(self) -> tuple[Longs, Longs]:
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


def _endings(vocabulary: Vocabulary) -> Callable[[int], list[str]]:
    """Return a function that gives what may be appended to the name of a row, for ``unique_names``."""

    def endings(row: int) -> list[str]:
        uri = vocabulary.uris[row]
        choices = (vocabulary.notation(row), None if uri is None else last_part(uri), uri)
        return [choice for choice in choices if choice]

    return endings


_NONE = -1


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
            parent = next(way[child], _NONE)
            if parent == _NONE:
                finished.add(child)
                del way[child]
            elif parent in way:
                found.append((child, parent))
            elif parent not in finished:
                way[parent] = iter(parents[parent])
    return found
