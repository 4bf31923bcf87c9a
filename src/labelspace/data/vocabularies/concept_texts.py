"""Texts of concepts in columns: names, synonyms, notations and descriptions, each with its language."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelspace.types import Longs


class TextColumn:
    """Texts of one kind as they are read, in any order, each with the number of its concept and its language."""

    def __init__(self) -> None:
        self.nodes, self.values, self.languages = array("i"), list[str](), list[str]()

    def add(self, node: int, value: str, language: str = "") -> None:
        """Add a text unless it is blank; tabs and line ends, which break lines of hierarchy.tsv, become spaces."""
        value = " ".join(value.split())
        if value:
            self.nodes.append(node)
            self.values.append(value)
            self.languages.append(language)


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
    def grouped(rows: npt.ArrayLike, values: Sequence[str], languages: Sequence[str], n: int) -> Texts:
        """Group texts in any order, each with the row of its concept; texts of row -1 are left out."""
        row = np.asarray(rows, np.int64)
        order = np.argsort(row, kind="stable")
        order = order[row[order] >= 0]
        begins = np.concatenate([[0], np.cumsum(np.bincount(row[order], minlength=n))])
        listed = order.tolist()
        return Texts(begins, [values[at] for at in listed], [languages[at] for at in listed])

    def only(self, rows: Longs) -> Texts:
        """Return the texts of some concepts, in the order of ``rows``.

        >>> Texts.grouped([1, 0, 1], ["cats", "dogs", "Katzen"], ["en", "en", "de"], n=2).only(np.array([1])).values
        ['cats', 'Katzen']
        """
        sizes = (self.begins[1:] - self.begins[:-1])[rows]
        begins = np.concatenate([[0], np.cumsum(sizes)])
        at = (np.arange(begins[-1]) + np.repeat(self.begins[rows] - begins[:-1], sizes)).tolist()
        return Texts(begins, [self.values[each] for each in at], [self.languages[each] for each in at])

    def of(self, row: int) -> list[tuple[str, str]]:
        """Return pairs of language and text of a concept, each once, sorted: equal files give equal pairs."""
        begin, end = self.begins[row], self.begins[row + 1]
        pairs = list(zip(self.languages[begin:end], self.values[begin:end], strict=True))
        return sorted(set(pairs)) if len(pairs) > 1 else pairs


def texts_by_language(kinds: Iterable[Texts], row: int) -> dict[str, str]:
    """Return the texts of a concept by language: of the first kind; of several, the first in alphabetical order.

    >>> names = Texts.grouped([0, 0], ["cats", "Katzen"], ["en", "de"], n=1)
    >>> texts_by_language([names, Texts.grouped([0, 0], ["kats", "kissat"], ["en", "fi"], n=1)], 0)
    {'de': 'Katzen', 'en': 'cats', 'fi': 'kissat'}
    """
    found: dict[str, str] = {}
    for texts in kinds:
        for language, text in texts.of(row):
            found.setdefault(language, text)
    return found
