"""The figures of drift over the last documents that a worker tagged; texts are not kept."""

from collections import deque
from collections.abc import Sequence
from functools import cached_property
from itertools import islice

import numpy as np
import scipy.sparse as sp

from labelspace.experiment.drift import (
    CALIBRATION_K,
    DEPTH,
    Drift,
    DriftCounts,
    Reference,
    training_reference,
    word_features,
)
from labelspace.features.unknown_words import UnknownWords
from labelspace.models.capabilities import Calibrated
from labelspace.tagger import Tagger
from labelspace.types import TopK

SIZE = 1000  # documents; more react more slowly, fewer tell less
LEAST_K = CALIBRATION_K  # shorter lists leave out labels that are likely
WORDS_EVERY = 10  # documents, of which one's words are looked up: that takes a tenth of the time of tagging it
Suggestions = tuple[list[int], list[float]]
"""The best labels of a document, and their probabilities."""


class DriftWindow:
    """The last documents of one version of a model."""

    def __init__(self, tagger: Tagger, size: int = SIZE) -> None:
        self._n_labels = len(tagger.labels_)
        self._words = word_features(tagger)
        self._tagger = tagger
        self._calibrated = isinstance(tagger.model, Calibrated)
        self._size = size
        self._suggestions: dict[int, Suggestions] = {}  # by the hash of the text, the oldest first
        self._unknown: deque[tuple[int, int]] = deque(maxlen=size)  # unknown words and words
        self._reviewed: deque[tuple[Suggestions, list[int]]] = deque(maxlen=size)  # and the right labels
        self.n_added = 0

    def add(self, texts: Sequence[str], suggestions: Sequence[Suggestions]) -> None:
        """Count documents that were tagged."""
        first = -self.n_added % WORDS_EVERY
        self.n_added += len(texts)
        for text, (labels, probabilities) in zip(texts, suggestions, strict=True):
            hashed = hash(text)
            self._suggestions.pop(hashed, None)  # the text counts once, and as a new one
            self._suggestions[hashed] = (labels[:DEPTH], probabilities[:DEPTH])
            if len(self._suggestions) > self._size:
                del self._suggestions[next(iter(self._suggestions))]
        some = list(islice(texts, first, None, WORDS_EVERY))
        found = self._words.unknown_words(some) if some and self._words is not None else None
        if found is not None:
            self._unknown.extend(zip(found.unknown.tolist(), found.words.tolist(), strict=True))

    def add_reviewed(self, text: str, right: list[int]) -> None:
        """Count a document whose right labels a person has named, if it was tagged lately."""
        suggestions = self._suggestions.get(hash(text))
        if suggestions is not None:
            self._reviewed.append((suggestions, right))

    def drift(self) -> Drift:
        """Return the figures."""
        counts = DriftCounts(self._n_labels)
        counts.n = 0 if self._calibrated else len(self._suggestions)
        if self._calibrated and self._suggestions:
            counts.add(_joined(list(self._suggestions.values()), DEPTH))
        if self._unknown:
            unknown, words = np.array(self._unknown).T
            counts.add_words(UnknownWords(unknown, words))
        if self._calibrated and self._reviewed:
            top = _joined([suggestions for suggestions, _ in self._reviewed], CALIBRATION_K)
            rows = [row for row, (_, right) in enumerate(self._reviewed) for _ in right]
            columns = [label for _, right in self._reviewed for label in right]
            shape = (len(self._reviewed), self._n_labels)
            counts.add_labeled(top, sp.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=shape))
        return Drift(counts, self._reference, self._calibrated)

    @cached_property
    def _reference(self) -> Reference:
        """What is to be expected; reading the frequencies of a large vocabulary takes longer than a request may."""
        return training_reference(self._tagger)


def _joined(suggestions: Sequence[Suggestions], k: int) -> TopK:
    top = TopK.empty(len(suggestions), k)
    for row, (labels, probabilities) in enumerate(suggestions):
        n = min(len(labels), k)
        top.labels[row, :n] = labels[:n]
        top.scores[row, :n] = probabilities[:n]
    return top
