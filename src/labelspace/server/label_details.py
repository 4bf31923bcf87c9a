"""Describe labels for answers: name, path from the root, URI, notation, and levels of the hierarchy."""

from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from labelspace.errors import ParameterError
from labelspace.labels.selection import label_of
from labelspace.types import PATH_SEPARATOR, Csr, LabelSpace

CACHED = 20_000  # labels whose fields are kept; more save time for large vocabularies, and take memory
SAMPLED = 1000  # labels whose languages are read: reading all takes long in a large vocabulary
MAX_PATH = 50  # steps that are shown; it also ends a hierarchy with a cycle
URI_SCHEMES = ("http://", "https://", "urn:")


class LabelDetails:
    """The labels of a model, as answers show them.

    >>> details = LabelDetails(LabelSpace(["food > bread", "food > fish", "food"]).with_paths())
    >>> details[0]["name"], details[0]["path"]
    ('bread', ['food'])
    """

    def __init__(self, labels: LabelSpace) -> None:
        self.labels = labels
        self._children: Csr | None = None if labels.hierarchy is None else labels.hierarchy.parents.T.tocsr()
        self._details = lru_cache(CACHED)(self._make)

    def __getitem__(self, label: int) -> dict[str, Any]:
        """Return the fields of a label, which must not be changed."""
        return self._details(label)

    def named(self, label: int, language: str | None) -> dict[str, Any]:
        """Return the fields of a label, with its name in a language if it has one there."""
        shown = self[label]
        name = self.labels.concept(label).name_in(language, shown["name"]) if language else shown["name"]
        return shown if name == shown["name"] else {**shown, "name": name}

    @cached_property
    def languages(self) -> list[str]:
        """The languages of names, taken from the first labels: most labels of a vocabulary have the same."""
        sample = range(min(len(self.labels), SAMPLED))
        return sorted({language for label in sample for language in self.labels.concept(label).names})

    def find(self, label: str) -> int | None:
        """Return the label with a name, an id as text, or a URI, or None."""
        found = label_of(label, self.labels)
        return self.labels.find(label) if found is None and _is_uri(label.removeprefix("<")) else found

    def unique_name(self, label: str) -> str:
        """Return the unique name of a label that is given by name or id; raise ParameterError for an unknown label."""
        found = self.find(label)
        if found is None:
            raise ParameterError(
                f"a label must be one of the model's {len(self.labels):,} names, or an id, but {label[:80]!r} is none; "
                "search /labels?q="
            )
        return str(self.labels.names[found])

    def synonyms(self, label: int) -> list[str]:
        """Return the synonyms of a label, without hidden ones."""
        known, hidden = self.labels.synonyms, self.labels.concept(label).hidden
        return [] if known is None else [synonym for synonym in known[label] if synonym not in hidden]

    def broader(self, label: int) -> list[int]:
        """Return the parents of a label."""
        if self.labels.hierarchy is None:
            return []
        parents = self.labels.hierarchy.parents
        return [int(at) for at in parents.indices[parents.indptr[label] : parents.indptr[label + 1]]]

    def narrower(self, label: int) -> list[int]:
        """Return the children of a label, the most frequent first."""
        if self._children is None:
            return []
        found = self._children.indices[self._children.indptr[label] : self._children.indptr[label + 1]]
        return self._by_count(found)

    def roots(self) -> list[int]:
        """Return the labels without a parent, the most frequent first; without a hierarchy, all labels."""
        if self.labels.hierarchy is None:
            return self._by_count(np.arange(len(self.labels)))
        return self._by_count(np.flatnonzero(np.diff(self.labels.hierarchy.parents.indptr) == 0))

    def n_below(self, label: int) -> int:
        """Return the number of labels below a label, on all levels."""
        if self._children is None:
            return 0
        found = np.zeros(len(self.labels), bool)
        frontier = np.array([label])
        while len(frontier):
            below = np.unique(self._children[frontier].indices)
            frontier = below[~found[below]]
            found[frontier] = True
        return int(found.sum())

    def shown_name(self, label: int) -> str:
        """Return the name to show: the last step of a path; for a URI, its first synonym that is a name."""
        name = self.labels.names[label]
        if _is_uri(name):
            return next((other for other in self.synonyms(label) if not _is_uri(other)), name)
        return name.rsplit(PATH_SEPARATOR, 1)[-1] if self.labels.hierarchy is not None else name

    def _make(self, label: int) -> dict[str, Any]:
        name = self.labels.names[label]
        shown = self.shown_name(label)
        synonyms = self.synonyms(label)
        concept = self.labels.concept(label)
        synonym = next((other for other in synonyms if other.lower() not in shown.lower() and not _is_uri(other)), None)
        return {
            "id": label,
            "label": name,
            "name": shown,
            "path": self.steps(label)[:-1],
            "synonym": synonym,
            "uri": concept.uri or next(filter(_is_uri, [name, *synonyms]), None),
            "notation": concept.notation,
            "count": 0 if self.labels.counts is None else int(self.labels.counts[label]),
        }

    def steps(self, label: int, unique: bool = False) -> list[str]:
        """Return the path from the root to a label (by the first parent), by names to show or by unique names."""
        found = [label]
        while len(found) <= MAX_PATH and (above := self.broader(found[-1])):
            found.append(above[0])
        return [self.labels.names[at] if unique else self.shown_name(at) for at in reversed(found)]

    def _by_count(self, labels: npt.ArrayLike) -> list[int]:
        at = np.asarray(labels, np.int64)
        counts = np.zeros(len(at), np.int64) if self.labels.counts is None else self.labels.counts[at]
        found: list[int] = at[np.argsort(-counts, kind="stable")].tolist()
        return found


def _is_uri(name: str) -> bool:
    return name.startswith(URI_SCHEMES)
