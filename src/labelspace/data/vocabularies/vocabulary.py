"""The concepts of a vocabulary in columns: a million concepts must not be millions of objects."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from labelspace.types import Longs

Item = TypeVar("Item")


@dataclass(frozen=True)
class Note:
    """Something a user should know of an import: a key for programs, how often, and what it is.

    >>> str(Note("deprecated", 1200, "deprecated concepts, left out"))
    'deprecated concepts, left out: 1,200'
    """

    key: str
    count: int
    text: str

    def __str__(self) -> str:
        return f"{self.text}: {self.count:,}"


@dataclass(frozen=True)
class Texts:
    """Texts of concepts, such as their notations, each with its language; the texts of a concept are contiguous.

    >>> texts = Texts.grouped([1, 0, 1], ["cats", "dogs", "Katzen"], ["en", "en", "de"], n=2)
    >>> texts.of(1)
    [('de', 'Katzen'), ('en', 'cats')]
    """

    begins: Longs  # (n + 1,)
    values: list[str]
    languages: list[str]  # '' where a text has none

    @staticmethod
    def grouped(rows: npt.ArrayLike, values: Sequence[str], languages: Sequence[str], n: int) -> "Texts":
        """Group texts in any order, each with the row of its concept; texts of row -1 are left out."""
        row = np.asarray(rows, np.int64)
        order = np.argsort(row, kind="stable")
        order = order[row[order] >= 0]
        begins = np.concatenate([[0], np.cumsum(np.bincount(row[order], minlength=n))])
        listed = order.tolist()
        return Texts(begins, [values[at] for at in listed], [languages[at] for at in listed])

    def of(self, row: int) -> list[tuple[str, str]]:
        """Return pairs of language and text of a concept, each once, sorted: equal files give equal pairs."""
        begin, end = self.begins[row], self.begins[row + 1]
        pairs = list(zip(self.languages[begin:end], self.values[begin:end], strict=True))
        return sorted(set(pairs)) if len(pairs) > 1 else pairs


@dataclass(frozen=True)
class Vocabulary:
    """Concepts: URIs, names, synonyms, notations, and which is broader than which."""

    uris: Sequence[str | None]
    names: Texts  # preferred ones
    other_names: Texts  # rdfs:label, used if a language has no preferred name
    synonyms: Texts
    hidden: Texts
    notations: Texts
    broader: Longs | None  # (n, 2) rows of narrower and broader concept; None where the file says nothing of it
    notes: list[Note] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.uris)

    def notation(self, row: int) -> str | None:
        """Return the notation of a concept; of several, the first in alphabetical order."""
        found = self.notations.of(row)
        return found[0][1] if found else None


class Computed(Sequence[Item]):
    """A sequence whose items are computed on access, and not kept.

    >>> list(Computed(3, lambda at: at * at))
    [0, 1, 4]
    """

    def __init__(self, n: int, make: Callable[[int], Item]) -> None:
        self._n, self._make = n, make

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - as a list has it: a number or a slice
        at = range(self._n)[index]
        return [self._make(each) for each in at] if isinstance(at, range) else self._make(at)

    def __iter__(self) -> Iterator[Item]:
        return map(self._make, range(self._n))
