"""Labels as answers show them: names to read, the path from the root, URI, notation; and levels of the hierarchy."""

from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from labelspace.errors import ParameterError
from labelspace.labels.selection import label_of
from labelspace.types import PATH_SEPARATOR, Csr, LabelSpace

CACHED = 20_000  # labels, of which what is shown is kept
SAMPLED = 1000  # labels whose languages are looked at
MAX_PATH = 50  # steps that are shown
URI_SCHEMES = ("http://", "https://", "urn:")


class LabelDetails:
    """What is shown of the labels of a model.

    >>> details = LabelDetails(LabelSpace(["food > bread", "food > fish", "food"]).with_paths())
    >>> details[0]["name"], details[0]["path"]
    ('bread', ['food'])
    """

    def __init__(self, labels: LabelSpace) -> None:
        self.labels = labels
        self._children: Csr | None = None if labels.hierarchy is None else labels.hierarchy.parents.T.tocsr()
        self._details = lru_cache(CACHED)(self._make)

    def __getitem__(self, label: int) -> dict[str, Any]:
        """What is shown of a label; not to be changed."""
        return self._details(label)

    def named(self, label: int, language: str | None) -> dict[str, Any]:
        """The same with the name in a language, where the label has one."""
        shown = self[label]
        name = self.labels.concept(label).name_in(language, shown["name"]) if language else shown["name"]
        return shown if name == shown["name"] else {**shown, "name": name}

    @cached_property
    def languages(self) -> list[str]:
        """The languages of names of the first labels; all labels of a vocabulary have much the same."""
        sample = range(min(len(self.labels), SAMPLED))
        return sorted({language for label in sample for language in self.labels.concept(label).names})

    def find(self, label: str) -> int | None:
        """The label of a name, of an id as text, or of a URI."""
        found = label_of(label, self.labels)
        return self.labels.find(label) if found is None and _is_uri(label.removeprefix("<")) else found

    def unique_name(self, label: str) -> str:
        """The unique name of a label that is given by it, or by its id; what is neither is an error, at no cost."""
        found = self.find(label)
        if found is None:
            raise ParameterError(
                f"a label must be one of the model's {len(self.labels):,} names, or an id, but {label[:80]!r} is none; "
                "search /labels?q="
            )
        return str(self.labels.names[found])

    def synonyms(self, label: int) -> list[str]:
        """The synonyms of a label, without hidden ones."""
        known, hidden = self.labels.synonyms, self.labels.concept(label).hidden
        return [] if known is None else [synonym for synonym in known[label] if synonym not in hidden]

    def broader(self, label: int) -> list[int]:
        """The parents of a label."""
        if self.labels.hierarchy is None:
            return []
        parents = self.labels.hierarchy.parents
        return [int(at) for at in parents.indices[parents.indptr[label] : parents.indptr[label + 1]]]

    def narrower(self, label: int) -> list[int]:
        """The children of a label, the most frequent first."""
        if self._children is None:
            return []
        found = self._children.indices[self._children.indptr[label] : self._children.indptr[label + 1]]
        return self._by_count(found)

    def roots(self) -> list[int]:
        """The labels without a parent, the most frequent first; all of them where there is no hierarchy."""
        if self.labels.hierarchy is None:
            return self._by_count(np.arange(len(self.labels)))
        return self._by_count(np.flatnonzero(np.diff(self.labels.hierarchy.parents.indptr) == 0))

    def n_below(self, label: int) -> int:
        """The labels below a label, on all levels."""
        if self._children is None:
            return 0
        found, frontier = np.zeros(len(self.labels), bool), np.array([label])
        while len(frontier):
            below = np.unique(self._children[frontier].indices)
            frontier = below[~found[below]]
            found[frontier] = True
        return int(found.sum())

    def shown_name(self, label: int) -> str:
        """The last step of a path; of a URI its first synonym that is a name."""
        name = self.labels.names[label]
        if _is_uri(name):
            return next((other for other in self.synonyms(label) if not _is_uri(other)), name)
        return name.rsplit(PATH_SEPARATOR, 1)[-1] if self.labels.hierarchy is not None else name

    def _make(self, label: int) -> dict[str, Any]:
        name, shown, synonyms = self.labels.names[label], self.shown_name(label), self.synonyms(label)
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
        """The path from the root to a label, by names to show or unique ones; by the first of several parents."""
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
