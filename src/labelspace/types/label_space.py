"""All labels: names, synonyms, counts, hierarchy, and their concepts in a vocabulary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from typing import NamedTuple

import numpy as np

from labelspace.errors import DataError
from labelspace.types.arrays import Bools, Csr, Ints, Longs
from labelspace.types.concept import NO_CONCEPT, Concept
from labelspace.types.hierarchy import Hierarchy, too_many_levels
from labelspace.types.limits import MAX_LEVELS, MAX_PATH_CHARACTERS

PATH_SEPARATOR = " > "


class NameIndex(Mapping[str, int]):
    """The number of each name, in 12 bytes a name: for names that are read on demand, which a dict would all keep.

    Names are found by their hashes, and read again to be compared.

    >>> index = NameIndex(("cat", "dog"))
    >>> index["dog"], index.get("cow"), len(index)
    (1, None, 2)
    """

    def __init__(self, names: Sequence[str]) -> None:
        hashes = np.fromiter(map(hash, names), np.int64, len(names))
        order = np.argsort(hashes, kind="stable")
        self._names, self._hashes, self._order = names, hashes[order], order.astype(np.int32)

    def __getitem__(self, name: str) -> int:
        wanted = hash(name)
        for at in range(int(np.searchsorted(self._hashes, wanted)), len(self._hashes)):
            if self._hashes[at] != wanted:
                break
            number = int(self._order[at])
            if self._names[number] == name:
                return number
        raise KeyError(name)

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def duplicate(self) -> str | None:
        """Return a name that occurs twice; None if all names are different."""
        for at in np.flatnonzero(np.diff(self._hashes) == 0).tolist():
            name = self._names[int(self._order[at + 1])]
            if self[name] != int(self._order[at + 1]):
                return name
        return None


class LabelTexts(NamedTuple):
    """What is written about a label: its name, its synonyms, and its description, if it has one."""

    name: str
    synonyms: Sequence[str]
    description: str | None


@dataclass(frozen=True)
class LabelSpace:
    """All labels: names in the order of their ids, synonyms, training counts, hierarchy.

    >>> space = LabelSpace(["cat", "dog"])
    >>> len(space), space.index["dog"]
    (2, 1)
    """

    names: Sequence[str]
    synonyms: Sequence[Sequence[str]] | None = None  # one list per label
    counts: Longs | None = None  # (n_labels,) training documents per label
    n_documents: int = 0  # number of training documents
    hierarchy: Hierarchy | None = None
    concepts: Sequence[Concept] | None = None  # one per label, where the labels are of a vocabulary
    current: Ints | None = None  # (n_labels,) the label that each label was merged into, itself, or -1 if it is retired

    def __post_init__(self) -> None:
        n = len(self.names)
        parts = {
            "synonym lists": self.synonyms,
            "counts": self.counts,
            "concepts": self.concepts,
            "current labels": self.current,
        }
        for what, values in parts.items():
            if values is not None and len(values) != n:
                rule = f"there must be as many {what} as labels, but there are {len(values)} for {n} labels"
                raise DataError(f"{rule}; give one per label")

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Return the id of each name; raise DataError if two labels have the same name."""
        if isinstance(self.names, (list, tuple)):
            index = {name: i for i, name in enumerate(self.names)}
            if len(index) == len(self.names):
                return index
        by_hash = NameIndex(self.names)
        duplicate = by_hash.duplicate()
        if duplicate is not None:
            raise DataError(f"label names must be unique, but {duplicate!r} occurs twice; rename or merge the two")
        return by_hash

    @cached_property
    def uris(self) -> Mapping[str, int]:
        """Return the id of each URI, for labels that have one."""
        return {concept.uri: i for i, concept in enumerate(self.concepts or ()) if concept.uri is not None}

    def find(self, label: str) -> int | None:
        """Return the id of the label with this name or URI, which may be in angle brackets; None if there is none.

        >>> space = LabelSpace(["cat"], concepts=[Concept("http://example.org/p1")])
        >>> space.find("cat"), space.find("<http://example.org/p1>"), space.find("dog")
        (0, 0, None)
        """
        found = self.index.get(label)
        if found is None and self.concepts is not None:
            found = self.uris.get(label[1:-1] if label.startswith("<") and label.endswith(">") else label)
        return found

    def concept(self, label: int) -> Concept:
        """Return the concept of a label in the vocabulary; an empty concept if there is none."""
        return NO_CONCEPT if self.concepts is None else self.concepts[label]

    def shown_synonyms(self, label: int) -> list[str]:
        """Return the synonyms of a label, without hidden ones."""
        if self.synonyms is None:
            return []
        hidden = self.concept(label).hidden
        return [synonym for synonym in self.synonyms[label] if synonym not in hidden]

    @property
    def answered_as(self) -> Ints:
        """Return the label that each label is answered as, -1 for a retired one; see ``current``."""
        return np.arange(len(self), dtype=np.int32) if self.current is None else self.current

    @cached_property
    def answerable(self) -> Bools:
        """Return whether each label, or the label that it was merged into, may be in an answer."""
        return np.ones(len(self), bool) if self.current is None else self.current >= 0

    @cached_property
    def n_merged(self) -> int:
        """Return the number of labels that were merged into others."""
        return 0 if self.current is None else int((self.answerable & ~self.in_use).sum())

    @cached_property
    def in_use(self) -> Bools:
        """Return whether each label may be in an answer: it is neither retired nor merged into another label."""
        ids = np.arange(len(self))
        return np.ones(len(self), bool) if self.current is None else np.asarray(self.current == ids)

    @property
    def are_named(self) -> bool:
        """Return whether the names are words, not numbers: one of the first thousand has a letter.

        >>> LabelSpace(["cat", "dog"]).are_named, LabelSpace.numbered(2).are_named
        (True, False)
        """
        return any(any(map(str.isalpha, name)) for name in self.names[:1000])

    @property
    def are_paths(self) -> bool:
        """Return whether the names are paths: at least half of them have a parent.

        >>> LabelSpace(["food", "food > bread"]).are_paths, LabelSpace(["food", "bread"]).are_paths
        (True, False)
        """
        n_paths = sum(PATH_SEPARATOR in name and bool(_steps(name)) for name in self.names)
        return 0 < len(self) <= 2 * n_paths

    def with_paths(self, separator: str = PATH_SEPARATOR) -> LabelSpace:
        """Return these labels with the hierarchy of their names as paths; new prefixes are appended as labels.

        Documents often have leaf labels only: without the prefixes there would be one level.

        >>> space = LabelSpace(["food > bread > rye", "food > fish"]).with_paths()
        >>> space.names[2:], space.hierarchy.levels.tolist()
        (['food > bread', 'food'], [2, 1, 1, 0])
        """
        flat = replace(self, hierarchy=None)
        space = flat.extended(self._all_prefixes(separator))
        return replace(space, hierarchy=Hierarchy.from_edges(space._path_edges(space.names, separator), len(space)))

    def _all_prefixes(self, separator: str) -> Iterator[str]:
        """Yield the prefixes of all names, each once."""
        seen: set[str] = set()
        left = MAX_PATH_CHARACTERS.value
        for name in self.names:
            for prefix in prefixes(name, separator):
                if prefix in seen:  # and all shorter prefixes too
                    break
                left -= len(prefix)
                if left < 0:
                    limit = MAX_PATH_CHARACTERS
                    rule = f"the prefixes of all paths must have at most {limit.value} characters, but have more"
                    raise DataError(f"{rule}; use fewer or shorter steps, or {limit.raise_it}")
                seen.add(prefix)
                yield prefix

    def _path_edges(self, names: Iterable[str], separator: str = PATH_SEPARATOR) -> Ints:
        """Return rows (child, parent): the parent is the longest prefix of a name that is a label in use."""
        nearest = ((name, next(filter(self._is_in_use, prefixes(name, separator)), None)) for name in names)
        pairs = [(self.index[name], self.index[parent]) for name, parent in nearest if parent is not None]
        return np.array(pairs, np.int32).reshape(-1, 2)

    def _is_in_use(self, name: str) -> bool:
        label = self.index.get(name)
        return label is not None and bool(self.in_use[label])

    def texts(self) -> list[str]:
        """Return each label's name and synonyms as one text."""
        synonyms = self.synonyms or [[]] * len(self)
        return [". ".join([name, *also]) for name, also in zip(self.names, synonyms, strict=True)]

    def described(self) -> Iterator[LabelTexts]:
        """Yield the name, the synonyms and the description of each label, as separate texts.

        >>> space = LabelSpace(["cat", "dog"], [["kitty"], []], concepts=[Concept(description="a pet"), Concept()])
        >>> list(space.described())[0]
        LabelTexts(name='cat', synonyms=['kitty'], description='a pet')
        """
        synonyms = repeat(()) if self.synonyms is None else self.synonyms
        concepts = repeat(NO_CONCEPT) if self.concepts is None else self.concepts
        for name, also, concept in zip(self.names, synonyms, concepts, strict=False):
            yield LabelTexts(name, also, concept.description)

    @staticmethod
    def numbered(n_labels: int) -> LabelSpace:
        """Return labels without names of their own: they are called '0', '1', ..."""
        return LabelSpace([str(i) for i in range(n_labels)])

    @cached_property
    def answered_counts(self) -> Longs:
        """Return the training documents of each label, with those of the labels that were merged into it.

        A document that had several of these counts once for each. A label that is not in use has none.

        >>> counts = np.array([3, 2, 1])
        >>> LabelSpace(["cat", "dog", "kitten"], counts=counts, current=np.array([0, -1, 0])).answered_counts.tolist()
        [4, 0, 0]
        """
        counts = np.zeros(len(self), np.int64) if self.counts is None else self.counts
        if self.current is None:
            return counts
        summed = np.zeros(len(self), np.int64)
        np.add.at(summed, self.current[self.answerable], counts[self.answerable])
        return summed

    def first(self, n: int) -> LabelSpace:
        """Return the first n labels, without a hierarchy.

        >>> LabelSpace(["cat", "dog"]).first(1).names
        ['cat']
        """
        if n >= len(self):
            return self
        synonyms = None if self.synonyms is None else self.synonyms[:n]
        counts = None if self.counts is None else self.counts[:n]
        concepts = None if self.concepts is None else self.concepts[:n]
        current = None if self.current is None else np.where(self.current[:n] < n, self.current[:n], -1)
        return LabelSpace(self.names[:n], synonyms, counts, self.n_documents, concepts=concepts, current=current)

    def counted(self, Y: Csr) -> LabelSpace:
        """Return these labels with the counts of the training labels Y (n, n_labels)."""
        counts = np.bincount(Y.indices, minlength=len(self)).astype(np.int64)
        return replace(self, counts=counts, n_documents=int(Y.shape[0]))

    def counted_with(self, Y: Csr) -> LabelSpace:
        """Return these labels with the labels Y (n, n_labels) of further documents added to their counts.

        >>> from scipy.sparse import csr_matrix
        >>> LabelSpace(["cat", "dog"]).counted_with(csr_matrix([[0, 1], [1, 1]])).counts.tolist()
        [1, 2]
        """
        further = np.bincount(Y.indices, minlength=len(self)).astype(np.int64)
        counts = further if self.counts is None else self.counts + further
        return replace(self, counts=counts, n_documents=self.n_documents + int(Y.shape[0]))

    def extended(self, names: Iterable[str]) -> LabelSpace:
        """Return these labels with unknown names appended (no synonyms, count 0); existing ids do not change.

        In a hierarchy of paths, the parent of a new path is its longest prefix that is a label; otherwise a new label
        has no parent.
        """
        new = [name for name in dict.fromkeys(names) if name not in self.index]
        if not new:
            return self
        space = LabelSpace(
            [*self.names, *new],
            None if self.synonyms is None else [*self.synonyms, *([] for _ in new)],
            None if self.counts is None else np.concatenate([self.counts, np.zeros(len(new), np.int64)]),
            self.n_documents,
            concepts=None if self.concepts is None else [*self.concepts, *(NO_CONCEPT for _ in new)],
            current=None if self.current is None else _with_new(self.current, len(new)),
        )
        if self.hierarchy is None:
            return space
        edges = np.concatenate([self.hierarchy.edges, space._path_edges(new if self.are_paths else [])])
        return replace(space, hierarchy=Hierarchy.from_edges(edges, len(space)))


def _with_new(current: Ints, n_new: int) -> Ints:
    """Return the current labels with new ones, which are themselves."""
    return np.append(current, np.arange(len(current), len(current) + n_new)).astype(np.int32)


def prefixes(path: str, separator: str = PATH_SEPARATOR) -> Iterator[str]:
    """Yield the prefixes of a path, longest first; none if a step of the path is blank.

    >>> list(prefixes("food > bread > rye"))
    ['food > bread', 'food']
    """
    steps = _steps(path, separator)
    if len(steps) > MAX_LEVELS.value:
        raise too_many_levels(MAX_LEVELS.value, f"the path {path[:40] + '...'!r}")
    end = len(path)
    for step in reversed(steps[1:]):
        end -= len(separator) + len(step)
        yield path[:end]


def _steps(path: str, separator: str = PATH_SEPARATOR) -> list[str]:
    """Return the steps of a path; none if a step is blank."""
    steps = path.split(separator)
    return steps if all(map(str.strip, steps)) else []
