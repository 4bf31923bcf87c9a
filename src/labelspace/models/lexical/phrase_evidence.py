"""Why a label's name speaks for it: where its phrases are in the text, whole or in part.

1. The phrases of the label, each a list of stems. Those that the text has whole are what counts, if there are any; else
   the phrase of which the text has the largest part, as in ``kernels.py``.
2. The matches share the difference between their log-odds and those of the label's frequency, equally.
"""

from collections.abc import Iterator

import numpy as np

from labelspace.models.evidence import Evidence, PhraseShare
from labelspace.models.lexical.kernels import Phrases
from labelspace.models.lexical.word_stems import ANALYZER
from labelspace.types import Ints

KINDS = ("name", "synonym", "part")
Match = tuple[int, int, int]
"""The first and the last word of a match, and the kind of its phrase."""


class PhraseEvidence:
    """The words of a text, among which phrases are found."""

    def __init__(self, phrases: Phrases, text: str, words: Ints) -> None:
        self.phrases, self.words = phrases, words
        self.starts, self.stops = ANALYZER.character_spans(text, ANALYZER.spans([text]))

    def evidence(self, label: int, log_odds: float, baseline: float) -> Evidence:
        """The matches of the label's phrases, each with its share (step 2)."""
        matches = sorted(set(self._matches(label)))
        share = (log_odds - baseline) / max(len(matches), 1)
        found = [
            PhraseShare(int(self.starts[first]), int(self.stops[last]), KINDS[kind], share)
            for first, last, kind in matches
        ]
        return Evidence(log_odds, baseline, phrases=found)

    def _matches(self, label: int) -> Iterator[Match]:
        """Step 1."""
        own = np.flatnonzero(self.phrases.owners == label).tolist()
        whole = [match for phrase in own for match in self._whole(phrase)]
        if whole or not own:
            yield from whole
            return
        shares = [self._shared_weight(phrase) / int(self.phrases.totals[phrase]) for phrase in own]
        best = own[int(np.argmax(shares))]
        for word in np.unique(self._words_of(best)).tolist():
            for at in np.flatnonzero(self.words == word).tolist():
                yield at, at, int(self.phrases.kinds[best])

    def _words_of(self, phrase: int) -> Ints:
        forms = self.phrases.forms[self.phrases.ends[phrase] : self.phrases.ends[phrase + 1]]
        words: Ints = self.phrases.form_words[forms]
        return words

    def _shared_weight(self, phrase: int) -> int:
        words = self._words_of(phrase)
        return int(self.phrases.weights[words[np.isin(words, self.words)]].sum())

    def _whole(self, phrase: int) -> Iterator[Match]:
        words = self._words_of(phrase)
        n = len(self.words) - len(words) + 1
        if n <= 0:
            return
        same = np.ones(n, bool)
        for i, word in enumerate(words.tolist()):
            same &= self.words[i : i + n] == word
        for at in np.flatnonzero(same).tolist():
            yield at, at + len(words) - 1, int(self.phrases.kinds[phrase])
