"""All labels: names, synonyms, counts, hierarchy, and what a vocabulary says of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from labelspace.errors import DataError
from labelspace.types.arrays import Csr, Ints, Longs
from labelspace.types.concept import NO_CONCEPT, Concept
from labelspace.types.hierarchy import Hierarchy, too_many_levels
from labelspace.types.limits import MAX_LEVELS, MAX_PATH_CHARACTERS
from labelspace.types.name_index import NameIndex

PATH_SEPARATOR = " > "


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

    def __post_init__(self) -> None:
        n = len(self.names)
        for what, values in (
            ("synonym lists", self.synonyms), ("counts", self.counts), ("concepts", self.concepts)
        ):  # fmt: skip
            if values is not None and len(values) != n:
                raise DataError(
                    f"there must be as many {what} as labels, but there are {len(values)} for {n} labels; "
                    "give one per label"
                )

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Name -> id. Duplicate names are an error."""
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
        """URI -> id, of the labels that have one."""
        return {concept.uri: i for i, concept in enumerate(self.concepts or ()) if concept.uri is not None}

    def find(self, label: str) -> int | None:
        """The id of the label with this name or URI, which may be in angle brackets; None where there is none.

        >>> space = LabelSpace(["cat"], concepts=[Concept("http://example.org/p1")])
        >>> space.find("cat"), space.find("<http://example.org/p1>"), space.find("dog")
        (0, 0, None)
        """
        found = self.index.get(label)
        if found is None and self.concepts is not None:
            found = self.uris.get(label[1:-1] if label.startswith("<") and label.endswith(">") else label)
        return found

    def concept(self, label: int) -> Concept:
        """What the vocabulary says of a label; an empty concept where there is none."""
        return NO_CONCEPT if self.concepts is None else self.concepts[label]

    @property
    def are_named(self) -> bool:
        """Whether the names are words, not numbers: some of the first thousand have a letter.

        >>> LabelSpace(["cat", "dog"]).are_named, LabelSpace.numbered(2).are_named
        (True, False)
        """
        return any(any(map(str.isalpha, name)) for name in self.names[:1000])

    @property
    def are_paths(self) -> bool:
        """Whether the names are paths: at least half of them have a parent.

        >>> LabelSpace(["food", "food > bread"]).are_paths, LabelSpace(["food", "bread"]).are_paths
        (True, False)
        """
        n_paths = sum(PATH_SEPARATOR in name and bool(_steps(name)) for name in self.names)
        return 0 < len(self) <= 2 * n_paths

    def with_paths(self, separator: str = PATH_SEPARATOR) -> LabelSpace:
        """The same with the hierarchy of the names as paths; prefixes that are not labels yet are appended.

        Documents often have leaf labels only: without the prefixes there would be one level.

        >>> space = LabelSpace(["food > bread > rye", "food > fish"]).with_paths()
        >>> space.names[2:], space.hierarchy.levels.tolist()
        (['food > bread', 'food'], [2, 1, 1, 0])
        """
        flat = replace(self, hierarchy=None)
        space = flat.extended(self._all_prefixes(separator))
        return replace(space, hierarchy=Hierarchy.from_edges(space._path_edges(space.names, separator), len(space)))

    def _all_prefixes(self, separator: str) -> Iterator[str]:
        """The prefixes of all names, each once."""
        seen: set[str] = set()
        left = MAX_PATH_CHARACTERS.value
        for name in self.names:
            for prefix in prefixes(name, separator):
                if prefix in seen:  # and so are its own
                    break
                left -= len(prefix)
                if left < 0:
                    raise DataError(
                        f"the prefixes of all paths must have at most {MAX_PATH_CHARACTERS.value} characters, but have "
                        f"more; use fewer or shorter steps, or {MAX_PATH_CHARACTERS.raise_it}"
                    )
                seen.add(prefix)
                yield prefix

    def _path_edges(self, names: Iterable[str], separator: str = PATH_SEPARATOR) -> Ints:
        """Rows (child, parent): the nearest prefix of a name that is a label is its parent."""
        nearest = ((name, next(filter(self.index.__contains__, prefixes(name, separator)), None)) for name in names)
        pairs = [(self.index[name], self.index[parent]) for name, parent in nearest if parent is not None]
        return np.array(pairs, np.int32).reshape(-1, 2)

    def texts(self) -> list[str]:
        """Each label's name and synonyms as one text."""
        return [
            ". ".join([name, *also]) for name, also in zip(self.names, self.synonyms or [[]] * len(self), strict=True)
        ]

    @staticmethod
    def numbered(n_labels: int) -> LabelSpace:
        """Labels without names: they are called '0', '1', ..."""
        return LabelSpace([str(i) for i in range(n_labels)])

    def counted(self, Y: Csr) -> LabelSpace:
        """The same with the counts of the training labels Y (n, n_labels)."""
        counts = np.bincount(Y.indices, minlength=len(self)).astype(np.int64)
        return replace(self, counts=counts, n_documents=int(Y.shape[0]))

    def extended(self, names: Iterable[str]) -> LabelSpace:
        """The same with unknown names appended (no synonyms, count 0); existing ids do not change.

        In a hierarchy of paths, the parent of a new path is its nearest prefix; otherwise a new label has no parent.
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
        )
        if self.hierarchy is None:
            return space
        edges = np.concatenate([self.hierarchy.edges, space._path_edges(new if self.are_paths else [])])
        return replace(space, hierarchy=Hierarchy.from_edges(edges, len(space)))


def prefixes(path: str, separator: str = PATH_SEPARATOR) -> Iterator[str]:
    """The prefixes of a path, longest first, each made when asked for; none where a step of the path is blank.

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
    """The steps of a path; none where one is blank."""
    steps = path.split(separator)
    return steps if all(map(str.strip, steps)) else []
