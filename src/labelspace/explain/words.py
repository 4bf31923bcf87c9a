"""Turn shares of columns into shares of words.

1. A column's share is divided equally among its occurrences in the text.
2. The share of an occurrence (a word, two words, four characters) is divided equally among its letters; spaces and
   signs get none.
3. The share of a word is the sum over its letters.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from labelspace.features.base import Occurrences
from labelspace.features.characters import character_classes, code_points
from labelspace.kernels.tokenize import UNSPACED, WORD
from labelspace.models.evidence import ColumnShares, PhraseShare
from labelspace.types import Doubles, Ints, Longs


class TextWords(NamedTuple):
    """The words of a text: the characters of each, and the letters up to each character."""

    starts: Longs
    stops: Longs
    letters: Longs  # (characters + 1,)

    @classmethod
    def of(cls, text: str) -> "TextWords":
        """Find the words of a text; in scripts without spaces between words, each letter is a word.

        >>> TextWords.of("A bun.").starts.tolist(), TextWords.of("a日本").starts.tolist()
        ([0, 2], [0, 1, 2])
        """
        kinds = np.concatenate([[0], character_classes(text.isascii())[code_points(text)], [0]])
        before, here = kinds[:-1], kinds[1:]
        cut = (here == UNSPACED) | ((here == WORD) & (before == UNSPACED))
        starts = np.flatnonzero((here > 0) & ((before == 0) | cut))
        stops = np.flatnonzero((before > 0) & ((here == 0) | cut))
        return cls(starts, stops, np.concatenate([[0], np.cumsum(here[:-1] > 0)]))

    def touched(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Return the words that have some of these characters.

        >>> TextWords.of("rye bread dough").touched(2, 5)
        [(0, 3), (4, 9)]
        """
        some = (self.starts < stop) & (self.stops > start)
        return list(zip(self.starts[some].tolist(), self.stops[some].tolist(), strict=True))

    def shares(self, parts: Iterable[tuple["ColumnSpans", ColumnShares]], phrases: Sequence[PhraseShare]) -> Doubles:
        """Return the share of each word (steps 1 to 3), summed over all views and phrases."""
        density = np.zeros(len(self.letters))  # by letter: what begins here, less what ends here
        for found, columns in parts:
            self._add(density, found.starts, found.stops, found.shares(columns))
        spans = np.array([(phrase.start, phrase.stop) for phrase in phrases], np.int64).reshape(-1, 2)
        self._add(density, spans[:, 0], spans[:, 1], np.array([phrase.share for phrase in phrases]))
        up_to = np.concatenate([[0.0], np.cumsum(np.cumsum(density))])
        return np.asarray(up_to[self.letters[self.stops]] - up_to[self.letters[self.starts]])

    def _add(self, density: Doubles, starts: Longs, stops: Longs, shares: Doubles) -> None:
        first, last = self.letters[starts], self.letters[stops]
        some = last > first
        per_letter = shares[some] / (last - first)[some]
        np.add.at(density, first[some], per_letter)
        np.add.at(density, last[some], -per_letter)


class ColumnSpans(NamedTuple):
    """The places of the columns of a view in a text, counted once for all labels."""

    columns: Ints  # different ones, in order
    counts: Longs  # occurrences of each
    column: Longs  # of each occurrence: its place among ``columns``
    starts: Longs
    stops: Longs

    @classmethod
    def of(cls, found: Occurrences) -> "ColumnSpans":
        """Count the occurrences."""
        columns, column, counts = np.unique(found.columns, return_inverse=True, return_counts=True)
        return cls(columns, counts, column, found.starts, found.stops)

    def shares(self, columns: ColumnShares) -> Doubles:
        """Return the share of each occurrence (step 1).

        >>> spans = ColumnSpans.of(Occurrences(np.array([3, 1, 3]), np.arange(3), np.arange(3)))
        >>> spans.shares(ColumnShares(np.array([1, 3]), np.array([5.0, 2.0]))).tolist()
        [1.0, 5.0, 1.0]
        """
        if not len(self.columns):
            return np.zeros(0)
        at = np.minimum(np.searchsorted(self.columns, columns.columns), len(self.columns) - 1)
        there = self.columns[at] == columns.columns
        totals = np.bincount(at[there], columns.shares[there], minlength=len(self.columns))
        return np.asarray((totals / self.counts)[self.column])

    def first(self, column: int) -> tuple[int, int] | None:
        """Return the characters of the first occurrence of a column; None if it does not occur."""
        at = np.flatnonzero(self.column == np.searchsorted(self.columns, column))
        if not len(at) or self.columns[self.column[at[0]]] != column:
            return None
        return int(self.starts[at[0]]), int(self.stops[at[0]])
