"""Turn the evidence of a model into explanations in the words of a text.

1. A column's share is divided equally among its occurrences in the text.
2. The share of an occurrence (a word, two words, four characters) is divided equally among its letters; spaces and
   signs get none.
3. The share of a word is the sum over its letters.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from labelspace.explain.explanation import Explanation, FeatureShare, Neighbor, PathNode, Phrase, ValueShare, WordShare
from labelspace.explain.training_documents import TrainingDocuments
from labelspace.features.base import Occurrences
from labelspace.features.characters import character_classes, code_points
from labelspace.features.views import ViewTransformer, joined_parts
from labelspace.kernels.tokenize import UNSPACED, WORD
from labelspace.models.evidence import ColumnShares, Evidence, PhraseShare, Step, Voter
from labelspace.training.losses import sigmoid
from labelspace.types import Doubles, Ints, LabelSpace, Longs

MAX_NEIGHBORS = 3  # training documents that an explanation shows: more crowd out the words
SHARED_WORDS = 5  # words that are listed with each of these documents
MIN_SHARE = 1e-12  # of a listed word: smaller shares are rounding errors


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


@dataclass
class Explainer:
    """Explains labels of one document: a text, or a row of ready-made features."""

    labels: LabelSpace
    calibrated: bool
    features: ViewTransformer | None
    documents: TrainingDocuments | None
    text: str | None

    def __post_init__(self) -> None:
        self.words = TextWords.of(self.text or "")
        self._spans: dict[str, ColumnSpans | None] = {}

    def explanation(self, label: int, evidence: Evidence) -> Explanation:
        """Return the explanation of one label."""
        score = evidence.score
        if score is None:
            score = float(sigmoid(np.array([evidence.log_odds]))[0])
        words = [] if self.text is None else self._words(evidence)
        features = self._features(evidence) if self.text is None else []
        values = [] if self.text is None else self._values(evidence, self.text)
        explained = sum(float(part[-1]) for part in (*words, *features, *values))
        return Explanation(
            label=self.labels.names[label],
            synonym=self._synonym(label),
            description=self.labels.concept(label).description,
            score=score,
            probability=score if self.calibrated else None,
            log_odds=evidence.log_odds,
            baseline=evidence.baseline,
            words=words,
            features=features,
            values=values,
            phrases=[Phrase((self.text or "")[each.start : each.stop], *each) for each in evidence.phrases],
            neighbors=[self._neighbor(voter) for voter in _first(evidence.voters)],
            path=list(map(self._node, evidence.path)),
            members=list(evidence.members),
            remainder=evidence.difference - explained,
            n_words=len(self.words.starts),
        )

    def _node(self, step: Step) -> PathNode:
        names = [self.labels.names[label] for label in step.labels]
        return PathNode(names, step.n_labels, float(np.exp(step.log_probability)), step.share)

    def _synonym(self, label: int) -> str | None:
        """Return the first synonym that is not a part of the name; None if there is none."""
        if self.labels.synonyms is None:
            return None
        name = self.labels.names[label].lower()
        return next((other for other in self.labels.synonyms[label] if other.lower() not in name), None)

    def _words(self, evidence: Evidence) -> list[WordShare]:
        found = ((self._find(view), shares) for view, shares in evidence.columns.items())
        shares = self.words.shares(((at, own) for at, own in found if at is not None), evidence.phrases)
        text, listed = self.text or "", np.flatnonzero(np.abs(shares) > MIN_SHARE)
        starts, stops = self.words.starts[listed].tolist(), self.words.stops[listed].tolist()
        words = [text[start:stop] for start, stop in zip(starts, stops, strict=True)]
        return list(map(WordShare, words, starts, stops, shares[listed].tolist()))

    def _find(self, view: str) -> ColumnSpans | None:
        """Return the places of the columns of a view in the text, found once for all labels."""
        if view not in self._spans:
            found = None
            if self.features is not None and view in self.features.made_by_ and self.text is not None:
                found = self.features.occurrences(view, self.text)
            self._spans[view] = None if found is None else ColumnSpans.of(found)
        return self._spans[view]

    def _values(self, evidence: Evidence, text: str) -> list[ValueShare]:
        """Return the shares of the values beside the text, summed over all views: their columns come first."""
        if self.features is None or self.features.beside_ is None:
            return []
        totals = np.zeros(self.features.n_beside)
        for view, part in evidence.columns.items():
            if view in self.features.made_by_:
                own = part.columns < len(totals)
                np.add.at(totals, part.columns[own], part.shares[own])
        found = self.features.beside_.values_of(text)
        return [ValueShare(value.name, float(totals[list(value.columns)].sum())) for value in found]

    def _features(self, evidence: Evidence) -> list[FeatureShare]:
        totals: dict[int, float] = {}
        for part in evidence.columns.values():
            for column, share in zip(part.columns.tolist(), part.shares.tolist(), strict=True):
                totals[column] = totals.get(column, 0.0) + share
        ranked = sorted(totals.items(), key=lambda entry: -abs(entry[1]))
        return [FeatureShare(column, share) for column, share in ranked if abs(share) > MIN_SHARE]

    def _neighbor(self, voter: Voter) -> Neighbor:
        named, text = (str(voter.row + 1), None) if self.documents is None else self.documents[voter.row]
        return Neighbor(named, voter.similarity, voter.share, self._shared_words(voter), text)

    def _shared_words(self, voter: Voter) -> list[str]:
        """Return the words of the text behind the columns that a voter shares with the text."""
        found = None if len(joined_parts(voter.view)) > 1 else self._find(voter.view)
        if found is None or self.text is None:
            return []
        spans = (found.first(column) for column in voter.shared.tolist())
        words = [word for span in spans if span is not None for word in self.words.touched(*span)]
        names = (self.text[start:stop].lower() for start, stop in words)
        return list(dict.fromkeys(names))[:SHARED_WORDS]


def _first(voters: Sequence[Voter]) -> list[Voter]:
    """Return the voters that count most, each document once."""
    ranked = sorted(voters, key=lambda voter: abs(voter.share))
    by_row = {voter.row: voter for voter in ranked}  # the one that counts most is the last
    return sorted(by_row.values(), key=lambda voter: -abs(voter.share))[:MAX_NEIGHBORS]
